#!/usr/bin/env python3
"""Writes the container image: a static program, its configuration and the licences, and nothing else.

Usage: write_image.py PROGRAM ARCHITECTURE VERSION IMAGE.tar. The image is an archive that `docker load` and `podman load`
read (docker-archive: manifest.json, the settings as JSON, a tar for each layer). Its format is that of Docker, because
OCI images have no health check.

No container engine takes part. So no user needs root, an image for another processor needs no emulator, and the same
program gives the same bytes on each machine: names are sorted, and all times are SOURCE_DATE_EPOCH (0 without it).
"""
import hashlib
import io
import json
import os
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
CREATED = datetime.fromtimestamp(SECONDS, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# User `ndn`, as a number: Kubernetes cannot tell from a name that it is not root.
NDN = 6363
# Where the router makes its socket and keeps its state.
VOLUMES = ["run/nfd", "var/lib/namewire"]
SECOND_IN_NS = 1_000_000_000


def settings(version: str) -> dict:
    return {
        "User": f"{NDN}:{NDN}",
        "ExposedPorts": {"6363/tcp": {}, "6363/udp": {}},
        "Env": ["PATH=/usr/bin"],
        "Entrypoint": ["/usr/bin/namewire"],
        "Cmd": ["run", "--config", "/etc/namewire/namewire.toml", "--state", "/var/lib/namewire/state.toml"],
        # `namewire status` is an Interest through a worker to the router's management, and back.
        "Healthcheck": {"Test": ["CMD", "/usr/bin/namewire", "status"], "Interval": 10 * SECOND_IN_NS,
                        "Timeout": 5 * SECOND_IN_NS, "Retries": 3},
        "Volumes": {f"/{volume}": {} for volume in VOLUMES},
        "WorkingDir": "/",
        "StopSignal": "SIGTERM",
        "Labels": {"org.opencontainers.image.title": "Namewire",
                   "org.opencontainers.image.description": "A router for Named Data Networking",
                   "org.opencontainers.image.version": version,
                   "org.opencontainers.image.licenses": "MIT OR Apache-2.0"},
    }


def files(program: Path) -> dict[str, tuple[bytes, int]]:
    """Content and mode of each file."""
    licences = {f"usr/share/doc/namewire/{path.name}": (path.read_bytes(), 0o644) for path in ROOT.glob("LICENSE*")}
    return licences | {
        "usr/bin/namewire": (program.read_bytes(), 0o755),
        "etc/namewire/namewire.toml": ((ROOT / "packaging/namewire.toml").read_bytes(), 0o644),
        "etc/passwd": (f"ndn:x:{NDN}:{NDN}:NDN router:/var/lib/namewire:/sbin/nologin\n".encode(), 0o644),
        "etc/group": (f"ndn:x:{NDN}:\n".encode(), 0o644),
    }


def entry(name: str, mode: int, size: int = 0) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.size, entry.mtime = mode, size, SECONDS
    return entry


def layer(program: Path) -> bytes:
    contents = files(program)
    folders = {str(parent) for name in [*contents, *VOLUMES] for parent in Path(name).parents} | set(VOLUMES)
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted((folders - {"."}) | contents.keys()):
            if name in contents:
                data, mode = contents[name]
                archive.addfile(entry(name, mode, len(data)), io.BytesIO(data))
                continue
            folder = entry(name, 0o755)
            folder.type = tarfile.DIRTYPE
            if name in VOLUMES:
                folder.uid = folder.gid = NDN
            archive.addfile(folder)
    return written.getvalue()


def main() -> None:
    program, architecture, version, image = sys.argv[1:5]
    data = layer(Path(program))
    digest = hashlib.sha256(data).hexdigest()
    description = json.dumps({
        "architecture": ARCHITECTURES[architecture], "os": "linux", "created": CREATED, "config": settings(version),
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created": CREATED, "created_by": "packaging/write_image.py"}],
    }, sort_keys=True).encode()
    named = f"{hashlib.sha256(description).hexdigest()}.json"
    manifest = json.dumps([{"Config": named, "RepoTags": [f"namewire:{version}"], "Layers": [f"{digest}.tar"]}]).encode()
    Path(image).parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(image, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in ((f"{digest}.tar", data), (named, description), ("manifest.json", manifest)):
            archive.addfile(entry(name, 0o644, len(content)), io.BytesIO(content))


main()
