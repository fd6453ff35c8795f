#!/usr/bin/env python3
"""Runs a router for 64-bit ARM under an emulator, with applications for it: a file goes through.

Usage: test_arm64.py PROGRAM. The program is static. It needs qemu-aarch64 (`make arm64`).
"""
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EMULATOR = "qemu-aarch64"
WAIT_SECONDS_MAX = 120


def main() -> None:
    command = [EMULATOR, sys.argv[1]]
    with tempfile.TemporaryDirectory() as folder:
        published, fetched, socket = (Path(folder) / name for name in ("published", "fetched", "nfd.sock"))
        published.write_bytes(os.urandom(200_000))
        environment = {**os.environ, "NDN_CLIENT_TRANSPORT": f"unix://{socket}", "HOME": folder}
        running = [subprocess.Popen([*command, "run", "--socket", socket, "--no-udp", "--no-tcp"], env=environment)]
        ends = time.monotonic() + WAIT_SECONDS_MAX
        try:
            while not socket.exists():
                assert running[0].poll() is None and time.monotonic() < ends, "the router does not start"
                time.sleep(0.1)
            running.append(subprocess.Popen([*command, "put", published, "/arm64"], env=environment))
            while subprocess.run([*command, "get", "/arm64", "-o", fetched], env=environment).returncode != 0:
                assert time.monotonic() < ends, "nothing comes through the router"
                time.sleep(0.5)
            assert fetched.read_bytes() == published.read_bytes(), "another file came through the router"
            router = running[0]
            router.terminate()
            assert router.wait(timeout=60) == 0, f"the router ended with {router.returncode}"
        finally:
            for process in running:
                process.kill()
                process.wait()
    print("a router for 64-bit ARM, under an emulator: a file went through it")


main()
