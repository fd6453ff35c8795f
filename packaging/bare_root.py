"""A bare Debian in a folder, and the service of a package in it.

No systemd runs in the root. `Service` reads the unit, makes the folders that the unit names, and runs its ExecStart
as its user, in a network namespace of its own (`own_network`).
"""
import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

SUITE = "bookworm"
# systemd does not run, but its units, which ours names, are there.
PACKAGES = "adduser,procps,systemd"
CONFIGURATION = "etc/namewire/namewire.toml"
# What a package manager itself remembers of a package that is gone, and what any package leaves in logs and caches.
OF_THE_SYSTEM = ("var/lib/dpkg/", "var/lib/rpm/", "var/log/", "var/cache/", "etc/passwd", "etc/group", "etc/shadow",
                 "etc/gshadow", "etc/subuid", "etc/subgid", "etc/ld.so.cache", "dev/", "proc/", "sys/",
                 "var/lib/systemd/", "run/adduser/")
START_SECONDS = 60


def missing(what: str, reason: str) -> None:
    print(f"{what} is not tested here: {reason}")
    sys.exit(3)


def own_network() -> None:
    """Starts this program again in a network namespace of its own, with loopback, where mounts are its own, too."""
    if os.environ.get("NAMEWIRE_OWN_NETWORK") != "1":
        os.environ["NAMEWIRE_OWN_NETWORK"] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, *sys.argv])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def template(what: str, folder: Path) -> Path:
    """The folder of a bare Debian, made once. `what` is not tested where it cannot be made."""
    if os.geteuid() != 0:
        missing(what, "it needs root")
    if not shutil.which("mmdebstrap"):
        missing(what, "mmdebstrap is missing")
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{SUITE}-with-units"
    if not made.exists():
        done = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", SUITE, made])
        if done.returncode != 0:
            shutil.rmtree(made, ignore_errors=True)
            missing(what, "mmdebstrap could not make a bare root")
    return made


def build_id(program: Path) -> str:
    """The linker's number of a program, which stays when debug symbols go."""
    notes = subprocess.run(["readelf", "--notes", program], check=True, text=True, stdout=subprocess.PIPE).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes)[1]


def has_debug_symbols(program: Path) -> bool:
    # It complains about a file that has symbols only.
    sections = subprocess.run(["readelf", "--wide", "--sections", program], check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return ".debug_line" in sections


class Root:
    """A bare Debian in a folder."""

    def __init__(self, template: Path, folder: Path):
        if folder.exists():
            shutil.rmtree(folder)
        subprocess.run(["cp", "--archive", template, folder], check=True)
        self.folder = folder

    def run(self, *command: str, user: str = "root", check: bool = True, **options) -> subprocess.CompletedProcess:
        done = subprocess.run(self.line(*command, user=user), text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=300, **options)
        if check and done.returncode != 0:
            sys.exit(f"{shlex.join(command)} failed with {done.returncode}:\n{done.stdout}")
        return done

    def line(self, *command: str, user: str = "root") -> list[str]:
        return ["chroot", f"--userspec={user}:{user}", str(self.folder), "/usr/bin/env", "-i",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", *command]

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

    def __init__(self, root: Root, unit_file: str):
        unit = configparser.RawConfigParser(strict=False)
        unit.optionxform = str
        unit.read(root.folder / unit_file)
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
