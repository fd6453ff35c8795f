#!/usr/bin/env python3
"""Faults on a path of ten routers: do `namewire traceroute` and `namewire doctor` name the router and the reason?

    client ── r1 ── r2 ── r3 ── r4 ── r5 ── r6 ── r7 ── r8 ── r9 ── r10 ── an application for /site/film
                               NFD         ndnd        NFD

NFD and ndnd are used if they are installed. In the place of one that is not, a Namewire runs that answers no probes, as
they do; the table says so. All links are UDP on loopback, some through a relay that loses what a fault needs.

For each fault, the program makes it, asks `traceroute` at r1, or `doctor` at the router that is concerned, and undoes
it. The answer must name the router and the reason, within two seconds. It prints a table, and ends with 1 if fewer than
18 faults were named.

Usage: interop/faults.py [--program target/release/namewire] [NAME …]     only the faults whose titles contain a NAME
Environment: NFD, NDND   the programs nfd and ndnd (default: the PATH)
"""
import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional

ROUTERS = 10
OTHERS = {4: "nfd", 6: "ndnd", 8: "nfd"}
PATIENCE_S = 30
# What an answer may take. A doctor looks at counters for a second, and a silent hop takes a second.
ANSWER_S = 2.0
NAMED_LEAST = 18
PREFIX = "/site"
NAME = "/site/film"


class Failed(Exception):
    """Something that the faults need could not be made."""


def wait_until(what: str, is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > end:
            raise Failed(f"not so: {what}")
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Relay:
    """A UDP link in the middle: what a router sends here goes to `to`, and the answers come back, but for those that
    are larger than `largest` bytes."""

    def __init__(self, to: int) -> None:
        self.to, self.largest, self.port = ("127.0.0.1", to), 65536, free_port()
        self.near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.near.bind(("127.0.0.1", self.port))
        self.far: dict[tuple[str, int], socket.socket] = {}
        threading.Thread(target=self.forward, daemon=True).start()

    def forward(self) -> None:
        while True:
            data, sender = self.near.recvfrom(65536)
            if sender not in self.far:
                far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                far.connect(self.to)
                self.far[sender] = far
                threading.Thread(target=self.backward, args=(far, sender), daemon=True).start()
            if len(data) <= self.largest:
                self.send(self.far[sender].send, data)

    def backward(self, far: socket.socket, to: tuple[str, int]) -> None:
        while True:
            try:
                data = far.recv(65536)
            except ConnectionRefusedError:
                continue
            if len(data) <= self.largest:
                self.send(lambda data: self.near.sendto(data, to), data)

    @staticmethod
    def send(send: Callable[[bytes], int], data: bytes) -> None:
        try:
            send(data)
        except OSError:
            pass  # the router is gone


@dataclass
class Router:
    """One forwarder as a process."""
    number: int
    kind: str
    port: int
    folder: Path
    program: str
    process: Optional[subprocess.Popen] = None
    wrapper: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    # What its configuration file has, if it has one.
    file: str = ""

    @property
    def socket(self) -> Path:
        return self.folder / f"r{self.number}.sock"

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        command = {"nfd": self.nfd, "ndnd": self.ndnd}.get(self.kind, self.namewire)()
        log = open(self.folder / f"r{self.number}.log", "ab")
        home = self.folder / f"home{self.number}"
        home.mkdir(exist_ok=True)
        self.process = subprocess.Popen(self.wrapper + command, stdout=log, stderr=log,
                                        env={**os.environ, "HOME": str(home)}, start_new_session=True)
        try:
            wait_until(f"r{self.number} ({self.kind}) runs", self.answers)
        except Failed as error:
            said = (self.folder / f"r{self.number}.log").read_text().strip().splitlines()[-3:]
            raise Failed(f"{error}: {said}") from error

    def answers(self) -> bool:
        if not self.socket.exists():
            return False
        return self.tool("face", "list", check=False).returncode == 0

    def namewire(self) -> list[str]:
        sets = [f"router.name=/r{self.number}", "faces.tcp.enabled=false", f'faces.udp.listen=["127.0.0.1:{self.port}"]']
        sets += self.settings + (["probes.answer=nobody"] if self.kind == "silent" else [])
        command = [self.program, "run", "--socket", str(self.socket)]
        if self.file:
            path = self.folder / f"r{self.number}.toml"
            path.write_text(self.file)
            command += ["--config", str(path)]
        return command + [word for each in sets for word in ("--set", each)]

    def nfd(self) -> list[str]:
        path = self.folder / f"r{self.number}.conf"
        path.write_text(f"""
            general {{ }}
            log {{ default_level NONE }}
            tables {{ cs_max_packets 1000 strategy_choice {{ / /localhost/nfd/strategy/best-route
                /localhost /localhost/nfd/strategy/multicast /localhost/nfd /localhost/nfd/strategy/best-route }} }}
            face_system {{ general {{ enable_congestion_marking yes }} unix {{ path {self.socket} }} tcp {{ listen no }}
                udp {{ listen yes port {self.port} enable_v6 no mcast no whitelist {{ * }} blacklist {{ }} }} }}
            authorizations {{ authorize {{ certfile any privileges {{ faces fib cs strategy-choice }} }} }}
            rib {{ localhost_security {{ trust-anchor {{ type any }} }} }}
        """)
        return [os.environ.get("NFD", "nfd"), "--config", str(path)]

    def ndnd(self) -> list[str]:
        path = self.folder / f"r{self.number}.yml"
        path.write_text(f"""
core: {{ log_level: ERROR }}
faces:
  udp: {{ enabled_unicast: true, enabled_multicast: false, port_unicast: {self.port}, default_mtu: 8800 }}
  tcp: {{ enabled: false, port_unicast: {self.port} }}
  unix: {{ enabled: true, socket_path: {self.socket} }}
  websocket: {{ enabled: false }}
""")
        return [os.environ.get("NDND", "ndnd"), "fw", "run", str(path)]

    def tool(self, *words: str, check: bool = True, **options) -> subprocess.CompletedProcess:
        home = self.folder / f"home{self.number}"
        # Beside a router whose clock is wrong, tools have the same clock.
        command = [*self.wrapper, self.program, "--transport", f"unix://{self.socket}", *words]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HOME": str(home)}, **options)
        if check and done.returncode != 0:
            raise Failed(f"r{self.number}: {' '.join(words)}: {done.stderr}")
        return done

    def spawn(self, *words: str, stdin: bytes = b"") -> subprocess.Popen:
        command = [self.program, "--transport", f"unix://{self.socket}", *words]
        environment = {**os.environ, "HOME": str(self.folder / f"home{self.number}")}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, **quiet)
        process.stdin.write(stdin)
        process.stdin.close()
        return process

    def stop(self) -> None:
        if self.process:
            # The whole session: a wrapper may not pass signals on.
            for end in (signal.SIGCONT, signal.SIGTERM):
                os.killpg(self.process.pid, end)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            wait_until(f"r{self.number} has left its port", self.port_is_free)
            self.process = None

    def port_is_free(self) -> bool:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("127.0.0.1", self.port))
            except OSError:
                return False
            return True

    def route(self, prefix: str, port: int, cost: int = 0) -> None:
        self.tool("route", "add", prefix, f"udp4://127.0.0.1:{port}", "--cost", str(cost))

    def unroute(self, prefix: str, port: int) -> None:
        self.tool("route", "remove", prefix, f"udp4://127.0.0.1:{port}", check=False)


class Network:
    """The path, with an application at its end."""

    def __init__(self, folder: Path, program: str) -> None:
        self.folder, self.program = folder, program
        self.routers = {number: self.router(number) for number in range(1, ROUTERS + 1)}
        self.relay = Relay(self.routers[3].port)  # between r2 and r3
        self.producer: Optional[subprocess.Popen] = None
        self.taken: Optional[socket.socket] = None
        for router in self.routers.values():
            router.start()
        for number in range(1, ROUTERS):
            self.routers[number].route(PREFIX, self.port_behind(number))
        self.produce()

    def router(self, number: int) -> Router:
        kind = OTHERS.get(number, "namewire")
        if kind != "namewire" and not shutil.which(os.environ.get(kind.upper(), kind)):
            kind = "silent"
        return Router(number, kind, free_port(), self.folder, self.program)

    def __getitem__(self, number: int) -> Router:
        return self.routers[number]

    def port_behind(self, number: int) -> int:
        return self.relay.port if number == 2 else self.routers[number + 1].port

    def produce(self) -> None:
        film = self.folder / "film"
        film.write_bytes(bytes(20_000))
        self.producer = self[ROUTERS].spawn("put", str(film), NAME)
        wait_until("the application has its route", lambda: NAME in self[ROUTERS].tool("route", "list").stdout)

    def end_producer(self) -> None:
        self.producer.send_signal(signal.SIGCONT)
        self.producer.terminate()
        self.producer.wait()
        wait_until("its route is gone", lambda: NAME not in self[ROUTERS].tool("route", "list").stdout)

    def restart(self, number: int, produces: bool = True, **changes) -> None:
        """Starts a router again, with other settings, and gives it and its neighbours their routes."""
        router = self[number]
        router.stop()
        for name, value in changes.items():
            setattr(router, name, value)
        router.start()
        if number < ROUTERS:
            router.route(PREFIX, self.port_behind(number))
        elif produces:
            self.produce()

    def stop(self) -> None:
        if self.producer:
            self.producer.kill()
            self.producer.wait()
        for router in self.routers.values():
            router.stop()


@dataclass
class Fault:
    title: str
    # Makes the fault; returns what undoes it.
    make: Callable[[Network], Callable[[], None]]
    # The router that is asked, and the command.
    at: int
    command: list[str]
    # Words that the answer must have.
    words: list[str]


FAULTS: list[Fault] = []


def fault(title: str, *words: str, at: int = 1, command: tuple[str, ...] = ("traceroute", NAME)):
    def add(make: Callable[[Network], Callable[[], None]]):
        FAULTS.append(Fault(title, make, at, list(command), list(words)))
        return make
    return add


# --- what traceroute finds ---


@fault("no route at a router", "/r7 has no route")
def no_route(net: Network):
    net[7].unroute(PREFIX, net.port_behind(7))
    return lambda: net[7].route(PREFIX, net.port_behind(7))


@fault("no route at NFD", "no route", "hop 4, behind /r3")
def no_route_at_nfd(net: Network):
    net[4].unroute(PREFIX, net.port_behind(4))
    return lambda: net[4].route(PREFIX, net.port_behind(4))


@fault("dead link: the neighbour has ended", "/r9", "its link is down")
def dead_link(net: Network):
    net.end_producer()  # or it would come back beside the next one
    net[10].stop()
    net[9].tool("peek", f"{NAME}/x", "--timeout", "300ms", check=False)
    wait_until("r9 notices", lambda: "down" in net[9].tool("face", "list").stdout)

    def undo():
        net[10].start()
        net.produce()
        net[9].unroute(PREFIX, net.port_behind(9))
        net[9].route(PREFIX, net.port_behind(9))
    return undo


@fault("silent neighbour", "/r9 sends to face", "nothing answers from there")
def silent_neighbour(net: Network):
    hole = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    hole.bind(("127.0.0.1", 0))
    port = hole.getsockname()[1]
    net[9].unroute(PREFIX, net.port_behind(9))
    net[9].route(PREFIX, port)

    def undo():
        net[9].unroute(PREFIX, port)
        net[9].route(PREFIX, net.port_behind(9))
        hole.close()
    return undo


@fault("a router hangs", "/r9 sends to face", "nothing answers from there")
def router_hangs(net: Network):
    net[10].process.send_signal(signal.SIGSTOP)
    return lambda: net[10].process.send_signal(signal.SIGCONT)


@fault("loop", "circle", "/r2, /r3, /r2")
def loop(net: Network):
    net[3].unroute(PREFIX, net.port_behind(3))
    net[3].route(PREFIX, net[2].port)

    def undo():
        net[3].unroute(PREFIX, net[2].port)
        net[3].route(PREFIX, net.port_behind(3))
    return undo


@fault("the only next hop is where Interests come from", "/r2", "the Interest came from there")
def back_again(net: Network):
    net[2].unroute(PREFIX, net.port_behind(2))
    net[2].route(PREFIX, net[1].port)

    def undo():
        net[2].unroute(PREFIX, net[1].port)
        net[2].route(PREFIX, net.port_behind(2))
    return undo


@fault("a cache has an old version", "/r3 has the Data in its Content Store")
def old_version(net: Network):
    poke = net[3].spawn("poke", NAME, "--freshness", "1h", stdin=b"old")
    wait_until("it serves", lambda: NAME in net[3].tool("route", "list").stdout)
    # The first may leave before the FIB has the route.
    net[3].tool("peek", NAME, "--lifetime", "300ms", "--timeout", "10s")
    poke.wait(PATIENCE_S)
    return lambda: net[3].tool("cs", "erase", "/site")


@fault("small MTU", "large packets do not get from /r2 to /r3")
def small_mtu(net: Network):
    net.relay.largest = 1400

    def undo():
        net.relay.largest = 65536
    return undo


@fault("a clock is two hours ahead", "the clock of /r5 is", "ahead of")
def clock(net: Network):
    if not shutil.which("faketime"):
        raise Failed("faketime is not installed")
    net.restart(5, wrapper=["faketime", "-f", "+2h"])
    return lambda: net.restart(5, wrapper=[])


@fault("a neighbour has its share of the PIT", "/r3 refuses what comes this way", "pit")
def full_pit(net: Network):
    net.restart(3, settings=["tables.pit_capacity=64"])
    net.producer.send_signal(signal.SIGSTOP)
    flood = net[2].spawn("traffic", "send", f"{NAME}/flood", "--rate", "500")
    wait_until("r3 refuses", lambda: "share-used" in net[3].tool("status").stdout)

    def undo():
        flood.kill()
        flood.wait()
        net.producer.send_signal(signal.SIGCONT)
        net.restart(3, settings=[])
    return undo


@fault("the producer has ended", "/r10 has no route")
def producer_gone(net: Network):
    net.end_producer()
    return net.produce


@fault("the producer hangs", "/r10", "Interests unanswered")
def producer_hangs(net: Network):
    net.producer.send_signal(signal.SIGSTOP)
    for number in range(3):
        net[10].tool("peek", f"{NAME}/hang/{number}", "--lifetime", "200ms", "--timeout", "400ms", check=False)
    return lambda: net.producer.send_signal(signal.SIGCONT)


@fault("wrong strategy: copies to all next hops", "/r2", "multicast to")
def wrong_strategy(net: Network):
    net[2].route(PREFIX, net[7].port, 10)
    net[2].tool("strategy", "set", PREFIX, "multicast")

    def undo():
        net[2].tool("strategy", "unset", PREFIX)
        net[2].unroute(PREFIX, net[7].port)
    return undo


# --- what doctor finds ---


@fault("two producers of one name", "applications of this machine registered /site/film", at=10, command=("doctor",))
def two_producers(net: Network):
    other = net[10].spawn("put", str(net.folder / "film"), NAME)
    count = lambda: net[10].tool("route", "list").stdout.count(f"\n{NAME} ")
    wait_until("both have a route", lambda: count() > 1)

    def undo():
        other.terminate()
        other.wait()
    return undo


@fault("an expired certificate", "/old", "expired", at=10, command=("doctor",))
def expired_certificate(net: Network):
    if not shutil.which("faketime"):
        raise Failed("faketime is not installed")
    wrapper, net[10].wrapper = net[10].wrapper, ["faketime", "-f", "-8000d"]
    net[10].tool("key", "make", "/old")
    net[10].wrapper = wrapper
    return lambda: net[10].tool("key", "delete", "/old")


@fault("a private key that others may read", "chmod -R go=", at=10, command=("doctor",))
def open_key(net: Network):
    net[10].tool("key", "make", "/open")
    folder = net.folder / "home10" / ".ndn" / "ndnsec-key-file"
    for file in folder.iterdir():
        file.chmod(0o644)
    return lambda: net[10].tool("key", "delete", "/open")


@fault("a refused registration", "The router refused", at=10, command=("doctor",))
def refused_registration(net: Network):
    rules, certificate = net.folder / "rules", net.folder / "operator.cert"
    net[9].tool("key", "make", "/operator")
    certificate.write_text(net[9].tool("key", "export-cert", "/operator").stdout)
    rules.write_text("rule { id operator for interest filter { type name name / relation is-prefix-of } checker { "
                     "type customized sig-type ecdsa-sha256 key-locator { type name name /operator "
                     "relation is-prefix-of } } }\n"
                     f"trust-anchor {{ type file file-name {certificate} }}\n")
    net.end_producer()
    net.restart(10, file=f'[trust]\nlocalhost_rib = "{rules}"\npeer_credentials = false\n', produces=False)
    net[10].tool("put", str(net.folder / "film"), NAME, check=False, timeout=PATIENCE_S)

    def undo():
        net.restart(10, file="")
        net[9].tool("key", "delete", "/operator")
    return undo


@fault("a state file whose folder is gone", "state", "cannot be used", at=9, command=("doctor",))
def lost_state(net: Network):
    folder = net.folder / "state"
    folder.mkdir()
    net.restart(9, settings=[f'state.file="{folder}/state.toml"'])
    shutil.rmtree(folder)
    return lambda: net.restart(9, settings=[])


@fault("another program has the port", "UDP", "port", at=2, command=("doctor", "--transport", "unix:///nowhere"))
def taken_port(net: Network):
    if net.taken is None:
        net.taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        net.taken.bind(("0.0.0.0", 6363))

    def undo():
        net.taken.close()
        net.taken = None
    return undo


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--program", default="target/release/namewire")
    parser.add_argument("faults", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    wanted = [one for one in FAULTS if not arguments.faults or any(name in one.title for name in arguments.faults)]
    with tempfile.TemporaryDirectory(prefix="faults") as folder:
        net = None
        try:
            net = Network(Path(folder), str(Path(arguments.program).resolve()))
            kinds = ", ".join(f"r{number} {router.kind}" for number, router in net.routers.items() if number in OTHERS)
            print(f"others on the path: {kinds}\n\n| fault | asked | named | s | answer |\n| --- | --- | --- | --- | --- |")
            check_without_fault(net)
            named = sum(try_fault(net, one) for one in wanted)
        finally:
            if net:
                net.stop()
    print(f"\n{named} of {len(wanted)} named")
    return 0 if named >= min(NAMED_LEAST, len(wanted)) else 1


def check_without_fault(net: Network) -> None:
    found = net[1].tool("traceroute", NAME, "--json")
    routes = json.loads(found.stdout)["routes"]
    heard = [hop["answer"]["router"] if hop["answer"] else "*" for hop in routes[0]["hops"]]
    expected = ["*" if number in OTHERS else f"/r{number}" for number in range(1, ROUTERS + 1)]
    if heard != expected:
        raise Failed(f"without a fault, the way is {heard}")


def try_fault(net: Network, one: Fault) -> bool:
    try:
        undo = one.make(net)
    except Failed as error:
        print(f"| {one.title} | | no | | not made: {error} |", flush=True)
        return False
    began = time.monotonic()
    done = net[one.at].tool(*one.command, check=False, timeout=PATIENCE_S)
    took = time.monotonic() - began
    answer = done.stdout + done.stderr
    is_named = all(word in answer for word in one.words) and took <= ANSWER_S
    shown = next((line for line in answer.splitlines() if one.words[-1] in line), answer.replace("\n", " / "))
    asked = f"{one.command[0]} at r{one.at}"
    print(f"| {one.title} | {asked} | {'yes' if is_named else 'no'} | {took:.2f} | {shown.strip()[:220]} |", flush=True)
    undo()
    return is_named


if __name__ == "__main__":
    sys.exit(main())
