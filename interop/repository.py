"""Cases of run.py about `namewire repo`: other software's clients store, fetch and delete.

A router runs with its Content Store off, so that every answer is the repository's, and a repository beside it. After
each insertion the repository is killed and started again.
"""
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMAND_SECONDS_MAX = 60
OBJECT_BYTES = 10_000_000
REPO = "/localhost/repo"


class Failed(Exception):
    """Why a case failed, with the output of the command."""


class RepositoryCases:
    """The programs under test. `process` is run.py's class of child processes."""

    def __init__(self, namewire: str, python: str, node: str, scratch: Path, process):
        self.namewire_binary, self.scratch, self.process = namewire, scratch / "repository", process
        self.python = [python, str(HERE / "apps" / "python_repo.py")]
        self.ndnts = [node, str(HERE / "apps" / "ndnts_repo.mjs")]
        self.publisher = [node, str(HERE / "apps" / "ndnts_svs.mjs")]
        self.socket_path = self.scratch / "nfd.sock"
        self.running = []

    def all(self) -> list[tuple[str, object]]:
        """Title and action of each case."""
        return [
            ("repository: ndn-python-repo 0.3 puts, gets and deletes", self.python_case),
            ("repository: NDNts puts by bulk insertion", self.ndnts_case),
            ("repository: what a group of @ndn/svs publishes", self.sync_case),
        ]

    def run(self, command: list[str]) -> str:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("NDN_CLIENT_")}
        environment |= {"HOME": str(self.scratch), "NDN_CLIENT_TRANSPORT": f"unix://{self.socket_path}"}
        try:
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  errors="replace", timeout=COMMAND_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(command)}: not finished in time") from None
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def namewire(self, *arguments: str) -> str:
        return self.run([self.namewire_binary, *arguments])

    def start(self, what: str, *arguments: str):
        process = self.process([self.namewire_binary, *arguments], self.scratch / f"{what}.log")
        self.running.append(process)
        process.wait_for_line(lambda line: "is running" in line, time.monotonic() + COMMAND_SECONDS_MAX, what)
        return process

    def start_repository(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.bulk_port = str(probe.getsockname()[1])
        return self.start("repository", "repo", "run", "--transport", f"unix://{self.socket_path}", "--folder",
                          str(self.scratch / "store"), "--prefix", "/bulk", "--bulk-listen",
                          f"127.0.0.1:{self.bulk_port}")

    def start_router(self):
        self.scratch.mkdir(exist_ok=True)
        self.start("router", "run", "--no-udp", "--no-tcp", "--socket", str(self.socket_path), "--set", "cs.packets=0")

    def stop_all(self) -> None:
        for process in reversed(self.running):
            process.stop(signal.SIGTERM)
        self.running.clear()

    def wait_for_names(self, count: int, prefix: str = "/") -> None:
        deadline = time.monotonic() + COMMAND_SECONDS_MAX
        while len(self.namewire("repo", "list", prefix).splitlines()) < count:
            if time.monotonic() > deadline:
                raise Failed(f"not all was stored in time\n{self.namewire('repo', 'stats')}")
            time.sleep(0.05)

    def sync_case(self) -> str:
        """Two publishers, of which one publishes before the repository joins; both are gone when their Data are read."""
        self.start_router()
        try:
            self.namewire("strategy", "set", "/interop/chat", "multicast")
            self.start_repository()
            publishers = []
            for publisher in ["/interop/alice", "/interop/bob"]:
                command = [*self.publisher, str(self.socket_path), "/interop/chat", publisher]
                publishers.append(self.process(command, self.scratch / f"publisher-{len(publishers)}.log"))
                self.running.append(publishers[-1])
                deadline = time.monotonic() + COMMAND_SECONDS_MAX
                publishers[-1].wait_for_line(lambda line: line == "published", deadline, publisher)
                if publisher == "/interop/alice":
                    self.namewire("repo", "join", "/interop/chat", "--register", "/interop")
            # Each publishes one packet and one object of three segments.
            self.wait_for_names(8, "/interop")
            for publisher in publishers:
                publisher.stop(signal.SIGKILL)
            for publisher in ["/interop/alice", "/interop/bob"]:
                said = self.run([*self.publisher, str(self.socket_path), "/interop/chat", publisher, "read"])
                if said.strip() != "1: 5 bytes, 2: 20000 bytes":
                    raise Failed(f"{publisher}: {said}")
            self.namewire("repo", "leave", "/interop/chat", "--unregister", "/interop")
            self.namewire("repo", "delete", "/", "--prefix")
            return "4 publications stored and read"
        finally:
            self.stop_all()

    def case(self, name: str, put) -> str:
        """Puts an object, kills the repository, fetches the object with every client, and deletes it."""
        self.start_router()
        film, copy = self.scratch / "film", self.scratch / "copy"
        content = os.urandom(OBJECT_BYTES)
        film.write_bytes(content)
        try:
            if not (self.scratch / ".ndn").exists():
                self.namewire("key", "make", "/interop/user")
            repository = self.start_repository()
            said = put(film)
            repository.stop(signal.SIGKILL)
            self.start_repository()
            for client in [
                [*self.python, "get", REPO, name, str(copy)],
                [*self.ndnts, "get", str(self.socket_path), name, str(copy)],
                [self.namewire_binary, "repo", "get", name, "-o", str(copy)],
            ]:
                copy.unlink(missing_ok=True)
                self.run(client)
                if copy.read_bytes() != content:
                    raise Failed(f"{' '.join(client)}: other bytes came")
            deleted = self.run([*self.python, "delete", REPO, name]).strip()
            if deleted != f"{OBJECT_BYTES // 8000} packets deleted" or self.namewire("repo", "list"):
                raise Failed(f"after the deletion: {deleted}")
            return said
        finally:
            self.stop_all()

    def python_case(self) -> str:
        name = "/interop/python/film"
        return self.case(name, lambda film: self.run([*self.python, "put", REPO, name, str(film)]))

    def ndnts_case(self) -> str:
        name = "/bulk/film"

        def put(film: Path) -> str:
            said = self.run([*self.ndnts, "put", self.bulk_port, name, str(film)])
            # This client does not wait for the repository's end of the connection.
            self.wait_for_names(OBJECT_BYTES // 8000)
            return said

        return self.case(name, put)
