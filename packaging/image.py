"""A container image, and a container of it without a container engine: root, a network namespace and mounts are enough.

The file of the image is a docker-archive. A container has the image's files read-only, /proc, /sys and /dev, writable
folders for the volumes, and the user, capabilities and environment that a container engine would give it. Processes of
the container share the network of the caller, who has a namespace of its own (bare_root.own_network).
"""
import ctypes
import json
import os
import subprocess
import tarfile
import time
from pathlib import Path

START_SECONDS = 60
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
LAST_CAPABILITY = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
# Numbers of capabilities(7).
CAPABILITIES = {"CHOWN": 0, "DAC_OVERRIDE": 1, "SETGID": 6, "SETUID": 7}


class Image:
    """An image, unpacked into the folder `root`."""

    def __init__(self, archive: Path, root: Path):
        self.root = root
        root.mkdir(parents=True)
        with tarfile.open(archive) as outer:
            described = json.load(outer.extractfile("manifest.json"))[0]
            self.settings = json.load(outer.extractfile(described["Config"]))["config"]
            layers = [outer.getmember(name) for name in described["Layers"]]
            # Layers of an unpacked image: an engine stores as many bytes.
            self.bytes = sum(layer.size for layer in layers)
            for layer in layers:
                subprocess.run(["tar", "--extract", "--numeric-owner", "--same-permissions", "--directory", root],
                               input=outer.extractfile(layer).read(), check=True)

    def files(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir()}


class Container:
    """A container that runs. `volumes` says which folder outside is at which path inside."""

    def __init__(self, image: Image, volumes: dict[str, Path], user: str | None = None,
                 arguments: list[str] | None = None, environment: dict[str, str] | None = None,
                 capabilities: tuple[str, ...] = ()):
        self.image, self.settings = image, image.settings
        self.user, self.group = (int(number) for number in (user or self.settings["User"]).split(":"))
        self.environment = dict(variable.split("=", 1) for variable in self.settings.get("Env") or [])
        self.environment |= environment or {}
        self.kept = {CAPABILITIES[name] for name in capabilities}
        self.mounts = []
        for place in ("proc", "sys", "dev", *volumes):
            (image.root / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
        (image.root / "etc/hosts").write_text("127.0.0.1 localhost neighbour.example\n")
        self.mount("--bind", image.root, image.root)
        self.mount("-o", "remount,bind,ro", image.root, image.root, again=True)
        self.mount("-t", "proc", "proc", image.root / "proc")
        self.mount("-t", "sysfs", "-o", "ro", "sysfs", image.root / "sys")
        self.mount("--bind", "/dev", image.root / "dev")
        for inside, outside in volumes.items():
            self.mount("--bind", outside, image.root / inside.lstrip("/"))
        arguments = self.settings["Cmd"] if arguments is None else arguments
        self.process = self.start(*self.settings["Entrypoint"], *arguments)

    def mount(self, *arguments, again: bool = False) -> None:
        subprocess.run(["mount", *map(str, arguments)], check=True)
        if not again:
            self.mounts.append(arguments[-1])

    def start(self, *command: str) -> subprocess.Popen:
        return subprocess.Popen(command, env=self.environment, preexec_fn=self.enter, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def enter(self) -> None:
        prctl = ctypes.CDLL(None).prctl
        os.chroot(self.image.root)
        os.chdir("/")
        for capability in set(range(LAST_CAPABILITY + 1)) - self.kept:
            assert prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0
        os.setgroups([])
        os.setresgid(self.group, self.group, self.group)
        os.setresuid(self.user, self.user, self.user)
        assert prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0

    def run(self, *command: str) -> tuple[int, str]:
        """Runs a command in the container. Returns its exit status and what it said."""
        process = self.start(*command)
        said = process.communicate(timeout=60)[0]
        return process.returncode, said

    def wait_until_healthy(self, *check: str) -> None:
        ends = time.monotonic() + START_SECONDS
        while (answer := self.run(*check))[0] != 0:
            if self.process.poll() is not None or time.monotonic() > ends:
                self.process.kill()
                raise SystemExit(f"{check} says: {answer}; the container said: {self.process.communicate()[0]}")
            time.sleep(0.1)

    def stop(self) -> int:
        """Ends the container as an engine does. Returns its exit status."""
        self.process.terminate()
        self.said = self.process.communicate(timeout=60)[0]
        return self.process.returncode

    def remove(self) -> None:
        for place in reversed(self.mounts):
            subprocess.run(["umount", str(place)], check=True)
        self.mounts = []
