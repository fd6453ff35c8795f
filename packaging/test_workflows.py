#!/usr/bin/env python3
"""Runs the commands of the workflow files without a forge: would a tag publish all of `make dist`, and can it be had?

Usage: test_workflows.py DIST, after `make dist`. Each `run:` line of .github/workflows runs in a shell, with the variables
of a forge and three fakes in PATH: `sudo` and `make` show that their command exists, and `gh` keeps what it would attach.
Then a web server of the test is the forge: a visitor types the line of the release's notes.
"""
import http.server
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
REPOSITORY, TAG = "someone/namewire", f"v{VERSION}"
PLACE = f"{REPOSITORY}/releases/download/{TAG}"
FAKES = {
    # What it would run takes long, or changes this machine.
    "make": 'exec grep -q "^$1:" Makefile',
    "sudo": 'exec test -x "$1"',
    "gh": """echo "$*" >>{folder}/gh
for argument; do
    case $argument in
        *.md) cp "$argument" {folder}/notes ;;
        /*) cp "$argument" {attached}/ ;;
    esac
done""",
}


def run_lines(name: str) -> list[str]:
    text = (ROOT / ".github/workflows" / name).read_text()
    lines = re.findall(r"^ *(?:- )?run: (.+)$", text, re.MULTILINE)
    assert lines and not any(line in "|>" for line in lines), f"{name}: each command is one line"
    return lines


class Forge:
    """Runs commands as a machine of a forge does, with fakes, in the folder."""

    def __init__(self, folder: Path, dist: Path, server: str):
        self.folder, self.attached = folder, folder / "served" / PLACE
        self.attached.mkdir(parents=True)
        (folder / "bin").mkdir()
        for name, does in FAKES.items():
            script = folder / "bin" / name
            does = does.format(folder=folder, attached=self.attached)
            script.write_text(f"#!/bin/sh\nset -eu\n{does}\n")
            script.chmod(0o755)
        self.environment = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder), "DIST": str(dist),
                            "GITHUB_SERVER_URL": server, "GITHUB_REPOSITORY": REPOSITORY}

    def run(self, line: str, tag: str = TAG) -> int:
        # As the runner calls its shell.
        return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", line], cwd=ROOT,
                              env=self.environment | {"GITHUB_REF_NAME": tag}).returncode


def visit(folder: Path, notes: str) -> None:
    """Types the line of the notes in an empty home."""
    line = re.search(r"^    (curl .*)", notes, re.MULTILINE)[1]
    home = folder / "visitor"
    home.mkdir()
    # Root would install for all.
    line = f"{line} -s -- --prefix {home}/.local"
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    subprocess.run(["sh", "-c", line], env=environment, check=True)
    said = subprocess.run([home / ".local/bin/namewire", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert VERSION in said, said


def main() -> None:
    dist = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "served").mkdir()

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder / "served"))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        forge = Forge(folder, dist, f"http://127.0.0.1:{server.server_port}")

        tried = 0
        for workflow in ("ci.yml", "release.yml"):
            for line in run_lines(workflow):
                assert forge.run(line) == 0, f"{workflow}: this failed: {line}"
                tried += 1
        assert forge.run("packaging/release.sh check", tag="v999.0.0") != 0, "a tag of another version passes"
        gh = (folder / "gh").read_text()
        assert gh.startswith(f"release create {TAG} ") and gh.count("\n") == 1, gh
        expected = {path.name for path in dist.iterdir()} | {"install.sh"}
        attached = {path.name for path in forge.attached.iterdir()}
        assert attached == expected, f"attached or not: {sorted(attached ^ expected)}"
        if shutil.which("curl"):
            visit(folder, (folder / "notes").read_text())
        server.shutdown()
    print(f"{tried} commands of the workflows ran; a release has {len(attached)} files, and its line installs a router")


main()
