#!/bin/bash
# Seven routers joined by UDP; a concert is found by its tags, and a push reaches who asked for it.
#
#   hall - a --- b --- c --- d --- e - player
#                 \--- f ---/
#                       |
#                       g - newspaper
#
# Everything runs as this user, on loopback, in a temporary directory, which is always removed. Exit status 0 only if
# the concert was found, the news arrived, and nobody got what it did not ask for.
#
# Environment: NAMEWIRE        the binary (default target/release/namewire)
set -euo pipefail
cd "$(dirname "$0")/.."

namewire=${NAMEWIRE:-target/release/namewire}
. tools/demo_lib.sh

printf '[tagnet]\ntrees = [1]\nneighbours = "any"\n' >"$scratch/router.toml"
declare -A ports
routers=()
for router in a b c d e f g; do
    start_router "$router" --config "$scratch/router.toml"
    ports[$router]=$port
    routers+=("$pid")
done
for link in a:b b:c c:d d:e b:f f:d f:g; do
    at "${link%:*}" face create "udp4://127.0.0.1:${ports[${link#*:}]}" >"$scratch/face.log" 2>&1 || fail "no link $link"
done
say "seven routers run, joined by seven links"

echo 'Symphony no. 9, tonight at 8' >"$scratch/programme"
"$namewire" --transport "$(uri_of a)" tag advertise concert classical --answer "$scratch/programme" \
    >"$scratch/hall.log" 2>&1 &
"$namewire" --transport "$(uri_of g)" tag advertise news --serves push --count 1 \
    >"$scratch/newspaper.log" 2>&1 &
newspaper=$!
say "router a has an application for {classical, concert}, router g one for {news}"

has_found() { at e tag pull classical Beethoven ninth concert 360bps --timeout 500 >"$scratch/answer"; }
wait_until 60 has_found || fail "router e did not find the concert"
say "router e pulled {360bps, Beethoven, classical, concert, ninth}: $(cat "$scratch/answer")"
cmp -s "$scratch/programme" "$scratch/answer" || fail "another answer"
if at e tag pull classical --timeout 300 >/dev/null 2>&1; then fail "a pull without the tag concert was answered"; fi
say "a pull of {classical} alone found nothing, as it should"

has_heard() { at c tag push news concert --payload 'the tenor is ill' && sleep 0.2 && ! kill -0 "$newspaper"; }
wait_until 60 has_heard || fail "the news did not arrive"
grep -qF 'the tenor is ill' "$scratch/newspaper.log" || fail "the news was not printed"
grep -qF 'the tenor is ill' "$scratch/hall.log" && fail "the hall got news that it did not ask for"
say "router c pushed {concert, news}: the application at router g got it, the hall did not"

for router in a d; do
    say "what router $router knows:"
    at "$router" tag routes
    at "$router" tag locator
done
for pid in "${routers[@]}"; do stop "$pid" "a router"; done
say "everything stopped; done"
