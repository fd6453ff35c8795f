# What the demos share: routers on loopback, and a temporary directory that is always removed. A demo sources this file,
# with `namewire` set to the binary.
#
# Everything runs as this user. Only processes of the demo are ended.

scratch=$(mktemp -d "${TMPDIR:-/tmp}/namewire-demo.XXXXXX")
children=()

say() { printf 'demo: %s\n' "$*"; }

fail() {
    say "FAILED: $*" >&2
    for log in "$scratch"/*.log; do
        [ -s "$log" ] && { echo "--- $(basename "$log")"; tail -n 20 "$log"; } >&2
    done
    exit 1
}

# Ends only processes of this script: SIGTERM, then SIGKILL, then wait.
clean_up() {
    status=$?
    trap - EXIT
    for pid in ${children[@]+"${children[@]}"}; do kill -TERM "$pid" 2>/dev/null || true; done
    for pid in ${children[@]+"${children[@]}"}; do
        for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$scratch"
    exit "$status"
}
trap clean_up EXIT
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
        children+=("$pid")
        if wait_until 10 answers_or_ended "$name" && kill -0 "$pid" 2>/dev/null; then
            return 0
        fi
    done
    fail "router $name did not start"
}

answers_or_ended() {
    ! kill -0 "$pid" || "$namewire" --transport "unix://$scratch/$1.sock" status
}

at() { local router=$1; shift; "$namewire" --transport "unix://$scratch/$router.sock" "$@"; }

[ -x "$namewire" ] || fail "no binary at $namewire (make build makes it)"
