#!/usr/bin/env python3
"""Installs what people download, and runs it: a file goes through the router between two terminals.

Usage: test_dist.py DIST FOLDER, after `make dist`. install.sh runs for a user without rights in a bare Debian, which has
neither curl nor a compiler; FOLDER keeps the bare Debian (bare_root.py). The package is installed into another one. Where
none can be made, install.sh runs on this machine with an empty home. The program for 64-bit ARM runs under an emulator,
if there is one.
"""
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from bare_root import CONFIGURATION, Root, own_network, template

HERE = Path(__file__).resolve().parent
USER = "visitor"
# Installs, and then does what README says. $1 is the folder of the release, the rest are options of the router.
VISIT = r"""set -eu
release=$1; shift
cd "$HOME"
sh "$release/install.sh" --from "$release"
PATH=$HOME/.local/bin:$PATH
namewire --version
test -s .local/share/man/man1/namewire-run.1
namewire config check .local/share/doc/namewire/namewire.toml
head -c 300000 /dev/urandom >published
namewire run "$@" >run.log 2>&1 &
router=$!
sleep 1
namewire put published /visitor/file >put.log 2>&1 &
producer=$!
attempts=0
until namewire get /visitor/file -o fetched >get.log 2>&1; do
    attempts=$((attempts + 1))
    if [ $attempts = 20 ]; then break; fi
    sleep 1
done
kill $producer $router
cmp published fetched || { cat run.log put.log get.log; exit 1; }
sh "$release/install.sh" --uninstall
test -z "$(find .local -type f)"
"""


def add_release(dist: Path, folder: Path) -> None:
    shutil.copytree(dist, folder)
    shutil.copy(HERE / "install.sh", folder)


def in_bare_root(bare: Path, dist: Path, folder: Path) -> None:
    root = Root(bare, folder / "root-dist")
    root.run("useradd", "--create-home", USER)
    add_release(dist, root.folder / "release")
    before = root.files()
    print(root.run("env", f"HOME=/home/{USER}", "sh", "-c", VISIT, "sh", "/release", user=USER).stdout.rstrip())
    left = sorted(name for name in root.files() - before if not name.startswith((f"home/{USER}/", "tmp/")))
    assert not left, f"outside the home: {left}"
    print("a user of a bare root installed it, a file went through, and removed it")

    of_dpkg = root.run("dpkg", "--print-architecture").stdout.strip()
    package, names = (next(dist.glob(f"{name}_*_{of_dpkg}.deb")).name for name in ("namewire", "namewire-nfd"))
    root.run("dpkg", "--install", f"/release/{package}", f"/release/{names}")
    root.run("namewire", "config", "check", f"/{CONFIGURATION}")
    root.run("ndnping", "-V")
    print(f"{package} and {names}: installed")
    if shutil.which("rpm"):
        package = next(dist.glob(f"namewire-[0-9]*.{platform.machine()}.rpm"))
        requires = subprocess.run(["rpm", "--query", "--package", "--requires", package], check=True, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        assert "useradd" in requires and ".so" not in requires, f"{package.name} requires {requires}"
        print(f"{package.name}: requires no library")
    shutil.rmtree(root.folder)


def in_an_empty_home(dist: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        add_release(dist, Path(folder) / "release")
        socket = home / "nfd.sock"
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "NDN_CLIENT_TRANSPORT": f"unix://{socket}"}
        # Root would install for all.
        script = VISIT.replace('--from "$release"', '--from "$release" --prefix .local') \
                      .replace("--uninstall", "--uninstall --prefix .local")
        subprocess.run(["sh", "-c", script, "sh", Path(folder) / "release", "--no-udp", "--no-tcp", "--socket", socket],
                       env=environment, check=True)
    print("installed into an empty home, a file went through, and removed")


def for_arm64(dist: Path) -> None:
    archive = next(dist.glob("namewire-*-aarch64-linux.tar.gz"), None)
    if not archive or platform.machine() == "aarch64" or not shutil.which("qemu-aarch64"):
        return
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
        program = Path(folder) / archive.name.removesuffix(".tar.gz") / "bin/namewire"
        subprocess.run([HERE / "test_arm64.py", program], check=True)


def main() -> None:
    dist, folder = (Path(argument).resolve() for argument in sys.argv[1:3])
    try:
        bare = template("installation into a bare root", folder)
    except SystemExit:
        in_an_empty_home(dist)
    else:
        own_network()
        in_bare_root(bare, dist, folder)
    for_arm64(dist)


main()
