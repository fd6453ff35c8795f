#!/bin/sh
# Installs a Namewire that somebody has built: the program, manual pages and completions. It needs no root.
#
#   install.sh [--from FOLDER_OR_URL] [--version VERSION] [--prefix FOLDER]
#   install.sh --uninstall [--prefix FOLDER]
#
# --from     where the archives and their SHA256SUMS are. Without it: NAMEWIRE_RELEASES, or the release that this file came with
# --version  which version, if there are several
# --prefix   ~/.local; for root /usr/local
#
# Nothing is installed if an archive has another sum than SHA256SUMS says. Both come from the same place: so the sum finds a
# damaged archive, and says nothing about who made it. packaging/test_installer.py tests this script.
set -eu

# packaging/release.sh writes the release's place here.
release=

say() { echo "namewire: $*"; }
fail() { echo "namewire: $*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

usage() {
    echo 'usage: install.sh [--from FOLDER_OR_URL] [--version VERSION] [--prefix FOLDER]'
    echo '       install.sh --uninstall [--prefix FOLDER]'
}

# fetch NAME FILE
fetch() {
    case $from in
        http://* | https://*)
            if has curl; then
                curl --fail --silent --show-error --location --output "$2" "$from/$1"
            elif has wget; then
                wget -q -O "$2" "$from/$1"
            else
                fail "curl or wget is needed to fetch $from/$1"
            fi ;;
        *) cp "$from/$1" "$2" ;;
    esac || fail "cannot get $1 from $from"
}

sum_of() {
    if has sha256sum; then sha256sum <"$1" | cut -d ' ' -f 1
    elif has shasum; then shasum -a 256 <"$1" | cut -d ' ' -f 1
    elif has openssl; then openssl dgst -sha256 <"$1" | sed 's/.* //'
    else fail "sha256sum, shasum or openssl is needed to check the archive"
    fi
}

architecture() {
    [ "$(uname -s)" = Linux ] || fail "there are programs for Linux only, and this is $(uname -s)"
    case $(uname -m) in
        x86_64 | amd64) echo x86_64 ;;
        aarch64 | arm64) echo aarch64 ;;
        *) fail "there is no program for $(uname -m); build one from the sources" ;;
    esac
}

# Prints the name of the archive for this machine, by the lines of SHA256SUMS.
find_archive() {
    sed -n "s/^[0-9a-f]\{64\} [ *]\(namewire-${version:-[^/]*}-$1-linux\.tar\.gz\)\$/\1/p" "$scratch/SHA256SUMS" >"$scratch/names"
    case $(grep -c . "$scratch/names") in
        0) fail "$from has no archive ${version:+of version $version }for $1" ;;
        1) cat "$scratch/names" ;;
        *) fail "$from has several versions; choose one by --version:
$(cat "$scratch/names")" ;;
    esac
}

install_release() {
    [ -n "$from" ] || fail "name the folder or URL of a release: --from, or the variable NAMEWIRE_RELEASES"
    for tool in tar gzip; do has "$tool" || fail "$tool is missing"; done
    machine=$(architecture)
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 1' HUP INT TERM
    fetch SHA256SUMS "$scratch/SHA256SUMS"
    archive=$(find_archive "$machine")
    fetch "$archive" "$scratch/archive"
    wanted=$(sed -n "s/^\([0-9a-f]\{64\}\) [ *]$archive\$/\1/p" "$scratch/SHA256SUMS")
    found=$(sum_of "$scratch/archive")
    [ "$found" = "$wanted" ] || fail "$archive has SHA-256 $found, and not $wanted as SHA256SUMS says. Nothing was installed."
    gzip -dc "$scratch/archive" >"$scratch/archive.tar"
    (cd "$scratch" && tar -xf archive.tar)
    tree=$scratch/${archive%.tar.gz}
    if ! mkdir -p "$prefix/bin" 2>/dev/null || [ ! -w "$prefix/bin" ]; then
        fail "$prefix cannot be written; name another folder by --prefix"
    fi
    prefix=$(cd "$prefix" && pwd)
    remove_pages # those of another version
    cp -R "$tree/share" "$prefix/"
    # A router that runs keeps the old program.
    cp "$tree/bin/namewire" "$prefix/bin/.namewire-new"
    mv -f "$prefix/bin/.namewire-new" "$prefix/bin/namewire"
    said=$("$prefix/bin/namewire" --version) || fail "$prefix/bin/namewire does not run here"
    say "$said is in $prefix/bin; example configuration and systemd unit are in $prefix/share/doc/namewire"
    case :$PATH: in
        *":$prefix/bin:"*) ;;
        *) say "add this line to ~/.profile: export PATH=\"$prefix/bin:\$PATH\"" ;;
    esac
}

remove_pages() { rm -f "$prefix"/share/man/man1/namewire.1 "$prefix"/share/man/man1/namewire-*.1; }

# Configuration and state stay.
uninstall() {
    [ -e "$prefix/bin/namewire" ] || fail "$prefix has no Namewire; name another folder by --prefix"
    remove_pages
    rm -f "$prefix/bin/namewire" "$prefix/share/bash-completion/completions/namewire" \
        "$prefix/share/zsh/site-functions/_namewire" "$prefix/share/fish/vendor_completions.d/namewire.fish"
    rm -rf "$prefix/share/doc/namewire"
    say "removed from $prefix"
}

# The last line of this file calls it: a shell that reads half of the file runs nothing.
main() {
    from=${NAMEWIRE_RELEASES:-$release} version='' does=install_release
    if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:-}/.local; fi
    while [ $# -gt 0 ]; do
        case $1 in
            --uninstall) does=uninstall; shift; continue ;;
            --help) usage; return 0 ;;
            --from | --version | --prefix) [ $# -ge 2 ] || fail "$1 needs a value" ;;
            *) usage >&2; fail "unknown option $1" ;;
        esac
        case $1 in
            --from) from=$2 ;;
            --version) version=$2 ;;
            --prefix) prefix=$2 ;;
        esac
        shift 2
    done
    from=${from%/}
    "$does"
}

main "$@"
