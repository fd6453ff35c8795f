#!/usr/bin/env python3
"""Interop tests: other NDN software uses a running router.

Question: do unmodified python-ndn and NDNts applications exchange Data through
`namewire run`, over each local transport, in both directions, with one worker
and with four? Do they share key chains and certificates with `namewire key` (key_chain.py), and use
`namewire repo` (repository.py)? Do files and folders reach `namewire get`, and come from `namewire put` (files.py)? Does
each library hear each other's producer (hello.py)? Do they command the router from another host, and by signed requests
(management.py)? Do NDNts' and our authorities certify each other's requesters (certificates.py)? Do compiled trust
schemas mean the same to python-ndn and to us (schemas.py)?
Only NDNts has WebSocket cases: python-ndn has no WebSocket.

A case about Data starts a producer, then a consumer, each in its own process, and
compares what arrived. Over Unix and TCP the library registers the prefix
itself; over UDP the runner adds the route with `namewire route add`. Nothing is
mocked: the router is the binary that users run.

Environment: NAMEWIRE  the router binary (default: target/release/namewire)
             PYTHON, NODE  interpreters with the packages (default: those that
             tools/setup.sh installs in interop/.venv and interop/node_modules)
Limits: a case takes at most CASE_SECONDS_MAX; processes are ended by their id.
Last line: `N passed, N failed`; exit status 0 only if nothing failed.
"""
import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import certificates
import files
import hello
import key_chain
import management
import repository
import schemas

HERE = Path(__file__).resolve().parent
CASE_SECONDS_MAX = 60
ROUTER_START_SECONDS_MAX = 20
STOP_SECONDS_MAX = 5
OBJECT_BYTES = 1_000_000
PING_COUNT = 200
# Over UDP a Data packet should fit an Ethernet frame: python-ndn cannot reassemble.
SEGMENT_BYTES = {"unix": 8000, "tcp": 8000, "udp": 1200, "ws": 8000}
LIBRARIES = ["python", "ndnts"]
TRANSPORTS = ["unix", "tcp", "udp"]


class CaseFailed(Exception):
    """Why a case failed, with the output of the failed process if there is one."""


def namewire_binary() -> str:
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
    return os.environ.get("NAMEWIRE", str(target / "release" / "namewire"))


def interpreter(library: str) -> str:
    if library == "python":
        return os.environ.get("PYTHON", str(HERE / ".venv" / "bin" / "python"))
    ours = HERE / ".venv" / "node" / "bin" / "node"
    return os.environ.get("NODE", str(ours) if ours.exists() else "node")


def application(library: str, program: str = "app") -> list[str]:
    file = {"python": f"python_{program}.py", "ndnts": f"ndnts_{program}.mjs"}[library]
    return [interpreter(library), str(HERE / "apps" / file)]


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Process:
    """A child process: its output goes to a file, callers can wait for a line of it, and it always ends."""

    def __init__(self, command: list[str], log: Path, env: dict[str, str] | None = None):
        self.log = log
        with open(log, "wb") as out:
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out,
                                          stderr=subprocess.STDOUT, env=env)

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_for_line(self, accept, deadline: float, what: str) -> str:
        while True:
            for line in self.output().splitlines():
                if accept(line):
                    return line
            if self.child.poll() is not None:
                raise CaseFailed(f"{what}: ended with status {self.child.returncode}\n{self.output()}")
            if time.monotonic() > deadline:
                raise CaseFailed(f"{what}: not ready in time\n{self.output()}")
            time.sleep(0.02)

    def wait(self, deadline: float, what: str) -> str:
        try:
            status = self.child.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise CaseFailed(f"{what}: not finished in time\n{self.output()}") from None
        if status != 0:
            raise CaseFailed(f"{what}: ended with status {status}\n{self.output()}")
        return self.output()

    def stop(self, polite_signal: int | None = None) -> int:
        """Ends the child: closes its standard input, sends the signal if given, then SIGKILL."""
        self.child.stdin.close()
        if polite_signal is not None and self.child.poll() is None:
            self.child.send_signal(polite_signal)
        try:
            return self.child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.child.kill()
            return self.child.wait()


class Router:
    """`namewire run` with a socket and ports of its own."""

    def __init__(self, scratch: Path, workers: int):
        self.socket_path = scratch / f"nfd-{workers}.sock"
        self.udp_port = free_port(socket.SOCK_DGRAM)
        self.tcp_port = free_port(socket.SOCK_STREAM)
        self.ws_port = free_port(socket.SOCK_STREAM)
        self.uris = {
            "unix": f"unix://{self.socket_path}",
            "tcp": f"tcp://127.0.0.1:{self.tcp_port}",
            "udp": f"udp://127.0.0.1:{self.udp_port}",
            "ws": f"ws://127.0.0.1:{self.ws_port}/",
        }
        self.process = Process([
            namewire_binary(), "run", "--socket", str(self.socket_path),
            "--listen-udp", f"127.0.0.1:{self.udp_port}",
            "--listen-tcp", f"127.0.0.1:{self.tcp_port}",
            "--listen-ws", f"127.0.0.1:{self.ws_port}",
            "--workers", str(workers),
        ], scratch / f"router-{workers}.log")
        deadline = time.monotonic() + ROUTER_START_SECONDS_MAX
        self.process.wait_for_line(lambda line: str(self.socket_path) in line, deadline, "router")
        while not self.socket_path.exists():
            if time.monotonic() > deadline:
                raise CaseFailed(f"router: no socket at {self.socket_path}\n{self.process.output()}")
            time.sleep(0.02)

    def add_route(self, prefix: str, face_uri: str) -> None:
        command = [namewire_binary(), "--transport", self.uris["unix"], "route", "add", prefix, face_uri]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, timeout=10, text=True, errors="replace")
        except subprocess.TimeoutExpired:
            raise CaseFailed(f"namewire route add {prefix} {face_uri}: not finished in time") from None
        if done.returncode != 0:
            raise CaseFailed(f"namewire route add {prefix} {face_uri}: status {done.returncode}\n{done.stdout}")

    def check_alive(self) -> None:
        status = self.process.child.poll()
        if status is not None:
            raise CaseFailed(f"the router ended with status {status}\n{self.process.output()}")


@dataclass(frozen=True)
class Case:
    """A consumer, a producer, their transports, and the kind of exchange."""
    what: str  # "ping", "object", "no-route", "manage" or "unprivileged"
    consumer: str
    consumer_transport: str
    producer: str
    producer_transport: str
    segment_bytes: int = 0

    def title(self) -> str:
        if self.what == "no-route":
            return f"{self.consumer} ({self.consumer_transport}) gets Nack NoRoute"
        if self.what == "manage":
            return f"{self.consumer} ({self.consumer_transport}) manages the router"
        if self.what == "unprivileged":
            return f"{self.consumer} ({self.consumer_transport}) may register itself and nothing else"
        size = f", {self.segment_bytes}-byte segments" if self.what == "object" else ""
        return (f"{self.what:6} {self.producer} ({self.producer_transport}) -> "
                f"{self.consumer} ({self.consumer_transport}){size}")


def all_cases() -> list[Case]:
    cases = []
    for transport in TRANSPORTS:
        for producer in LIBRARIES:
            for consumer in LIBRARIES:
                cases.append(Case("ping", consumer, transport, producer, transport))
                cases.append(Case("object", consumer, transport, producer, transport, SEGMENT_BYTES[transport]))
    cases.append(Case("ping", "ndnts", "ws", "ndnts", "ws"))
    cases.append(Case("object", "ndnts", "ws", "ndnts", "ws", SEGMENT_BYTES["ws"]))
    cases.append(Case("object", "python", "unix", "ndnts", "ws", SEGMENT_BYTES["ws"]))
    cases.append(Case("object", "ndnts", "ws", "python", "tcp", SEGMENT_BYTES["ws"]))
    # Different transports at the two ends, and packets that NDNts must fragment.
    cases.append(Case("object", "python", "unix", "ndnts", "udp", 7000))
    cases.append(Case("object", "ndnts", "udp", "python", "tcp", 1200))
    cases.append(Case("object", "ndnts", "udp", "ndnts", "udp", 4000))
    cases += [Case("no-route", "python", transport, "", "") for transport in ["unix", "tcp"]]
    # On the Unix socket the user owns the router; over TCP the user is unknown.
    cases += [Case("manage", "ndnts", "unix", "", ""), Case("unprivileged", "ndnts", "tcp", "", "")]
    return cases


def run_case(case: Case, router: Router, scratch: Path, index: int) -> str:
    """Returns the consumer's output; raises CaseFailed."""
    deadline = time.monotonic() + CASE_SECONDS_MAX
    prefix = f"/interop/{case.what}/{index}"
    router.check_alive()

    def start(library: str, role: str, transport: str, extra: list[str]) -> Process:
        command = application(library) + [role, "--transport", router.uris[transport], "--prefix", prefix] + extra
        return Process(command, scratch / f"{index}-{role}.log")

    if not case.producer:
        if case.what == "no-route":
            consumer = start(case.consumer, "expect-no-route", case.consumer_transport, [])
        else:
            trusted = ["--trusted"] if case.what == "manage" else []
            command = application(case.consumer, "management") + ["--transport", router.uris[case.consumer_transport]]
            consumer = Process(command + trusted, scratch / f"{index}-manage.log")
        try:
            return consumer.wait(deadline, "consumer")
        finally:
            consumer.stop()

    sent, received = scratch / "sent", scratch / "received"
    received.unlink(missing_ok=True)
    serve, ask, serve_options, ask_options = "serve-ping", "ping", ["--api", "1"], ["--count", str(PING_COUNT)]
    if case.what == "object":
        sent.write_bytes(os.urandom(OBJECT_BYTES))
        serve, ask, ask_options = "serve-object", "fetch", ["--file", str(received)]
        serve_options = ["--api", "2", "--file", str(sent), "--segment-bytes", str(case.segment_bytes)]
    if case.producer_transport == "udp":
        serve_options = serve_options + ["--no-register"]

    processes = []
    try:
        producer = start(case.producer, serve, case.producer_transport, serve_options)
        processes.append(producer)
        ready = producer.wait_for_line(lambda line: line.startswith("READY "), deadline, "producer")
        if case.producer_transport == "udp":
            router.add_route(prefix, ready.split()[1])
        consumer = start(case.consumer, ask, case.consumer_transport, ask_options)
        processes.append(consumer)
        try:
            said = consumer.wait(deadline, "consumer")
        except CaseFailed as failure:
            raise CaseFailed(f"{failure}--- producer said:\n{producer.output()}") from None
        if case.what == "object" and received.read_bytes() != sent.read_bytes():
            raise CaseFailed(f"{received.stat().st_size} bytes arrived and differ from the {OBJECT_BYTES} published")
        return said
    finally:
        for process in processes:
            process.stop()


def report(title: str, action) -> bool:
    """Runs one case, prints its line, returns whether it passed."""
    began = time.monotonic()
    try:
        said = action().strip().splitlines()
    except (CaseFailed, key_chain.Failed, repository.Failed, files.Failed, schemas.Failed, OSError) as failure:
        print(f"FAILED {title}: {failure}", flush=True)
        return False
    print(f"ok     {title}: {said[-1] if said else ''} in {time.monotonic() - began:.1f} s", flush=True)
    return True


def stop_router(router: Router) -> str:
    router.check_alive()
    status = router.process.stop(signal.SIGTERM)
    if status != 0:
        raise CaseFailed(f"ended with status {status}\n{router.process.output()}")
    if router.socket_path.exists():
        raise CaseFailed("left its socket behind")
    return "status 0, socket removed"


def main() -> int:
    parser = argparse.ArgumentParser(description="Interop tests with python-ndn and NDNts; see the head of this file.")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--only", default="", help="run only cases whose title contains this text")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    args = parser.parse_args()
    cases = [case for case in all_cases() if args.only in case.title()]
    scratch = Path(tempfile.mkdtemp(prefix="namewire-interop-"))
    keys = key_chain.KeyChainCases(namewire_binary(), interpreter("python"), interpreter("ndnts"), scratch)
    trust = schemas.SchemaCases(namewire_binary(), interpreter("python"), scratch)
    repo = repository.RepositoryCases(namewire_binary(), interpreter("python"), interpreter("ndnts"), scratch, Process)
    moved = files.FileCases(namewire_binary(), interpreter("python"), interpreter("ndnts"), scratch, Process)
    hellos = hello.HelloCases(Router, interpreter("python"), interpreter("ndnts"), scratch, Process, CaseFailed)
    commands = management.ManagementCases(Router, namewire_binary(), interpreter("python"), interpreter("ndnts"),
                                          free_port(socket.SOCK_DGRAM), scratch, Process, CaseFailed)
    issuing = certificates.CertificateCases(Router, namewire_binary(), interpreter("ndnts"), scratch, Process, CaseFailed)
    own_cases = keys.all() + trust.all() + repo.all() + moved.all() + hellos.all() + commands.all() + issuing.all()
    own_cases = [(title, action) for title, action in own_cases if args.only in title]
    if args.list:
        for title in [title for title, _ in own_cases] + [case.title() for case in cases]:
            print(title)
        scratch.rmdir()
        return 0

    for program in moved.missing() if not args.only else []:
        print(f"files: {program} is not installed: skipped", flush=True)
    passed = failed = 0
    try:
        results = [report(title, action) for title, action in own_cases]
        passed, failed = sum(results), len(results) - sum(results)
        for workers in args.workers:
            print(f"router with {workers} worker{'s' if workers > 1 else ''}", flush=True)
            router = None

            def start(workers=workers) -> str:
                nonlocal router
                router = Router(scratch, workers)
                return "serving"
            try:
                results = [report("router starts", start)]
                if router is None:
                    results += [False] * len(cases)
                    print(f"FAILED {len(cases)} cases that need the router", flush=True)
                else:
                    results += [report(case.title(), lambda: run_case(case, router, scratch, index))
                                for index, case in enumerate(cases)]
                    results.append(report("router stops on SIGTERM", lambda: stop_router(router)))
            finally:
                if router is not None:
                    router.process.stop(signal.SIGTERM)
            passed += sum(results)
            failed += len(results) - sum(results)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` ends the children
    sys.exit(main())
