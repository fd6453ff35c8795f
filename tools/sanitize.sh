#!/bin/sh
# Runs tests under a sanitizer or Miri, over the crates whose files may contain `unsafe` (docs/unsafe.md).
#
#   tools/sanitize.sh address   reads and writes outside of objects, use after free: tables, shares, faces, afxdp
#   tools/sanitize.sh thread    data races: readers and writer of the FIB, rings, whole routers with several workers
#   tools/sanitize.sh miri      undefined behaviour of the parts of tables that need no mapped memory
#
# Needs a nightly toolchain with rust-src and miri: `rustup toolchain install nightly --component rust-src,miri`.
#
# Limits: Miri knows no `mmap` without reservation, so no table, and no sockets. The address sanitizer does not
# know our own arenas: it does not see an access outside of an object but within the arena. One test is left out for
# Miri, which would take minutes for it.
set -eu
cd "$(dirname "$0")/.."

target=x86_64-unknown-linux-gnu
directory=${CARGO_TARGET_DIR:-target}/sanitize
cargo +nightly --version >/dev/null 2>&1 || {
    echo "sanitize: needs a nightly toolchain: rustup toolchain install nightly --component rust-src,miri" >&2
    exit 1
}

case ${1:-} in
address)
    # Leaks are not reported: some tests leak on purpose, and the C library's threads keep memory.
    ASAN_OPTIONS=detect_leaks=0 RUSTFLAGS="-Zsanitizer=address" cargo +nightly test --locked --target "$target" \
        --target-dir "$directory" --package namewire-tables --package namewire-shares --package namewire-faces \
        --package namewire-afxdp --lib --tests
    ;;
thread)
    # The sanitizer sees calls of the C library, not system calls: it must know that memory which one thread unmaps and
    # another maps at the same address is not the same.
    TSAN_OPTIONS=halt_on_error=1 RUSTFLAGS="-Zsanitizer=thread --cfg=rustix_use_libc" \
        cargo +nightly test -Zbuild-std --locked --target "$target" --target-dir "$directory" \
        --package namewire-tables --package namewire-worker --package namewire-router --lib --tests
    ;;
miri)
    MIRIFLAGS="-Zmiri-disable-isolation" cargo +nightly miri test --locked --target-dir "$directory" \
        --package namewire-tables --lib -- tag_compare:: short_copy:: --skip four_at_once
    ;;
*)
    echo "usage: tools/sanitize.sh address|thread|miri" >&2
    exit 2
    ;;
esac
