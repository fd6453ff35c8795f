#!/usr/bin/env python3
"""Installs the Debian package into a bare root directory, forwards packets, upgrades, removes: nothing is left.

Usage: test_deb.py OLDER.deb NEWER.deb FOLDER. It needs root, and mmdebstrap, which makes the bare root in FOLDER once;
each run works on a copy. The two packages may be builds of one commit, as long as dpkg takes NEWER for an upgrade.
There is no systemd in the root. The test reads the unit, makes the folders that the unit names, and runs its ExecStart
as its user, in a network namespace of its own. Exit status 3: what the test needs cannot be had here.
"""
import configparser
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

SUITE = "bookworm"
UNIT = "lib/systemd/system/namewire.service"
CONFIGURATION = "etc/namewire/namewire.toml"
# What dpkg itself remembers of a package that is gone, and what any package leaves in logs and caches.
OF_THE_SYSTEM = ("var/lib/dpkg/", "var/log/", "var/cache/", "etc/passwd", "etc/group", "etc/shadow", "etc/gshadow",
                 "etc/subuid", "etc/subgid", "etc/ld.so.cache", "dev/", "proc/", "sys/",
                 "var/lib/systemd/", "run/adduser/")
START_SECONDS = 60


def missing(reason: str) -> None:
    print(f"the package is not tested here: {reason}")
    sys.exit(3)


class Root:
    """A bare Debian in a folder."""

    def __init__(self, template: Path, folder: Path):
        if folder.exists():
            shutil.rmtree(folder)
        subprocess.run(["cp", "--archive", template, folder], check=True)
        self.folder = folder

    def run(self, *command: str, user: str = "root", check: bool = True, **options) -> subprocess.CompletedProcess:
        done = subprocess.run(self.line(*command, user=user), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=300, **options)
        if check and done.returncode != 0:
            sys.exit(f"{shlex.join(command)} failed with {done.returncode}:\n{done.stdout}")
        return done

    def line(self, *command: str, user: str = "root") -> list[str]:
        return ["chroot", f"--userspec={user}:{user}", str(self.folder), "/usr/bin/env", "-i",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", *command]

    def install(self, package: Path) -> None:
        shutil.copy(package, self.folder / "package.deb")
        self.run("dpkg", "--force-confold", "--install", "/package.deb")
        (self.folder / "package.deb").unlink()

    def files(self) -> set[str]:
        found = set()
        for place, folders, files in os.walk(self.folder):
            inside = Path(place).relative_to(self.folder)
            found |= {str(inside / name) for name in folders + files}
        return {name for name in found if not (name + "/").startswith(OF_THE_SYSTEM)}

    def users(self) -> set[str]:
        return {line.split(":")[0] for line in (self.folder / "etc/passwd").read_text().splitlines()}


class Service:
    """What systemd would do with the unit."""

    def __init__(self, root: Root):
        unit = configparser.RawConfigParser(strict=False)
        unit.optionxform = str
        unit.read(root.folder / UNIT)
        service = unit["Service"]
        self.root, self.user = root, service["User"]
        for base, key in (("run", "RuntimeDirectory"), ("var/lib", "StateDirectory")):
            (root.folder / base / service[key]).mkdir(parents=True, exist_ok=True)
            root.run("chown", f"{self.user}:{service['Group']}", f"/{base}/{service[key]}")
        self.runtime = root.folder / "run" / service["RuntimeDirectory"]
        self.keeps_runtime = service.get("RuntimeDirectoryPreserve", "no") == "yes"
        command = root.line(*shlex.split(service["ExecStart"]), user=self.user)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        ends = time.monotonic() + START_SECONDS
        while not (self.runtime / "nfd.sock").exists():
            if self.process.poll() is not None or time.monotonic() > ends:
                self.process.kill()
                sys.exit(f"the service does not start:\n{self.process.stdout.read()}")
            time.sleep(0.05)

    def stop(self) -> None:
        self.process.terminate()
        said = self.process.communicate(timeout=60)[0]
        if self.process.returncode != 0:
            sys.exit(f"the service ended with {self.process.returncode}:\n{said}")
        if not self.keeps_runtime:
            shutil.rmtree(self.runtime)


def forwards(root: Root) -> None:
    """One application pings another through the router; NFD's command line answers, too."""
    server = subprocess.Popen(root.line("namewire", "pingserver", "/package/test", user="nobody-user"),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            pinged = root.run("namewire", "ping", "/package/test", "--count", "3", check=False)
            if pinged.returncode == 0:
                break
            time.sleep(0.1)
        else:
            sys.exit(f"nothing answers pings through the router:\n{pinged.stdout}")
    finally:
        server.terminate()
        server.wait(timeout=60)
    status = root.run("nfdc", "status").stdout
    assert "General NFD status" in status, status


def main() -> None:
    older, newer, folder = (Path(argument).resolve() for argument in sys.argv[1:4])
    if os.geteuid() != 0:
        missing("it needs root")
    if not shutil.which("mmdebstrap"):
        missing("mmdebstrap is missing")
    folder.mkdir(parents=True, exist_ok=True)
    template = folder / f"bare-{SUITE}"
    if not template.exists():
        made = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--include=adduser", SUITE, template])
        if made.returncode != 0:
            shutil.rmtree(template, ignore_errors=True)
            missing("mmdebstrap could not make a bare root")
    if os.environ.get("NAMEWIRE_OWN_NETWORK") != "1":
        os.environ["NAMEWIRE_OWN_NETWORK"] = "1"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    root = Root(template, folder / "root")
    root.run("useradd", "--system", "nobody-user")
    before, users = root.files(), root.users()

    root.install(older)
    if shutil.which("systemd-analyze"):
        checked = subprocess.run(["systemd-analyze", "verify", "--man=no", f"--root={root.folder}", "namewire.service"],
                                 text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert checked.returncode == 0, f"systemd would not take the unit:\n{checked.stdout}"
    root.run("test", "-s", "/usr/share/man/man1/namewire-run.1.gz")
    root.run("test", "-s", "/usr/share/bash-completion/completions/namewire")
    root.run("namewire", "config", "check", f"/{CONFIGURATION}")
    service = Service(root)
    forwards(root)
    service.stop()
    print(f"{older.name}: installed, forwards")

    edited = (root.folder / CONFIGURATION).read_text() + "\n[router]\nquiet = true\n"
    (root.folder / CONFIGURATION).write_text(edited)
    root.install(newer)
    assert (root.folder / CONFIGURATION).read_text() == edited, "the upgrade changed an edited configuration"
    service = Service(root)
    forwards(root)
    service.stop()
    print(f"{newer.name}: upgraded, the edited configuration stays, forwards")

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
