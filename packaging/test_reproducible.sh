#!/bin/sh
# Builds what people download a second time, from a copy of the sources in another folder, and compares the sums:
# test_reproducible.sh DIST FOLDER. DIST is of `make dist`, and SOURCE_DATE_EPOCH is what it was then.
#
# The copy has other times, another umask, time zone and language. It shares only the tools that setup.sh has installed, and
# the crates that cargo has fetched.
set -eu
dist=$1 folder=$2
cd "$(dirname "$0")/.."
copy=$folder/of-the-sources
rm -rf "$folder"
mkdir -p "$copy"
git ls-files --cached --others --exclude-standard | while read -r file; do
    [ ! -e "$file" ] || echo "$file"
done | tar --create --files-from - | tar --extract --touch --directory "$copy"
ln -s "$PWD/.tools" "$copy/.tools"
# A checkout may have a toolchain of its own.
[ ! -d .toolchain ] || ln -s "$PWD/.toolchain" "$copy/.toolchain"
(
    unset CARGO_TARGET_DIR MAKEFLAGS MAKEOVERRIDES MAKELEVEL
    umask 077
    cd "$copy"
    TZ=Asia/Tokyo LC_ALL=C.UTF-8 make --no-print-directory dist >"$folder/said" 2>&1
) || { cat "$folder/said"; exit 1; }
if ! diff "$dist/SHA256SUMS" "$copy/target/dist/SHA256SUMS"; then
    echo "two builds differ; the second is in $copy/target/dist" >&2
    exit 1
fi
echo "two builds in two folders are equal: $(grep -c . "$dist/SHA256SUMS") files"
rm -rf "$folder"
