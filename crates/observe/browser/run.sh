#!/bin/sh
# A page in a real browser: the router's, with a made-up router behind it, or that of another test.
#
# Usage: run.sh NODE_DIR OUT_DIR [TEST]
#   NODE_DIR  a folder for the packages of package-lock.json; made and filled if need be
#   OUT_DIR   a folder for screenshots
#   TEST      the program of another page's test, which gets NODE_DIR and OUT_DIR
#
# Needs node (18 or later), npm and chromium. What is missing is said in one line, and the exit status is 3.
# Exit status 0: all checks passed; 1: some failed; 2: wrong use.
#
# Environment: DEMO      the built example `demo` (default: built here with cargo)
#              CHROMIUM  the browser (default: chromium or chromium-browser of PATH)
set -eu

[ $# = 2 ] || [ $# = 3 ] || { echo "usage: run.sh NODE_DIR OUT_DIR [TEST]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" "$2"
node_dir=$(cd "$1" && pwd)
out_dir=$(cd "$2" && pwd)

missing() { echo "browser test not run: $1" >&2; exit 3; }
command -v node >/dev/null || missing "node is missing (18 or later)"
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 18 ] || missing "node is older than 18"
command -v npm >/dev/null || missing "npm is missing"
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
[ -x "$CHROMIUM" ] || missing "chromium is missing"
export CHROMIUM

if ! cmp -s "$here/package-lock.json" "$node_dir/package-lock.json" || [ ! -d "$node_dir/node_modules" ]; then
    rm -f "$node_dir/package-lock.json"
    cp "$here/package.json" "$node_dir/"
    cp "$here/package-lock.json" "$node_dir/package-lock.new"
    mv "$node_dir/package-lock.new" "$node_dir/package-lock.json"
    (cd "$node_dir" && npm ci --ignore-scripts --no-audit --no-fund --silent) ||
        { rm -f "$node_dir/package-lock.json"; missing "npm cannot get the packages"; }
fi

[ $# = 2 ] || exec node "$3" "$node_dir" "$out_dir"

if [ -z "${DEMO:-}" ]; then
    (cd "$here/.." && cargo build --quiet -p namewire-observe --example demo)
    DEMO=${CARGO_TARGET_DIR:-$here/../../../target}/debug/examples/demo
fi
export DEMO

exec node "$here/page_test.mjs" "$node_dir" "$out_dir"
