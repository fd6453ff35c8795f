#!/bin/sh
# Builds the image: build.sh PROGRAM VERSION FOLDER. PROGRAM is static. The image goes to FOLDER/namewire.tar, an
# archive that `docker load` and `podman load` read. Layers are kept in FOLDER only, and nothing is fetched.
set -eu
program=$1 version=$2 folder=$3
here=$(dirname "$0")
context=$folder/context
rm -rf "$context" "$folder/namewire.tar"
mkdir -p "$context/empty"
install -D --strip -m 755 "$program" "$context/root/usr/bin/namewire"
install -D -m 644 "$here/../namewire.toml" "$context/root/etc/namewire/namewire.toml"
echo 'ndn:x:6363:6363:NDN router:/var/lib/namewire:/sbin/nologin' > "$context/root/etc/passwd"
echo 'ndn:x:6363:' > "$context/root/etc/group"
install -D -m 644 -t "$context/root/usr/share/doc/namewire" "$here"/../../LICENSE*

builder=buildah
command -v "$builder" >/dev/null || builder=podman
builder() {
    command=$1; shift
    "$builder" --root "$folder/storage" --runroot "$folder/storage-run" --storage-driver vfs "$command" "$@"
}
# The format of Docker, because OCI images have no health check.
builder build --quiet --isolation chroot --format docker --build-arg "VERSION=$version" \
    --tag "namewire:$version" --file "$here/Containerfile" "$context" >/dev/null
builder push --quiet "namewire:$version" "docker-archive:$folder/namewire.tar:namewire:$version"
builder rmi --all --force >/dev/null
rm -rf "$context"
