#!/bin/sh
# Publishes target/dist as a release of the forge, in a workflow that a tag started (.github/workflows/release.yml).
#
#   release.sh check    is the tag v and the version of the sources?
#   release.sh publish  attaches all of target/dist, and an install.sh that knows where this release is
#
# The forge says in GITHUB_REF_NAME, GITHUB_SERVER_URL and GITHUB_REPOSITORY which tag and repository it is. `gh`, which its
# machines have, talks to the forge with the rights of GH_TOKEN. DIST names another folder than target/dist.
set -eu
cd "$(dirname "$0")/.."

fail() { echo "release: $*" >&2; exit 1; }

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
[ "$GITHUB_REF_NAME" = "v$version" ] || fail "the tag is $GITHUB_REF_NAME, and Cargo.toml has version $version"
case ${1:-} in
    check) exit 0 ;;
    publish) ;;
    *) fail "usage: release.sh check|publish" ;;
esac

dist=${DIST:-target/dist}
(cd "$dist" && sha256sum --check --quiet SHA256SUMS) || fail "$dist is not what SHA256SUMS says"
place=$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/releases/download/$GITHUB_REF_NAME
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sed "s|^release=\$|release='$place'|" packaging/install.sh >"$scratch/install.sh"
cat >"$scratch/notes.md" <<END
On Linux, for you alone and without root:

    curl -fsSL $place/install.sh | sh

Packages: \`.deb\` for Debian and Ubuntu, \`.rpm\` for Fedora, RHEL and openSUSE; \`-image.tar.gz\` is for \`docker load\` and
\`podman load\`. \`SHA256SUMS\` has the sums of all files. Two runs of \`make dist\` on the same commit give the same sums.
END
gh release create "$GITHUB_REF_NAME" --verify-tag --title "Namewire $version" --notes-file "$scratch/notes.md" \
    "$dist"/* "$scratch/install.sh"
