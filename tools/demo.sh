#!/bin/bash
# Four routers joined by UDP, with two paths between a consumer and a producer:
#
#                        ┌── B ──┐                            cost 1 by B
#   application (get) ── A       D ── application (put)
#                        └── C ──┘                            cost 10 by C
#
# A file crosses the network. It comes again from router A's cache. It crosses the network once more, and router B is
# killed in the middle. A python-ndn application joins at router D. On a terminal, the network then runs until Enter.
#
# Everything runs as this user, on loopback, in a temporary directory, which is always removed. Exit status 0 only if
# everything happened as shown and each fetched file equals the published one.
#
# Environment: NAMEWIRE        the binary (default target/release/namewire)
#              PYTHON          a Python with python-ndn (default interop/.venv/bin/python)
#              DEMO_BYTES      size of the file (default 100,000,000)
set -euo pipefail
cd "$(dirname "$0")/.."

namewire=${NAMEWIRE:-target/release/namewire}
python=${PYTHON:-interop/.venv/bin/python}
bytes=${DEMO_BYTES:-100000000}
segment_bytes=1200 # fits a datagram on most networks
object=/demo/file
. tools/demo_lib.sh
. tools/demo_drawing.sh

sum_of() { sha256sum <"$1" | cut -d ' ' -f 1; }

# data_from ROUTER : how many Data router A has received from it.
data_from() {
    at a nfdc face list remote "udp4://127.0.0.1:${ports[$1]}" | sed -n 's/.*counters={in={[0-9]*i \([0-9]*\)d .*/\1/p'
}

# has_arrived SUM : the fetched file has this SHA-256, that of the published one.
has_arrived() {
    local sum; sum=$(sum_of "$scratch/fetched")
    [ "$sum" = "$1" ] || fail "SHA-256 differs: published $1, fetched $sum"
    say "SHA-256 is the same at both ends: $sum"
}

# seconds MICROSECONDS : the same in seconds.
seconds() { printf '%d.%02d s' $(( $1 / 1000000 )) $(( $1 / 10000 % 100 )); }

# compared BEFORE AFTER : in words, how the second time compares with the first.
compared() {
    local tenths=$(( $1 * 10 / $2 ))
    if [ "$tenths" -gt 10 ]; then
        echo "$(( tenths / 10 )).$(( tenths % 10 )) times as fast"
    else
        echo "not faster on this machine"
    fi
}

# fetch_failed STATUS : ends the demo. Ctrl-C reaches the fetch, too, and the shell may hear of its end first.
fetch_failed() {
    [ "$1" -ne 130 ] || exit 130
    fail "the fetch did not succeed"
}

# fetch : gets the file at router A, with namewire's own bar, and sets `took_us`.
fetch() {
    local began=${EPOCHREALTIME/[.,]/}
    at a get "$object" -o "$scratch/fetched" 2>&1 || fetch_failed $?
    took_us=$(( ${EPOCHREALTIME/[.,]/} - began ))
}

heading "1. Four routers, two paths"
declare -A pids ports
for router in a b c d; do
    # Only router A needs room for the whole file.
    if [ "$router" = a ]; then options=(--cs-capacity $(( bytes * 2 + 10000000 ))); else options=(); fi
    start_router "$router" "${options[@]}"
    pids[$router]=$pid ports[$router]=$port
done
for hop in a:b:1 a:c:10 b:d:1 c:d:1; do
    IFS=: read -r from to cost <<<"$hop"
    at "$from" route add /demo "udp4://127.0.0.1:${ports[$to]}" --cost "$cost" >"$scratch/route.log" 2>&1 ||
        fail "no route from router $from to $to"
done
draw_network whole
say "Each router is a process of yours, and each line a UDP link on this machine. Router A prefers the path by B."

heading "2. A file crosses the network"
head -c "$bytes" /dev/urandom >"$scratch/published"
sum_published=$(sum_of "$scratch/published")
"$namewire" --transport "$(uri_of d)" put "$scratch/published" "$object" \
    --chunk-size "$segment_bytes" >"$scratch/put.log" 2>&1 &
put=$!
wait_until 60 grep -q serving "$scratch/put.log" || fail "$object was not published at router D"
say "\`namewire put\` publishes a file at router D; \`namewire get $object\` fetches it at router A:"
fetch
first_us=$took_us
has_arrived "$sum_published"

heading "3. The same again, from the cache of router A"
before=$(data_from b)
fetch
has_arrived "$sum_published"
crossed=$(( $(data_from b) - before ))
# A few: finding the version asks the producer again when the answer is not fresh.
[ "$crossed" -lt $(( bytes / segment_bytes / 100 )) ] || fail "$crossed Data came from router B, not from the cache"
say "From the cache in $(seconds "$took_us"), across the network in $(seconds "$first_us"):" \
    "$(compared "$first_us" "$took_us")."

heading "4. A router dies in the middle of a fetch"
arrived() { stat -c %s "$scratch/fetched.part" 2>/dev/null || echo 0; }
# begin_fetch : a fetch from an empty cache, in the background; true while it goes on and a quarter has arrived.
begin_fetch() {
    at a cs erase /demo >"$scratch/erase.log" 2>&1 || fail "the cache of router A was not emptied"
    before=$(data_from b)
    "$namewire" --transport "$(uri_of a)" get "$object" -o "$scratch/fetched" 2>&1 &
    get=$!
    until [ "$(arrived)" -ge $(( bytes / 4 )) ]; do kill -0 "$get" 2>/dev/null || return 1; sleep 0.01; done
}
say "The cache of router A is empty again. The next fetch begins by router B:"
for _ in 1 2 3; do
    ! begin_fetch || break
    say "It was over before router B could be killed. Once more:"
done
{ kill -KILL "${pids[b]}"; wait "${pids[b]}"; } 2>/dev/null || true
percent=$(( $(arrived) * 100 / bytes ))
[ "$percent" -gt 0 ] || fail "the fetch was over before router B was killed"
say_beside_bar "Router B is killed when $percent % has arrived."
wait "$get" || fetch_failed $?
by_c=$(data_from c)
[ "$by_c" -gt 0 ] || fail "nothing came by router C"
draw_network cut
say "$(( $(data_from b) - before )) Data came by router B, and then $by_c by router C."
has_arrived "$sum_published"

heading "5. A python-ndn application joins"
if "$python" -c 'import ndn' 2>/dev/null; then
    mkfifo "$scratch/input"
    exec 9<>"$scratch/input" # the application serves until its standard input closes
    "$python" interop/apps/python_app.py serve-object --transport "$(uri_of d)" --prefix /demo/python --file README.md \
        <"$scratch/input" 9>&- >"$scratch/python.log" 2>&1 &
    application=$!
    is_ready() { grep -q READY "$scratch/python.log" || ! kill -0 "$application"; }
    wait_until 60 is_ready && grep -q READY "$scratch/python.log" || fail "python-ndn did not register /demo/python"
    say "It knows nothing of Namewire. It publishes README.md at router D; router A fetches that:"
    at a get /demo/python/v=1 -o "$scratch/fetched" 2>&1 || fetch_failed $?
    has_arrived "$(sum_of README.md)"
    exec 9>&-
    wait "$application" || fail "the python-ndn application ended with status $?"
else
    say "Left out: $python has no python-ndn (\`tools/setup.sh python-ndn\` installs it)."
fi

if [ -t 0 ] && is_terminal; then
    is_over=
    trap 'is_over=yes' INT
    heading "6. Now you"
    say "The network runs until you press Enter. In another terminal, type this first:"
    printf '  %s\n' "export PATH=$(cd "$(dirname "$namewire")" && pwd):\$PATH NDN_CLIENT_TRANSPORT=$(uri_of a)"
    say "Then try:"
    printf '  %s\n' "namewire get $object -o copy" "namewire explain $object" "namewire top"
    # A signal just before `read` waits is noticed a second later.
    until [ -n "$is_over" ]; do
        status=0
        read -r -t 1 || status=$?
        [ "$status" -gt 128 ] || is_over=yes # Enter, or the end of the input
    done
fi
stop "$put" "the publisher"
for router in a c d; do stop "${pids[$router]}" "router ${router^^}"; done
say "Everything stopped; done."
