#!/usr/bin/env python3
"""Compares the rpm package with the Debian package, installs it into a bare root, forwards packets, upgrades, removes.

Usage: test_rpm.py OLDER.rpm NEWER.rpm PACKAGE.deb NFD.rpm FOLDER. It needs root, rpm, and mmdebstrap for the bare root
(bare_root.py). The root is a Debian, whose database of rpm is empty: so `rpm` does not look for required packages, and
the test looks for the required programs and libraries itself. Exit status 3: what the test needs cannot be had here.
"""
import gzip
import shutil
import subprocess
import sys
from pathlib import Path

from bare_root import (CONFIGURATION, Root, Service, build_id, forwards, has_debug_symbols, missing, own_network,
                       template)

PROGRAM = "usr/bin/namewire"
UNIT = "usr/lib/systemd/system/namewire.service"
# Places that Debian names otherwise.
DEBIAN_PLACES = {"lib/systemd/": "usr/lib/systemd/",
                 "usr/share/zsh/vendor-completions/": "usr/share/zsh/site-functions/"}
# Folders that a distribution with rpm has anyway.
DISTRIBUTION = {"usr/share/fish", "usr/share/fish/vendor_completions.d", "usr/share/licenses",
                "usr/share/zsh/site-functions"}
# What only one of the packages has: each names the licence in its own way.
LICENCES = {"deb": {"usr/share/doc/namewire/copyright"},
            "rpm": {f"usr/share/licenses/namewire/{name}" for name in ("LICENSE", "LICENSE-APACHE", "LICENSE-MIT")}}


def output(*command) -> str:
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def contents(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """The bytes of each file, unpacked, and whether it is a program."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            name, data = str(path.relative_to(folder)), path.read_bytes()
            for place, ours in DEBIAN_PLACES.items():
                name = ours + name.removeprefix(place) if name.startswith(place) else name
            if name.endswith(".gz"):
                name, data = name.removesuffix(".gz"), gzip.decompress(data)
            found[name] = (data, bool(path.stat().st_mode & 0o111))
    return found


def compare(root: Root, deb: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    output("dpkg-deb", "--extract", deb, folder)
    of_deb = contents(folder)
    program = build_id(folder / PROGRAM)
    shutil.rmtree(folder)
    names = output("rpm", "--root", root.folder, "--query", "--list", "namewire").split()
    of_rpm = {name.lstrip("/"): ((root.folder / name.lstrip("/")).read_bytes(),
                                 bool((root.folder / name.lstrip("/")).stat().st_mode & 0o111)) for name in names}
    for name in LICENCES["deb"]:
        del of_deb[name]
    for name in LICENCES["rpm"]:
        del of_rpm[name]
    assert of_deb.keys() == of_rpm.keys(), f"only in one package: {sorted(of_deb.keys() ^ of_rpm.keys())}"
    # One build, of which each package takes the debug symbols away in its own way.
    of_deb.pop(PROGRAM), of_rpm.pop(PROGRAM)
    assert program == build_id(root.folder / PROGRAM) and not has_debug_symbols(root.folder / PROGRAM)
    other = [name for name in of_deb if of_deb[name] != of_rpm[name]]
    assert not other, f"not the same in both packages: {other}"
    print(f"the same {len(of_rpm) + 1} files as in {deb.name}")


def rpm(root: Root, *options) -> None:
    done = subprocess.run(["rpm", "--root", root.folder, *options], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    # A script that fails is a warning for some kinds of scripts, and no exit status.
    if done.returncode != 0 or "scriptlet failed" in done.stdout:
        sys.exit(f"rpm {options} failed with {done.returncode}:\n{done.stdout}")


def meets_requirements(root: Root) -> None:
    for required in output("rpm", "--root", root.folder, "--query", "--requires", "namewire").splitlines():
        name = required.split("(")[0].split()[0]
        if name.startswith("/"):
            # Debian has some programs in another folder of its PATH.
            root.run("sh", "-c", f"command -v {Path(name).name}")
        elif ".so" in name:
            assert list(root.folder.glob(f"usr/lib*/**/{name}")), f"{name} is not in the root"
        else:
            assert name in ("rpmlib", "rtld", "config"), f"an unexpected requirement: {required}"


def check_names(root: Root, package: Path) -> None:
    """Installs the names of NFD's programs beside a file that another program has under one of them."""
    for relation in ("--conflicts", "--provides"):
        named = output("rpm", "--query", "--package", relation, package)
        assert "nfd" in named and "ndn-tools" in named, f"{relation}: {named}"
    strange, ndnping = root.folder / "usr/bin/ndnpeek", root.folder / "usr/bin/ndnping"
    strange.write_text("of another program")
    rpm(root, "--install", "--nodeps", package)
    assert str(ndnping.readlink()) == "namewire" and strange.read_text() == "of another program"
    for name in ("nfd", "nfdc", "ndnping", "ndncatchunks", "ndndump"):
        root.run(name, "-V")
    root.run("namewire", "config", "check", "--nfd-conf", "/etc/ndn/nfd.conf.sample")
    rpm(root, "--upgrade", "--nodeps", "--replacepkgs", package)
    assert ndnping.is_symlink(), "an upgrade removed the links"
    rpm(root, "--erase", "namewire-nfd")
    assert not ndnping.is_symlink() and strange.exists()
    strange.unlink()
    print(f"{package.name}: links made and removed, and nothing else")


def main() -> None:
    older, newer, deb, names, folder = (Path(argument).resolve() for argument in sys.argv[1:6])
    bare = template("the rpm package", folder)
    if not shutil.which("rpm"):
        missing("the rpm package", "rpm is missing")
    own_network()
    root = Root(bare, folder / "root-rpm")
    root.run("useradd", "--system", "nobody-user")
    rpm(root, "--initdb")
    before, users = root.files(), root.users()

    rpm(root, "--install", "--nodeps", older)
    meets_requirements(root)
    assert output("rpm", "--root", root.folder, "--query", "--configfiles", "namewire").split() == [f"/{CONFIGURATION}"]
    root.run("namewire", "config", "check", f"/{CONFIGURATION}")
    service = Service(root, UNIT)
    forwards(root)
    service.stop()
    print(f"{older.name}: installed, forwards")

    edited = (root.folder / CONFIGURATION).read_text() + "\n[router]\nquiet = true\n"
    (root.folder / CONFIGURATION).write_text(edited)
    rpm(root, "--upgrade", "--nodeps", newer)
    assert (root.folder / CONFIGURATION).read_text() == edited, "the upgrade changed an edited configuration"
    assert (root.folder / "usr/bin/nfdc").is_symlink(), "the upgrade removed the alternative nfdc"
    service = Service(root, UNIT)
    forwards(root)
    service.stop()
    print(f"{newer.name}: upgraded, the edited configuration stays, forwards")

    (root.folder / CONFIGURATION).unlink()
    rpm(root, "--upgrade", "--nodeps", "--replacepkgs", newer)
    compare(root, deb, folder / "deb")

    check_names(root, names)
    rpm(root, "--erase", "namewire")
    left = sorted(root.files() - before - DISTRIBUTION)
    # As usual for rpm: what the service wrote stays, and so does its user, whose number nothing else should get.
    state = {"var/lib/namewire", "var/lib/namewire/state.toml"}
    # The commands since the state was written, if there were any.
    assert state <= set(left) <= state | {"var/lib/namewire/state.toml.commands"}, f"left after removal: {left}"
    assert root.users() == users | {"ndn"}, f"users left: {root.users() - users}"
    print("removed: only the router's state and its user are left")
    shutil.rmtree(root.folder)


main()
