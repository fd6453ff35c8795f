"""Cases of run.py about files and folders: `namewire put`, `serve` and `get` with other software, both ways.

Each case moves a file of each size of SIZES, or a folder, and compares every byte. A router runs with its Content Store
off, so that every answer is the producer's.

NDNts' command line ndncat and python-ndn's pyndntools come with these tests. Others are tried if they are installed:
`ndnd`, `ndnget` and `ndnserve` of ndn-tools (their former names: `ndncatchunks` and `ndnputchunks`), and
`ndn6-file-server`.

Environment: NDND       folder of ndnd (default: the PATH)
             NDN_TOOLS  folder of the programs of ndn-tools and ndn6-tools (default: the PATH)
"""
import os
import random
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMAND_SECONDS_MAX = 60
# What `namewire get` ends with if a producer answers that it does not have the name.
STATUS_APPLICATION_NACK = 7
# A whole segment of ndncat has 4096 bytes, one of the others 8000.
SIZES = [0, 1, 4096, 8000, 1_000_003]
FOLDER = {
    "empty": 0,
    "one byte": 1,
    "film": 1_000_003,
    "äöü/☃": 6000,
    "deep/er/and deeper": 8000,
    "deep/er/.hidden": 100,
    "bare/": 0,
    # Whole segments of the servers have 6000, 6144 or 8000 bytes.
    **{f"sizes/{size}": size for size in [5999, 6000, 6001, 6143, 6144, 6145, 7999, 8000, 8001, 16_000]},
}
MTIME_S = 1_600_000_000


class Failed(Exception):
    """Why a case failed, with the output of the command."""


@dataclass(frozen=True)
class Program:
    """A program of other software that serves or fetches one file.

    In its command, {name} is the name and {file} the file; without {file} it reads standard input or writes standard
    output. `sizes` are those that it can move.
    """
    title: str
    command: list[str]
    sizes: list[int]

    def line(self, name: str, file: Path) -> list[str]:
        return [part.format(name=name, file=file) for part in self.command]

    def names_file(self) -> bool:
        return "{file}" in self.command


def installed(variable: str, *names: str) -> str | None:
    """The first of these programs, from the folder that an environment variable names or from the PATH."""
    path = os.pathsep.join([os.environ.get(variable, ""), os.environ.get("PATH", "")])
    return next(filter(None, (shutil.which(name, path=path) for name in names)), None)


class FileCases:
    """The programs under test. `process` is run.py's class of child processes."""

    def __init__(self, namewire: str, python: str, node: str, scratch: Path, process):
        self.namewire_binary, self.scratch, self.process = namewire, scratch / "files", process
        self.socket_path = self.scratch / "nfd.sock"
        self.running = []
        self.ndncat = [node, str(HERE / "node_modules" / "@ndn" / "cat" / "cli.cjs")]
        self.file_server = [node, str(HERE / "apps" / "ndnts_file_server.mjs")]
        self.pyndntools = [python, "-m", "ndn.bin.tools"]
        self.ndnd = installed("NDND", "ndnd")
        self.ndnget = installed("NDN_TOOLS", "ndnget", "ndncatchunks")
        self.ndnserve = installed("NDN_TOOLS", "ndnserve", "ndnputchunks")
        self.ndn6_file_server = installed("NDN_TOOLS", "ndn6-file-server")

    def missing(self) -> list[str]:
        """Software that is not installed, whose cases are left out."""
        found = {"ndnd": self.ndnd, "ndnget": self.ndnget, "ndnserve": self.ndnserve,
                 "ndn6-file-server": self.ndn6_file_server}
        return [name for name, program in found.items() if program is None]

    def producers(self) -> list[Program]:
        put = [*self.ndncat, "put-segmented", "{name}", "--file", "{file}"]
        # pyndntools makes no segment of an empty file.
        serve = [*self.pyndntools, "serve-rdrcontent", "{name}", "{file}"]
        producers = [
            Program("ndncat put-segmented", put, SIZES),
            Program("ndncat put-segmented --no-rdr", [*put, "--no-rdr"], SIZES),
            Program("ndncat put-segmented --ver none", [*put, "--ver", "none"], SIZES),
            Program("pyndntools serve-rdrcontent", serve, SIZES[1:]),
        ]
        if self.ndnd:
            producers.append(Program("ndnd put", [self.ndnd, "put", "{name}"], SIZES))
        if self.ndnserve:
            producers.append(Program(Path(self.ndnserve).name, [self.ndnserve, "{name}"], SIZES))
        return producers

    def consumers(self) -> list[Program]:
        get = [*self.ndncat, "get-segmented", "{name}"]
        # pyndntools sends the name as it is, and expects metadata.
        fetch = [*self.pyndntools, "fetch-rdrcontent", "{name}/32=metadata", "-o", "{file}"]
        consumers = [
            Program("ndncat get-segmented --ver rdr", [*get, "--ver", "rdr"], SIZES),
            Program("ndncat get-segmented --ver cbp", [*get, "--ver", "cbp"], SIZES),
            Program("pyndntools fetch-rdrcontent", fetch, SIZES),
        ]
        if self.ndnd:
            consumers.append(Program("ndnd cat", [self.ndnd, "cat", "{name}"], SIZES))
        if self.ndnget:
            consumers.append(Program(Path(self.ndnget).name, [self.ndnget, "{name}"], SIZES))
        return consumers

    def all(self) -> list[tuple[str, object]]:
        """Title and action of each case."""
        get = [(f"files: {producer.title} -> namewire get", lambda producer=producer: self.get_case(producer))
               for producer in self.producers()]
        put = [(f"files: namewire put -> {consumer.title}", lambda consumer=consumer: self.put_case(consumer))
               for consumer in self.consumers()]
        folders = [
            ("folders: namewire put -> ndncat file-client", lambda: self.folder_client_case("put")),
            ("folders: namewire serve -> ndncat file-client", lambda: self.folder_client_case("serve")),
            ("folders: namewire serve -> each client, one file", self.file_of_folder_case),
            ("folders: @ndn/fileserver -> namewire get -r", lambda: self.folder_server_case(self.file_server_line)),
        ]
        if self.ndn6_file_server:
            folders.append(("folders: ndn6-file-server -> namewire get -r",
                            lambda: self.folder_server_case(self.ndn6_file_server_line)))
        return get + put + folders

    def environment(self) -> dict[str, str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("NDN_CLIENT_", "NDNTS_"))}
        uri = f"unix://{self.socket_path}"
        return environment | {"HOME": str(self.scratch), "NDN_CLIENT_TRANSPORT": uri, "NDNTS_UPLINK": uri}

    def run(self, command: list[str], output: Path | None = None, status: int = 0) -> str:
        """Runs a command to its end, which must have this status. With `output`, its standard output goes there."""
        with open(output or os.devnull, "wb") as out:
            try:
                done = subprocess.run(command, env=self.environment(), stdin=subprocess.DEVNULL,
                                      stdout=out if output else subprocess.PIPE, stderr=subprocess.PIPE,
                                      timeout=COMMAND_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                raise Failed(f"{' '.join(command)}: not finished in time") from None
        said = ((done.stdout or b"") + done.stderr).decode(errors="replace")
        if done.returncode != status:
            raise Failed(f"{' '.join(command)}: status {done.returncode}\n{said}")
        return said

    def start(self, command: list[str], ready: str = "", stdin: Path | None = None):
        """Starts a server, and waits until it prints the text `ready`, if that is given."""
        if stdin is not None:
            command = ["sh", "-c", 'file=$1; shift; exec "$@" <"$file"', "sh", str(stdin), *command]
        process = self.process(command, self.scratch / f"server-{len(self.running)}.log", self.environment())
        self.running.append(process)
        if ready:
            deadline = time.monotonic() + COMMAND_SECONDS_MAX
            process.wait_for_line(lambda line: ready in line, deadline, " ".join(command))
        return process

    def start_router(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()
        self.start([self.namewire_binary, "run", "--no-udp", "--no-tcp", "--socket", str(self.socket_path),
                    "--set", "cs.packets=0"], ready="is running")
        # python-ndn wants a key chain.
        self.run([self.namewire_binary, "key", "make", "/interop/user"])

    def stop_all(self) -> None:
        for process in reversed(self.running):
            process.stop(signal.SIGTERM)
        self.running.clear()

    def move(self, sizes: list[int], move) -> str:
        """Moves a file of each size: `move` takes its name, the file and the place for its copy."""
        self.start_router()
        try:
            for size in sizes:
                name, sent, received = f"/interop/files/{size}", self.scratch / "sent", self.scratch / "received"
                sent.write_bytes(random.randbytes(size))
                received.unlink(missing_ok=True)
                said = move(name, sent, received)
                if not received.exists():
                    raise Failed(f"{size} bytes: no file came\n{said}")
                if received.read_bytes() != sent.read_bytes():
                    raise Failed(f"{size} bytes: {received.stat().st_size} other bytes came\n{said}")
            return f"{', '.join(map(str, sizes))} bytes"
        finally:
            self.stop_all()

    def get_case(self, producer: Program) -> str:
        def move(name: str, sent: Path, received: Path) -> str:
            serving = self.start(producer.line(name, sent), stdin=None if producer.names_file() else sent)
            try:
                return self.run([self.namewire_binary, "get", name, "-o", str(received), "--wait=30s"])
            except Failed as failure:
                raise Failed(f"{failure}--- {producer.title} said:\n{serving.output()}") from None

        return self.move(producer.sizes, move)

    def put_case(self, consumer: Program) -> str:
        def move(name: str, sent: Path, received: Path) -> str:
            self.start([self.namewire_binary, "put", str(sent), name], ready="serving")
            return self.run(consumer.line(name, received), None if consumer.names_file() else received)

        return self.move(consumer.sizes, move)

    def make_folder(self) -> Path:
        folder = self.scratch / "sent"
        for name, size in FOLDER.items():
            path = folder / name
            if name.endswith("/"):
                path.mkdir(parents=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(random.randbytes(size))
            path.chmod(0o640)
            os.utime(path, (MTIME_S, MTIME_S))
        return folder

    def compare_folders(self, sent: Path, received: Path) -> str:
        """Compares names, bytes and times of change; folders get no times."""
        def contents(folder: Path) -> dict[str, object]:
            return {str(path.relative_to(folder)):
                    None if path.is_dir() else (path.read_bytes(), int(path.stat().st_mtime))
                    for path in folder.rglob("*")}

        expected, found = contents(sent), contents(received)
        wrong = [name for name in sorted(expected.keys() | found.keys())
                 if name not in expected or name not in found or expected[name] != found[name]]
        if wrong:
            raise Failed(f"missing, other or too much: {wrong}")
        return f"{len(expected)} files and folders"

    def folder_client_case(self, command: str) -> str:
        self.start_router()
        try:
            sent, received = self.make_folder(), self.scratch / "received"
            self.start([self.namewire_binary, command, str(sent), "/interop/folder"], ready="serving")
            self.run([*self.ndncat, "file-client", "/interop/folder", str(received)])
            return self.compare_folders(sent, received)
        finally:
            self.stop_all()

    def file_of_folder_case(self) -> str:
        """A file of a served folder is an object like that of `namewire put`."""
        self.start_router()
        try:
            sent, received = self.make_folder(), self.scratch / "received"
            self.start([self.namewire_binary, "serve", str(sent), "/interop/folder"], ready="serving")
            for consumer in self.consumers():
                received.unlink(missing_ok=True)
                said = self.run(consumer.line("/interop/folder/film", received),
                                None if consumer.names_file() else received)
                if not received.exists() or received.read_bytes() != (sent / "film").read_bytes():
                    raise Failed(f"{consumer.title}: other bytes came\n{said}")
            return ", ".join(consumer.title for consumer in self.consumers())
        finally:
            self.stop_all()

    def file_server_line(self, folder: Path) -> list[str]:
        return [*self.file_server, str(self.socket_path), "/interop/folder", str(folder)]

    def ndn6_file_server_line(self, folder: Path) -> list[str]:
        return [self.ndn6_file_server, "--listen", "/interop/folder", "--directory", str(folder)]

    def wait_for_route(self, name: str) -> None:
        """Waits until a server has registered its name; some do not say when."""
        deadline = time.monotonic() + COMMAND_SECONDS_MAX
        while name not in self.run([self.namewire_binary, "route", "list"]):
            if time.monotonic() > deadline:
                raise Failed(f"no route for {name}")
            time.sleep(0.05)

    def folder_server_case(self, line) -> str:
        self.start_router()
        try:
            sent, received = self.make_folder(), self.scratch / "received"
            serving = self.start(line(sent))
            try:
                self.wait_for_route("/interop/folder")
                get = [self.namewire_binary, "get", "-r", "--preserve", "-o", str(received)]
                self.run([*get, "/interop/folder/none"], status=STATUS_APPLICATION_NACK)
                self.run([*get, "/interop/folder"])
            except Failed as failure:
                raise Failed(f"{failure}--- the server said:\n{serving.output()}") from None
            modes = {path.stat().st_mode & 0o777 for path in received.rglob("*") if path.is_file()}
            if modes != {0o640}:
                raise Failed(f"modes {modes}")
            return self.compare_folders(sent, received)
        finally:
            self.stop_all()
