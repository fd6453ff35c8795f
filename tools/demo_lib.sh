# What the demos share: routers on loopback, and a temporary directory that is always removed. A demo sources this file,
# with `namewire` set to the binary.
#
# Everything runs as this user. Only processes of the demo are ended.

scratch=$(mktemp -d "${TMPDIR:-/tmp}/namewire-demo.XXXXXX")

say() { printf 'demo: %s\n' "$*"; }

fail() {
    say "FAILED: $*" >&2
    for log in "$scratch"/*.log; do
        [ -s "$log" ] && { echo "--- $(basename "$log")"; tail -n 20 "$log"; } >&2
    done
    exit 1
}

# Ends what this script started in the background and still runs: SIGTERM, five seconds later SIGKILL. The shell knows
# which do; the number of an ended one may belong to another process by now.
clean_up() {
    status=$?
    trap - EXIT
    trap '' HUP INT TERM
    exec 2>/dev/null # the shell's own words on each process that it ends
    for signal in TERM KILL; do
        for pid in $(jobs -pr); do kill "-$signal" "$pid" 2>/dev/null || true; done
        for _ in $(seq 50); do [ -n "$(jobs -pr)" ] || break; sleep 0.1; done
    done
    wait
    rm -rf "$scratch"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# wait_until SECONDS COMMAND... : repeats the command until it succeeds.
wait_until() {
    local tries=$(( $1 * 20 )); shift
    for _ in $(seq "$tries"); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.05
    done
    return 1
}

# start_router NAME [OPTION...] : starts one router on random ports, until one is free; sets `pid` and `port`.
start_router() {
    local name=$1; shift
    for _ in 1 2 3 4 5 6 7 8; do
        port=$(( 20000 + RANDOM % 40000 ))
        "$namewire" run "$@" --socket "$scratch/$name.sock" --listen-udp "127.0.0.1:$port" \
            --listen-tcp "127.0.0.1:$port" >"$scratch/router-$name.log" 2>&1 &
        pid=$!
        if wait_until 60 answers_or_ended "$name" && kill -0 "$pid" 2>/dev/null; then
            return 0
        fi
    done
    fail "router $name did not start"
}

answers_or_ended() { ! kill -0 "$pid" || at "$1" status; }

# Where applications reach a router.
uri_of() { echo "unix://$scratch/$1.sock"; }

# at ROUTER COMMAND... : a tool at this router. Not for the background: its process would be a shell, and outlived by
# the tool.
at() { local router=$1; shift; "$namewire" --transport "$(uri_of "$router")" "$@"; }

# stop PID WHAT : ends it as Ctrl-C does, if that has not been typed already.
stop() {
    kill -INT "$1" 2>/dev/null || true
    wait "$1" || fail "$2 ended with status $?"
}

[ -x "$namewire" ] || fail "no binary at $namewire (make build makes it)"
