#!/bin/sh
# Packs what people download for one kind of processor: dist.sh PROGRAM ARCHITECTURE VERSION TARGET. PROGRAM is static.
# Manual pages and completions are in TARGET/package; archive, packages, image and SBOM go to TARGET/dist.
#
# The same program gives the same bytes: names are sorted, root owns all, all times are SOURCE_DATE_EPOCH. The packages have
# the static program, and not one for the C library of the machine that built it: so they fit each version of a system.
set -eu
program=$1 architecture=$2 version=$3 target=$4
cd "$(dirname "$0")/.."
umask 022
dist=$target/dist pages=$target/package
name=namewire-$version-$architecture-linux
mkdir -p "$dist"

# The folders are those below a prefix, such as ~/.local; packaging/install.sh copies them.
tree=$target/dist-$architecture/$name
rm -rf "$tree"
install -D -m 755 "$program" "$tree/bin/namewire"
install -D -m 644 -t "$tree/share/man/man1" "$pages"/man/*.1
install -D -m 644 "$pages/completions/bash" "$tree/share/bash-completion/completions/namewire"
install -D -m 644 "$pages/completions/zsh" "$tree/share/zsh/site-functions/_namewire"
install -D -m 644 "$pages/completions/fish" "$tree/share/fish/vendor_completions.d/namewire.fish"
install -D -m 644 -t "$tree/share/doc/namewire" README.md CHANGELOG.md LICENSE* \
    packaging/namewire.toml packaging/systemd/namewire.service packaging/socket/namewire.socket
tar --create --directory "${tree%/*}" --format ustar --sort name --owner 0 --group 0 --numeric-owner \
    --mtime "@$SOURCE_DATE_EPOCH" "$name" | gzip --no-name --best >"$dist/$name.tar.gz"
rm -rf "${tree%/*}"

CARGO_TARGET_DIR=$target/static .tools/bin/cargo-deb --package namewire-cli --target "$architecture-unknown-linux-musl" \
    --no-build --no-strip --quiet --output "$dist/"
CARGO_TARGET_DIR=$target/static .tools/bin/cargo-deb --package namewire-cli --target "$architecture-unknown-linux-musl" \
    --variant nfd --no-build --no-strip --quiet --output "$dist/"
install -m 755 "$program" "$pages/namewire"
# cargo-generate-rpm makes times that are later than SOURCE_DATE_EPOCH equal to it, and leaves earlier ones.
touch --date "@$SOURCE_DATE_EPOCH" README.md CHANGELOG.md LICENSE* packaging/namewire.toml packaging/systemd/* \
    packaging/socket/* packaging/nfd/*
.tools/bin/cargo-generate-rpm --package crates/cli --arch "$architecture" --auto-req disabled --output "$dist/"
.tools/bin/cargo-generate-rpm --package crates/cli --arch "$architecture" --variant nfd --output "$dist/"

packaging/write_image.py "$program" "$architecture" "$version" "$target/dist-image.tar"
gzip --no-name --best <"$target/dist-image.tar" >"$dist/$name-image.tar.gz"
rm "$target/dist-image.tar"

packaging/sbom.py "$dist/$name.cdx.json" "$target/sbom/sources" "$architecture-unknown-linux-musl"
