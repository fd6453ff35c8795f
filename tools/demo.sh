#!/bin/bash
# Two routers joined by UDP; a file published at one is fetched through the other.
#
#   application -- Unix -- router B -- UDP -- router A -- Unix -- application
#   (get)                                                        (put)
#
# Everything runs as this user, on loopback, in a temporary directory, which is always
# removed. Exit status 0 only if the fetched file equals the published one.
#
# Environment: NAMEWIRE        the binary (default target/release/namewire)
#              DEMO_BYTES      size of the file (default 20,000,000)
set -euo pipefail
cd "$(dirname "$0")/.."

namewire=${NAMEWIRE:-target/release/namewire}
bytes=${DEMO_BYTES:-20000000}
object=/demo/file
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

# Starts one router on random ports, until one is free: sets `pid` and `port`.
start_router() {
    local name=$1
    for _ in 1 2 3 4 5 6 7 8; do
        port=$(( 20000 + RANDOM % 40000 ))
        "$namewire" run --socket "$scratch/$name.sock" --listen-udp "127.0.0.1:$port" \
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

start_router a; pid_a=$pid; port_a=$port
say "router A runs (process $pid_a, UDP port $port_a)"
start_router b; pid_b=$pid
say "router B runs (process $pid_b, UDP port $port)"

at b route add /demo "udp4://127.0.0.1:$port_a" >"$scratch/route.log" 2>&1 || fail "no route from B to A"
say "router B sends /demo to router A over UDP"

head -c "$bytes" /dev/urandom >"$scratch/published"
at a put "$scratch/published" "$object" >"$scratch/put.log" 2>&1 &
put_pid=$!
children+=("$put_pid")
is_published() { at a route list | grep -qF "$object"; }
wait_until 30 is_published || fail "$object was not published at router A"
kill -0 "$put_pid" 2>/dev/null || fail "the publisher ended"
say "$bytes bytes published at router A as $object"

began=$(date +%s%N)
at b get "$object" -o "$scratch/fetched" >"$scratch/get.log" 2>&1 || fail "the fetch through router B did not succeed"
ended=$(date +%s%N)
elapsed_ms=$(( (ended - began) / 1000000 + 1 ))
say "fetched through router B in $elapsed_ms ms"

sum_published=$(sha256sum <"$scratch/published" | cut -d' ' -f1)
sum_fetched=$(sha256sum <"$scratch/fetched" | cut -d' ' -f1)
[ "$sum_published" = "$sum_fetched" ] || fail "SHA-256 differs: published $sum_published, fetched $sum_fetched"
say "SHA-256 is the same at both ends: $sum_fetched"
say "goodput $(( bytes * 8 / elapsed_ms / 1000 )) Mbit/s ($(( bytes / elapsed_ms / 1000 )) MB/s)"

for router in a b; do
    say "counters of router ${router^^}:"
    at "$router" status || fail "router $router no longer answers"
    at "$router" face list || fail "router $router does not list its faces"
done

kill -TERM "$put_pid" || fail "the publisher ended early"
wait "$put_pid" || true # its status after a signal has no meaning
for pid in "$pid_a" "$pid_b"; do
    kill -TERM "$pid" || fail "a router ended early"
    wait "$pid" || fail "a router ended with status $? after SIGTERM"
done
say "everything stopped; done"
