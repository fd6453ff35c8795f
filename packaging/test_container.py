#!/usr/bin/env python3
"""Runs the container image: it starts, is healthy, forwards, keeps its state, ends.

Usage: test_container.py IMAGE.tar FOLDER, after `make container`. It needs root. No container engine takes part: the
test reads the image's own settings and does what they say (image.py). Applications run outside the container. Exit
status 3: what the test needs cannot be had here.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from bare_root import missing, own_network
from image import Container, Image

BYTES_MAX = 30_000_000
PROGRAM = "/usr/bin/namewire"
FILES = {PROGRAM.lstrip("/"), "etc/namewire/namewire.toml", "etc/passwd", "etc/group",
         *(f"usr/share/doc/namewire/{name}" for name in ("LICENSE", "LICENSE-APACHE", "LICENSE-MIT"))}
WAIT_SECONDS_MAX = 60


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fetches_what_was_published(image: Image, socket: Path, folder: Path) -> None:
    """A file goes in by the socket and comes out by UDP and by TCP."""
    program = image.root / PROGRAM.lstrip("/")
    published = folder / "published"
    published.write_bytes(os.urandom(1_000_000))
    through = {"NDN_CLIENT_TRANSPORT": f"unix://{socket}", "HOME": str(folder)}
    producer = subprocess.Popen([program, "put", published, "/container/test"], env=through,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for transport in ("udp4", "tcp4"):
            fetched = folder / transport
            through["NDN_CLIENT_TRANSPORT"] = f"{transport}://127.0.0.1:6363"
            ends = time.monotonic() + WAIT_SECONDS_MAX
            while (done := subprocess.run([program, "get", "/container/test", "-o", fetched], env=through, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)).returncode != 0:
                if time.monotonic() > ends:
                    sys.exit(f"nothing comes by {transport}: {done.stdout}")
                time.sleep(0.1)
            assert digest(fetched) == digest(published), f"another file came by {transport}"
    finally:
        producer.terminate()
        producer.wait(timeout=60)


def main() -> None:
    archive, folder = (Path(argument).resolve() for argument in sys.argv[1:3])
    if os.geteuid() != 0:
        missing("the container image", "it needs root")
    own_network()
    shutil.rmtree(folder, ignore_errors=True)
    image = Image(archive, folder / "root")
    settings = image.settings
    print(f"the image has {image.bytes / 1e6:.1f} MB")
    assert image.bytes < BYTES_MAX, f"the image should have less than {BYTES_MAX} bytes"
    assert image.files() == FILES, f"files: {image.files()}"
    assert set(settings["ExposedPorts"]) == {"6363/udp", "6363/tcp"}, settings["ExposedPorts"]
    assert settings["StopSignal"] == "SIGTERM", settings["StopSignal"]
    assert settings["Labels"]["org.opencontainers.image.version"], settings["Labels"]
    assert "0" not in settings["User"].split(":"), "the router runs as root"
    kind, *check = settings["Healthcheck"]["Test"]
    assert kind == "CMD", kind

    volumes = {}
    for place in settings["Volumes"]:
        volumes[place] = folder / "volumes" / place.replace("/", "-")
        # An engine fills a new volume with what the image has there, with its owner.
        shutil.copytree(image.root / place.lstrip("/"), volumes[place])
        owner = (image.root / place.lstrip("/")).stat()
        os.chown(volumes[place], owner.st_uid, owner.st_gid)
    container = Container(image, volumes)
    container.wait_until_healthy(*check)
    fetches_what_was_published(image, volumes["/run/nfd"] / "nfd.sock", folder)
    neighbour = ("udp://neighbour.example:7000", "--persistency", "permanent")
    status, said = container.run(PROGRAM, "face", "create", *neighbour)
    assert status == 0 and "127.0.0.1:7000" in said, f"a host name is not found: {said}"
    ended = container.stop()
    assert ended == 0, f"after SIGTERM it ended with {ended}: {container.said}"
    assert container.run(*check)[0] != 0, "a container without a router is healthy"
    container.remove()
    print("healthy, a file went through it by UDP and TCP, ended with status 0")

    container = Container(image, volumes)
    container.wait_until_healthy(*check)
    faces = container.run(PROGRAM, "face", "list")[1]
    assert "127.0.0.1:7000" in faces, f"the volume did not keep the face: {faces}"
    container.stop()
    container.remove()
    shutil.rmtree(folder)
    print("another container with the same volumes has the face that the first one made")


main()
