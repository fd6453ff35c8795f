#!/bin/sh
# Zig's clang as the C compiler of packaging/static.sh, which sets ZIG and ARCHITECTURE. Crates that compile C name the
# target as Rust does, and Zig has another name for it.
set -eu
for argument; do
    shift
    case $argument in
        --target=*) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "$ZIG" cc -target "$ARCHITECTURE-linux-musl" "$@"
