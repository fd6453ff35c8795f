#!/bin/sh
# Builds static programs: static.sh ARCHITECTURE FOLDER COMMAND OPTION... runs cargo with musl as the C library.
#
# The same sources give the same bytes on each machine and in each folder. Rust is the version of rust-toolchain.toml. The
# C compiler is Zig's clang, which brings musl's headers for each processor; Rust brings musl itself, and the linker. The
# names of folders on this machine are replaced, because compilers write them into messages and debug information.
set -eu
architecture=$1 folder=$2 command=$3
shift 3
cd "$(dirname "$0")/.."
target=$architecture-unknown-linux-musl
in_names=$(echo "$target" | tr - _)
in_cargo=$(echo "$in_names" | tr '[:lower:]' '[:upper:]')
export ZIG="$PWD/.tools/zig/bin/zig" ARCHITECTURE="$architecture"

# musl reads packed relocations. The path of the linker script is relative, because cargo makes options part of the bytes,
# all but the names of folders; it links members of the workspace in the workspace's folder.
rust_flags="-C link-arg=-z -C link-arg=pack-relative-relocs"
rust_flags="$rust_flags -C link-arg=--no-eh-frame-hdr -C link-arg=-Tpackaging/no_unwind_tables.ld"
c_flags=-fno-sanitize=undefined # which Zig switches on in builds without optimisation
# renamed FOLDER NAME
renamed() {
    rust_flags="$rust_flags --remap-path-prefix=$1=$2"
    c_flags="$c_flags -ffile-prefix-map=$1=$2"
}
cargo fetch --locked --quiet
renamed "$PWD" /namewire
renamed "$folder" /namewire/target
for crates in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do renamed "$crates" /crates; done
# Where the toolchain has the sources of the standard library, the compiler names their folder instead of its own.
compiled_from=/rustc/$(rustc --version --verbose | sed -n 's/^commit-hash: //p')
renamed "$(rustc --print sysroot)/lib/rustlib/src/rust" "$compiled_from"

export "CC_$in_names=$PWD/packaging/zig_cc.sh"
export "AR_$in_names=$ZIG ar"
export "CFLAGS_$in_names=$c_flags"
export "CARGO_TARGET_${in_cargo}_LINKER=rust-lld"
export RUSTFLAGS="$rust_flags" CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_PROFILE_RELEASE_LTO=fat
export ZIG_GLOBAL_CACHE_DIR="$folder/zig" ZIG_LOCAL_CACHE_DIR="$folder/zig"
exec cargo "$command" --locked --target "$target" --target-dir "$folder" "$@"
