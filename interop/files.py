"""Cases of run.py about folders: NDNts' client of file servers, and a producer made of NDNts' encoders.

`namewire serve` and `get -r` are at the other end. What arrives must be the folder, byte for byte.
"""
import random
import signal
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMAND_SECONDS_MAX = 60
SIZES = [0, 1, 3_999, 4_000, 4_001, 8_000, 8_001, 300_000]
NAME = "/interop/files"


class Failed(Exception):
    """Why a case failed, with the output of the command."""


def make_tree(root: Path) -> None:
    dice = random.Random(43)
    for folder in ["", "inner/deep", "Grüße", "with space"]:
        (root / folder).mkdir(parents=True, exist_ok=True)
        for size in SIZES:
            (root / folder / f"{size} bytes").write_bytes(dice.randbytes(size))
    (root / "empty").mkdir()


def describe(root: Path) -> dict[str, bytes | None]:
    """The content of each file; None for folders."""
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


class FileCases:
    """The programs under test. `process` is run.py's class of child processes."""

    def __init__(self, namewire: str, node: str, scratch: Path, process):
        self.namewire, self.scratch, self.process = namewire, scratch / "files", process
        self.ndnts = [node, str(HERE / "apps" / "ndnts_files.mjs")]
        self.socket_path = self.scratch / "nfd.sock"
        self.running = []

    def all(self) -> list[tuple[str, object]]:
        """Title and action of each case."""
        return [
            ("files: NDNts' file client fetches a folder", self.ndnts_client_case),
            ("files: get -r fetches a folder that NDNts serves", self.ndnts_producer_case),
        ]

    def run(self, command: list[str]) -> str:
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                                  timeout=COMMAND_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(command)}: not finished in time") from None
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def start(self, what: str, command: list[str], line: str) -> None:
        process = self.process(command, self.scratch / f"{what}.log")
        self.running.append(process)
        process.wait_for_line(lambda text: line in text, time.monotonic() + COMMAND_SECONDS_MAX, what)

    def case(self, producer, consumer) -> str:
        """Both are functions that make a command for a folder."""
        source, copy = self.scratch / "source", self.scratch / f"copy {time.monotonic_ns()}"
        if not source.exists():
            make_tree(source)
        try:
            self.start("router", [self.namewire, "run", "--no-udp", "--no-tcp", "--socket", str(self.socket_path)],
                       "is running")
            self.start("producer", producer(str(source)), "serving")
            self.run(consumer(str(copy)))
        finally:
            for process in reversed(self.running):
                process.stop(signal.SIGTERM)
            self.running.clear()
        expected, found = describe(source), describe(copy)
        if found != expected:
            paths = expected.keys() | found.keys()
            different = sorted(path for path in paths if expected.get(path, "") != found.get(path, ""))
            raise Failed(f"the copy differs: {different}")
        return f"{sum(content is not None for content in expected.values())} files, byte for byte"

    def ours(self, *arguments: str) -> list[str]:
        return [self.namewire, "--transport", f"unix://{self.socket_path}", *arguments]

    def theirs(self, role: str, folder: str) -> list[str]:
        return [*self.ndnts, role, str(self.socket_path), NAME, folder]

    def ndnts_client_case(self) -> str:
        return self.case(lambda source: self.ours("serve", source, NAME), lambda copy: self.theirs("get", copy))

    def ndnts_producer_case(self) -> str:
        return self.case(lambda source: self.theirs("serve", source), lambda copy: self.ours("get", "-r", NAME, copy))
