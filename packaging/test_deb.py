#!/usr/bin/env python3
"""Installs the Debian package into a bare root directory, forwards packets, upgrades, removes: nothing is left.

Usage: test_deb.py OLDER.deb NEWER.deb DEBUG.ddeb NFD.deb FOLDER. It needs root, and mmdebstrap, which makes the bare root in
FOLDER once; each run works on a copy (bare_root.py). The two packages may be builds of one commit, as long as dpkg
takes NEWER for an upgrade. NFD.deb has the names of NFD's programs, and takes the place of NFD's packages, but never of
one that it does not know. Exit status 3: what the test needs cannot be had here.
"""
import shutil
import subprocess
import sys
from pathlib import Path

from bare_root import (CONFIGURATION, Root, Service, build_id, forwards, has_debug_symbols, own_network,
                       template)

UNIT = "lib/systemd/system/namewire.service"


def install(root: Root, package: Path) -> None:
    shutil.copy(package, root.folder / "package.deb")
    root.run("dpkg", "--force-confold", "--install", "/package.deb")
    (root.folder / "package.deb").unlink()


def install_stranger(root: Root, name: str) -> None:
    """A package of this name, whose only file is ndnping."""
    tree = root.folder / "stranger"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: nobody\n"
                                         "Description: has a file of the same name\n")
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/ndnping").write_text("of another package")
    root.run("dpkg-deb", "--build", "/stranger", "/stranger.deb")
    root.run("dpkg", "--install", "/stranger.deb")
    shutil.rmtree(tree)
    (root.folder / "stranger.deb").unlink()


def check_names(root: Root, package: Path) -> None:
    shutil.copy(package, root.folder / "names.deb")
    ndnping = root.folder / "usr/bin/ndnping"
    install_stranger(root, "unknown-tools")
    refused = root.run("dpkg", "--install", "/names.deb", check=False)
    assert refused.returncode != 0 and "trying to overwrite" in refused.stdout, refused.stdout
    assert ndnping.read_text() == "of another package", "a file of another package is gone"
    root.run("dpkg", "--purge", "unknown-tools")

    install_stranger(root, "ndn-tools")
    root.run("dpkg", "--install", "/names.deb")
    (root.folder / "names.deb").unlink()
    assert ndnping.is_symlink() and str(ndnping.readlink()) == "namewire", "ndnping is not ours"
    assert root.run("dpkg", "--status", "ndn-tools", check=False).returncode != 0, "ndn-tools is still installed"
    for name in ("nfd", "nfdc", "ndnping", "ndncatchunks", "ndndump"):
        root.run(name, "-V")
    root.run("sh", "-n", "/usr/bin/nfd-start")
    root.run("namewire", "config", "check", "--nfd-conf", "/etc/ndn/nfd.conf.sample")
    needed = root.run("dpkg", "--remove", "namewire", check=False)
    assert needed.returncode != 0 and ndnping.exists(), "links without their program"
    root.run("dpkg", "--purge", "namewire-nfd")
    assert not ndnping.is_symlink(), "a link is left"
    print(f"{package.name}: takes the place of ndn-tools, lies over no unknown package, needs namewire")


def main() -> None:
    older, newer, debug, names, folder = (Path(argument).resolve() for argument in sys.argv[1:6])
    bare = template("the Debian package", folder)
    own_network()
    root = Root(bare, folder / "root")
    root.run("useradd", "--system", "nobody-user")
    before, users = root.files(), root.users()

    install(root, older)
    if shutil.which("systemd-analyze"):
        checked = subprocess.run(["systemd-analyze", "verify", "--man=no", f"--root={root.folder}", "namewire.service"],
                                 text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert checked.returncode == 0, f"systemd would not take the unit:\n{checked.stdout}"
    root.run("test", "-s", "/usr/share/man/man1/namewire-run.1.gz")
    root.run("test", "-s", "/usr/share/bash-completion/completions/namewire")
    root.run("namewire", "config", "check", f"/{CONFIGURATION}")
    service = Service(root, UNIT)
    forwards(root)
    service.stop()
    print(f"{older.name}: installed, forwards")

    edited = (root.folder / CONFIGURATION).read_text() + "\n[router]\nquiet = true\n"
    (root.folder / CONFIGURATION).write_text(edited)
    install(root, newer)
    assert (root.folder / CONFIGURATION).read_text() == edited, "the upgrade changed an edited configuration"
    service = Service(root, UNIT)
    forwards(root)
    service.stop()
    print(f"{newer.name}: upgraded, the edited configuration stays, forwards")
    install(root, debug)
    # Where debuggers look for it.
    program = root.folder / "usr/bin/namewire"
    number = build_id(program)
    symbols = root.folder / f"usr/lib/debug/.build-id/{number[:2]}/{number[2:]}.debug"
    assert has_debug_symbols(symbols) and not has_debug_symbols(program)
    print(f"{debug.name}: the symbols of the program")

    root.run("dpkg", "--purge", "namewire-dbgsym")

    check_names(root, names)
    root.run("dpkg", "--remove", "namewire")
    assert not (root.folder / "usr/bin/namewire").exists() and (root.folder / CONFIGURATION).exists()
    assert not (root.folder / "usr/bin/nfdc").is_symlink(), "the alternative nfdc is left"
    root.run("dpkg", "--purge", "namewire")
    left = sorted(root.files() - before)
    assert not left, f"left after the package was purged: {left}"
    assert root.users() == users, f"users left: {root.users() - users}"
    print("removed and purged: nothing is left")
    shutil.rmtree(root.folder)


main()
