#!/usr/bin/env python3
"""An emulated network: Mininet of Debian, with a router in each host under the names that scripts written for NFD type.

Question: do the things work that scripts for Mini-NDN do with NFD? Mini-NDN itself is in no package registry;
docs/mini-ndn.md says what its own examples did. This network is ours, in the same manner:

- each host has its home folder with a client.conf, keys made by the lines of ndnsec, and an nfd.conf, which is our
  nfd.conf.sample, read as a tree, changed, and written again as Boost writes it;
- `nfd --config` runs in each, all with sockets in one folder;
- `nfdc face create`, `route add` and batch files join them. What nfdc prints is taken apart as scripts do it.

    a --- b        Five hosts. Each line costs 1, except a-b, which costs 2: so only a and b themselves use it, and
    |     |        when it is cut, only their routes must change.
    d --- c
    |
    e

Every host pings each other one, and no ping may be missing: at first, while a-b is cut, after it has come back, and
after the router of d was ended and started again. Counters of a's face to b say which way the pings took.

Everything happens in namespaces of our own for processes, mounts and network. So nothing is left, even after a kill.
Environment: NAMEWIRE  the program (default: target/release/namewire)
Run it by `make test-mininet`, with Debian's Python, as root. Exit status 3: what it needs cannot be had here.
Limits: each wait ends after WAIT_SECONDS_MAX.
"""
import itertools
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import namewire_binary

SAMPLE = Path(__file__).resolve().parent.parent / "packaging" / "nfd" / "nfd.conf.sample"
LINE_COSTS = {("a", "b"): 2, ("b", "c"): 1, ("c", "d"): 1, ("a", "d"): 1, ("d", "e"): 1}
HOSTS = sorted({host for line in LINE_COSTS for host in line})
PINGS = 5
# A busy machine may answer late; a lost ping is still lost.
PING_TIMEOUT_MS = 20_000
WAIT_SECONDS_MAX = 60


def own_namespaces() -> None:
    """Starts this program again in its own namespaces."""
    if os.environ.get("NAMEWIRE_OWN_NAMESPACES") != "1":
        os.environ["NAMEWIRE_OWN_NAMESPACES"] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                              sys.executable, *sys.argv])
    # The sockets of the routers are below /run. Mininet would raise limits of the whole machine: it goes on without.
    for line in ["mount -t tmpfs tmpfs /run", "mount --bind /proc/sys/net/core /proc/sys/net/core",
                 "mount -o remount,bind,ro /proc/sys/net/core", "ip link set lo up"]:
        subprocess.run(line.split(), check=True)


# ---- nfd.conf as a tree ----

def read_info(text: str) -> list:
    """Boost's INFO format: a list of [key, value, list of what is below]."""
    tree = []
    open_lists = [tree]
    for line in text.splitlines():
        words = shlex.split(line.partition(";")[0])
        if words == ["{"]:
            open_lists.append(open_lists[-1][-1][2])
        elif words == ["}"]:
            open_lists.pop()
        elif words:
            open_lists[-1].append([words[0], " ".join(words[1:]), []])
    return tree


def write_info(tree: list, depth: int = 0) -> str:
    """As Boost writes it: a value of no length in quotes, braces in lines of their own."""
    indent = "    " * depth
    text = ""
    for key, value, below in tree:
        has_value = value != "" or not below
        written = f'"{value}"' if value == "" or " " in value else value
        text += f"{indent}{key} {written}\n" if has_value else f"{indent}{key}\n"
        if below:
            text += f"{indent}{{\n{write_info(below, depth + 1)}{indent}}}\n"
    return text


def change(tree: list, path: str, value: str) -> None:
    """Sets the value at a path such as `log.default_level`; the sections on the way must be there."""
    *sections, key = path.split(".")
    for section in sections:
        tree = next(below for name, _, below in tree if name == section)
    tree[:] = [entry for entry in tree if entry[0] != key] + [[key, value, []]]


def value_at(tree: list, path: str) -> str:
    *sections, key = path.split(".")
    for section in sections:
        tree = next(below for name, _, below in tree if name == section)
    return next(value for name, value, _ in tree if name == key)


# ---- hosts ----

class Node:
    """A host of Mininet with a router and its home folder."""

    def __init__(self, host, folder: Path):
        self.host = host
        self.name = host.name
        self.prefix = f"/ndn/{self.name}-site/{self.name}"
        self.home = folder / self.name
        (self.home / ".ndn").mkdir(parents=True)
        host.cmd(f"export HOME={self.home} && cd ~")
        self.router = None
        self.faces = {}  # by neighbour
        self.configure()

    def configure(self) -> None:
        tree = read_info(SAMPLE.read_text())
        self.socket = Path(value_at(tree, "face_system.unix.path")).parent / f"{self.name}.sock"
        change(tree, "log.default_level", "INFO")
        change(tree, "face_system.unix.path", str(self.socket))
        change(tree, "tables.cs_max_packets", "1000")
        change(tree, "tables.cs_policy", "lru")
        change(tree, "tables.cs_unsolicited_policy", "drop-all")
        change(tree, "tables.strategy_choice./changed", "/localhost/nfd/strategy/asf/v=5/probing-interval~1000")
        (self.home / "nfd.conf").write_text(write_info(tree))
        (self.home / ".ndn" / "client.conf").write_text(f"transport=unix://{self.socket}\n")
        self.host.cmd("ndnsec-key-gen /localhost/operator | ndnsec-cert-install -")

    def environment(self) -> dict[str, str]:
        return os.environ | {"HOME": str(self.home)}

    def popen(self, command: str, **options) -> subprocess.Popen:
        return self.host.popen(command.split(), cwd=self.home, env=self.environment(), text=True, **options)

    def start(self) -> None:
        with open(self.home / "nfd.log", "a") as log:
            self.router = self.popen(f"nfd --config {self.home}/nfd.conf", stdout=log, stderr=log)
        wait_for(f"the router of {self.name}", self.socket.exists)

    def stop(self) -> None:
        self.router.terminate()
        status = self.router.wait(WAIT_SECONDS_MAX)
        expect(f"the router of {self.name} ends well", status, 0)
        expect(f"the router of {self.name} takes its socket along", self.socket.exists(), False)

    def face_to(self, address: str) -> str:
        """Makes a face as scripts do: the second word of the answer has its number."""
        answer = self.host.cmd(f"nfdc face create udp://{address} persistency permanent")
        if answer.split(" ")[0] not in ("face-created", "face-exists", "face-updated"):
            raise AssertionError(f"{self.name}: no face to {address}: {answer}")
        number = answer.split(" ")[1][3:]
        listed = self.host.cmd(f"nfdc face list remote udp://{address}:6363")
        expect(f"the face of {self.name} to {address} in the list", listed.split(" ")[0], f"faceid={number}")
        return number

    def counters(self, face: str) -> dict[str, int]:
        """Interests, Data and Nacks that came in by the face and went out, for example `in_i`."""
        listed = re.search(f"^faceid={face} .*$", self.host.cmd("nfdc face list"), re.MULTILINE)
        if not listed:
            raise AssertionError(f"{self.name} has no face {face} any more")
        found = {}
        for way, interests, data, nacks in re.findall(r"(in|out)=\{(\d+)i (\d+)d (\d+)n", listed[0]):
            found |= {f"{way}_i": int(interests), f"{way}_d": int(data), f"{way}_n": int(nacks)}
        return found


def wait_for(what: str, attempt) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not attempt():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {WAIT_SECONDS_MAX} s")
        time.sleep(0.05)


def expect(what: str, seen, wanted) -> None:
    if seen != wanted:
        raise AssertionError(f"{what}: {seen!r} instead of {wanted!r}")


# ---- the network ----

def new_network():
    from mininet.log import setLogLevel
    from mininet.net import Mininet
    from mininet.topo import Topo
    setLogLevel("error")
    topo = Topo()
    for host in HOSTS:
        topo.addHost(host)
    for one, other in LINE_COSTS:
        topo.addLink(one, other)
    net = Mininet(topo=topo, controller=None)
    for number, line in enumerate(net.links):
        line.intf1.node.setIP(f"10.0.0.{4 * number + 1}/30", intf=line.intf1)
        line.intf2.node.setIP(f"10.0.0.{4 * number + 2}/30", intf=line.intf2)
    net.start()
    return net


def neighbours(name: str) -> dict[str, int]:
    return {(set(line) - {name}).pop(): cost for line, cost in LINE_COSTS.items() if name in line}


def distance(start: str, end: str, avoiding: str) -> int | None:
    """The cost of the cheapest way that does not touch one host."""
    best = {start: 0}
    for _ in HOSTS:
        for at, cost in list(best.items()):
            for to, more in neighbours(at).items():
                if to != avoiding and cost + more < best.get(to, cost + more + 1):
                    best[to] = cost + more
    return best.get(end)


def connect(node: Node, nodes: dict[str, Node]) -> None:
    """Faces to the neighbours by command, and by a batch file routes to every host over each of them."""
    for neighbour in neighbours(node.name):
        _, theirs = node.host.connectionsTo(nodes[neighbour].host)[0]
        node.faces[neighbour] = node.face_to(theirs.IP())
    lines = []
    for other, (neighbour, cost) in itertools.product(nodes.values(), neighbours(node.name).items()):
        rest = distance(neighbour, other.name, avoiding=node.name)
        if other is not node and rest is not None:
            lines.append(f"route add {other.prefix} {node.faces[neighbour]} origin 255 cost {cost + rest}")
    (node.home / "routes.batch").write_text("\n".join(lines))
    batch = node.popen(f"nfdc --batch {node.home}/routes.batch", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output, _ = batch.communicate(timeout=WAIT_SECONDS_MAX)
    expect(f"the batch file of {node.name}\n{output}", batch.returncode, 0)
    expect(f"routes of {node.name}", output.count("route-add-accepted"), len(lines))


def answered(source: Node, target: Node) -> bool:
    return "1 received" in source.host.cmd(f"ndnping -c 1 {target.prefix}")


def ping_all(nodes: dict[str, Node], when: str) -> None:
    """Every host pings each other one, all at once."""
    pairs = list(itertools.permutations(nodes.values(), 2))
    running = [source.popen(f"ndnping -c {PINGS} -i 100 -o {PING_TIMEOUT_MS} {target.prefix}",
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for source, target in pairs]
    received = 0
    for (source, target), ping in zip(pairs, running):
        output, _ = ping.communicate(timeout=WAIT_SECONDS_MAX + PINGS * PING_TIMEOUT_MS / 1000)
        summary = re.search(r"(\d+) packets transmitted, (\d+) received, 0 nacked, 0% lost", output)
        if not summary or int(summary[2]) != PINGS or ping.returncode != 0:
            raise AssertionError(f"{when}: {source.name} pings {target.name}, status {ping.returncode}:\n{output}")
        received += int(summary[2])
    print(f"{when}: {len(pairs)} pairs, {received} of {len(pairs) * PINGS} pings answered", flush=True)


# ---- the checks ----

def check_set_up(nodes: dict[str, Node]) -> None:
    for node in nodes.values():
        keys = node.host.cmd("ndnsec-list")
        expect(f"identities of {node.name}", re.findall(r"/\S+", keys), ["/localhost/operator"])
        # Our own route appears once the ping server has registered it.
        wait_for(f"FIB of {node.name}", lambda: node.host.cmd("nfdc fib list | grep -c /ndn/").strip() == str(len(nodes)))
        strategy = node.host.cmd("nfdc strategy show /changed/below")
        expect(f"strategy of {node.name}", re.search("strategy=(.*)", strategy)[1].strip(),
               "/localhost/nfd/strategy/asf/v=5/probing-interval~1000")
        expect(f"store of {node.name}", re.search(r"capacity=(\d+)", node.host.cmd("nfdc cs info"))[1], "1000")


def check_cut_line(net, nodes: dict[str, Node]) -> None:
    """a and b go the long way while their line is cut, and use it again afterwards."""
    a, b = nodes["a"], nodes["b"]
    direct = a.faces["b"]
    expect("a-b carries the pings of a and b alone", a.counters(direct),
           {"in_i": PINGS, "in_d": PINGS, "in_n": 0, "out_i": PINGS, "out_d": PINGS, "out_n": 0})
    net.configLinkStatus("a", "b", "down")
    wait_for("another way from a to b", lambda: answered(a, b))
    wait_for("another way from b to a", lambda: answered(b, a))
    before = a.counters(direct)
    ping_all(nodes, "a-b is cut")
    expect("counters of a's face to b, whose line is cut", a.counters(direct), before)
    net.configLinkStatus("a", "b", "up")

    def used_again() -> bool:
        return answered(a, b) and answered(b, a) and \
            all(a.counters(direct)[way] > before[way] for way in ("in_i", "in_d"))
    wait_for("a-b in use again", used_again)
    before = a.counters(direct)
    ping_all(nodes, "a-b is back")
    after = a.counters(direct)
    expect("the pings of a and b go over a-b again", [after[way] - before[way] for way in ("in_i", "in_d", "out_i", "out_d")],
           [PINGS] * 4)


def check_restart(nodes: dict[str, Node]) -> None:
    """The router with the most neighbours ends and starts again; its ping server stays, and registers again."""
    d = nodes["d"]
    d.stop()
    expect("e reaches a although d is gone", answered(nodes["e"], nodes["a"]), False)
    d.start()
    connect(d, nodes)
    for one, other in itertools.permutations(nodes.values(), 2):
        wait_for(f"a way from {one.name} to {other.name}", lambda: answered(one, other))
    ping_all(nodes, "d was ended and started again")


def check_peek(nodes: dict[str, Node]) -> None:
    producer, consumer = nodes["e"], nodes["b"]
    name = f"{producer.prefix}/hello"
    producer.host.cmd(f"echo 'HELLO WORLD' | ndnpoke {name} > poke.log 2>&1 &")
    wait_for("ndnpeek", lambda: consumer.host.cmd(f"ndnpeek -p {name}").strip() == "HELLO WORLD")


def check_network(folder: Path) -> None:
    net = new_network()
    nodes = {host.name: Node(host, folder) for host in net.hosts}
    for node in nodes.values():
        node.start()
    for node in nodes.values():
        connect(node, nodes)
        node.host.cmd(f"ndnpingserver {node.prefix} > ndnpingserver.log 2>&1 &")
    check_set_up(nodes)
    ping_all(nodes, "all lines work")
    check_cut_line(net, nodes)
    check_restart(nodes)
    check_peek(nodes)
    for node in nodes.values():
        node.stop()
    net.stop()


def main() -> None:
    if os.geteuid() != 0:
        print("Mininet is not tested here: it needs root")
        sys.exit(3)
    own_namespaces()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "bin").mkdir()
        subprocess.run([namewire_binary(), "links", folder / "bin", "--program", namewire_binary()], check=True)
        os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"
        for of_the_user in ("NDN_CLIENT_TRANSPORT", "NDN_CLIENT_PIB", "NDN_CLIENT_TPM", "XDG_RUNTIME_DIR"):
            os.environ.pop(of_the_user, None)
        try:
            check_network(folder)
        except AssertionError as failure:
            for log in sorted(folder.glob("*/nfd.log")):
                print(f"---- {log.parent.name}\n{log.read_text()[-2000:]}")
            sys.exit(f"failed: {failure}")
    print("passed")


main()
