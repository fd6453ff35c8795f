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
. tools/demo_lib.sh

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
