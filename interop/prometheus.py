#!/usr/bin/env python3
"""Prometheus and Grafana: does a real Prometheus read our metrics, and does our dashboard find its data there?

Two routers run with `--observe`, joined by UDP. `namewire put`, `get`, `pingserver`, `ping` and `peek` make traffic
between them, with Interests that nothing answers and datagrams that are no packets, so that there are drops. A
Prometheus on a port of its own reads both routers. Then

- `promtool check metrics` and the parser of prometheus-client read what /metrics answers;
- each query of packaging/grafana/namewire.json must return a finite number;
- the dashboard keeps to Grafana's schema (dashboard.py);
- `promtool` checks packaging/prometheus/alerts.yml and runs prometheus_alerts_test.yml, which says when an alert fires;
- each metric that dashboard and alerts name exists, and so does each of docs/reference/metrics.md.

Nothing is mocked but Grafana itself: it is under the AGPL, and no package of Debian has it.

Environment: NAMEWIRE              the router (default: target/release/namewire)
             PROMETHEUS, PROMTOOL  the programs (default: those in PATH)
Run it by `make test-prometheus`, which installs the packages of requirements-prometheus.txt.
Limits: each wait ends after WAIT_SECONDS_MAX; all ports are the kernel's choice; processes are ended by their id.
Last line: `N passed, N failed`; exit status 0 only if nothing failed.
"""
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

import dashboard
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from run import CaseFailed, Process, namewire_binary

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
DASHBOARD = ROOT / "packaging" / "grafana" / "namewire.json"
ALERTS = ROOT / "packaging" / "prometheus" / "alerts.yml"
ALERTS_TEST = HERE / "prometheus_alerts_test.yml"
WAIT_SECONDS_MAX = 60
FILE_BYTES = 300_000


def wait_for(what: str, attempt):
    """Returns the first true value of `attempt`, which may raise CaseFailed to say what is missing."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        try:
            value = attempt()
            missing = "no answer"
        except (CaseFailed, OSError) as failure:
            value, missing = None, str(failure)
        if value:
            return value
        if time.monotonic() > deadline:
            raise CaseFailed(f"{what}: not after {WAIT_SECONDS_MAX} s: {missing}")
        time.sleep(0.2)


def http(url: str, accept: str = "*/*") -> str:
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()


def command(*words: str, stdin: str | None = None) -> str:
    """Runs a program to its end; raises CaseFailed with what it said."""
    try:
        done = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise CaseFailed(f"{' '.join(words)}: not finished in time") from None
    if done.returncode != 0:
        raise CaseFailed(f"{' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


class Router:
    """A router with two workers, a counted prefix, an observer, and a store that is full after some seconds of pings."""

    def __init__(self, scratch: Path, name: str, routes: list[str], peers: list[str]):
        self.socket = scratch / f"{name}.sock"
        configuration = scratch / f"{name}.toml"
        configuration.write_text(f'[cs]\ncount = ["/published"]\npackets = 128\n[observe]\npeers = {json.dumps(peers)}\n')
        words = [namewire_binary(), "run", "--config", str(configuration), "--socket", str(self.socket), "--workers", "2",
                 "--listen-udp", "127.0.0.1:0", "--no-tcp", "--observe", "127.0.0.1:0"]
        self.process = Process(words + [word for route in routes for word in ("--route", route)], scratch / f"{name}.log")
        try:
            deadline = time.monotonic() + WAIT_SECONDS_MAX
            observed = self.process.wait_for_line(lambda line: "live page: http://" in line, deadline, name)
        except CaseFailed:
            self.process.stop(signal.SIGTERM)
            raise
        self.observer = re.search(r"http://([\d.:]+)/", observed)[1]
        self.udp = re.search(r"listening on udp4://([\d.]+:\d+)", self.process.output())[1]

    def words(self, *words: str) -> list[str]:
        return [namewire_binary(), "--transport", f"unix://{self.socket}", *words]


class Traffic:
    """Producers at one router, consumers at the other. When it is made, each kind of traffic has begun."""

    def __init__(self, scratch: Path, near: Router, far: Router, processes: list[Process]):
        self.near, self.consumers = near, []
        sent, received = scratch / "sent", scratch / "received"
        sent.write_bytes(os.urandom(FILE_BYTES))
        deadline = time.monotonic() + WAIT_SECONDS_MAX

        def start(name: str, words: list[str], ready: str) -> Process:
            processes.append(Process(words, scratch / f"{name}.log"))
            processes[-1].wait_for_line(lambda line: ready in line, deadline, name)
            return processes[-1]

        start("pingserver", far.words("pingserver", "/published"), "ping server ready")
        start("put", far.words("put", str(sent), "/published/file"), "/published/file")
        for _ in range(2):  # the second time from the Content Store
            command(*near.words("get", "/published/file", "-o", str(received)))
            if received.read_bytes() != sent.read_bytes():
                raise CaseFailed("the file that arrived differs")
            received.unlink()
        # These go on for as long as Prometheus asks: rates need traffic.
        pings = [("/published", "20"), ("/nowhere", "100"), ("/published/ping", "100")]
        for number, (prefix, interval_ms) in enumerate(pings):
            words = near.words("ping", prefix, "--interval", interval_ms, "--timeout", "300")
            self.consumers.append(start(f"ping-{number}", words, ""))
        self._datagrams()

    def stop(self) -> None:
        for consumer in self.consumers:
            consumer.stop(signal.SIGTERM)

    def _datagrams(self) -> None:
        """A packet, so that there is a face, and then bytes that are none: the face's link drops them."""
        host, port = self.near.udp.split(":")
        interest = bytes.fromhex("050e 0706 0804 6e6f6e65 0a04 01020304")  # name /none, a nonce
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.connect((host, int(port)))
            sender.send(interest)
            sender.settimeout(WAIT_SECONDS_MAX)
            sender.recv(9000)  # the Nack
            sender.send(b"\x05\x7fshort")


class Prometheus:
    """A real Prometheus that reads the routers each second."""

    def __init__(self, scratch: Path, routers: list[Router]):
        configuration = scratch / "prometheus.yml"
        configuration.write_text(json.dumps({  # JSON is YAML
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(ALERTS)],
            "scrape_configs": [{"job_name": "namewire",
                                "static_configs": [{"targets": [router.observer for router in routers]}]}],
        }))
        command(promtool(), "check", "config", str(configuration))
        self.process = Process([
            os.environ.get("PROMETHEUS", "prometheus"), f"--config.file={configuration}",
            f"--storage.tsdb.path={scratch / 'prometheus'}", "--web.listen-address=127.0.0.1:0",
        ], scratch / "prometheus.log")
        self.routers = routers

    def wait_until_it_reads(self) -> str:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        listening = r'msg="Listening on" address=(127\.0\.0\.1:\d+)'
        line = self.process.wait_for_line(lambda line: re.search(listening, line), deadline, "prometheus")
        self.address = re.search(listening, line)[1]

        def all_up():
            targets = self.ask("targets")["activeTargets"]
            said = [f"{target['scrapeUrl']} is {target['health']} {target['lastError']}" for target in targets]
            if len(targets) != len(self.routers) or any(target["health"] != "up" for target in targets):
                raise CaseFailed(f"{said}\n{self.process.output()}")
            return said
        return ", ".join(wait_for("Prometheus reads the routers", all_up))

    def ask(self, path: str, **parameters: object):
        query = urllib.parse.urlencode(parameters, doseq=True)
        return json.loads(http(f"http://{self.address}/api/v1/{path}?{query}"))["data"]

    def numbers(self, query: dashboard.Query) -> list[float]:
        """The finite numbers that Grafana would draw of the last minute."""
        if query.is_instant:
            series = self.ask("query", query=query.expr)["result"]
            points = [one["value"] for one in series]
        else:
            now = time.time()
            series = self.ask("query_range", query=query.expr, start=now - 60, end=now, step=1)["result"]
            points = [point for one in series for point in one["values"]]
        return [number for number in (float(text) for _, text in points) if math.isfinite(number)]


def promtool() -> str:
    return os.environ.get("PROMTOOL", "promtool")


# ---- the cases ----

def text_format(router: Router) -> str:
    text = http(f"http://{router.observer}/metrics")
    said = command(promtool(), "check", "metrics", stdin=text).strip()
    if said:
        raise CaseFailed(said)
    return f"{len(text.splitlines())} lines without a complaint"


def open_metrics(router: Router) -> str:
    """The parser of prometheus-client is strict: it refuses what OpenMetrics 1.0 forbids."""
    text = http(f"http://{router.observer}/metrics", "application/openmetrics-text; version=1.0.0")
    try:
        families = list(text_string_to_metric_families(text))
    except ValueError as error:
        raise CaseFailed(str(error)) from None
    if not any(family.type == "info" for family in families):
        raise CaseFailed(f"this is not OpenMetrics:\n{text[:400]}")
    return f"{len(families)} families"


def read_as_open_metrics(prometheus: Prometheus) -> str:
    """In Prometheus' own text format, an info metric would be a gauge."""
    def known():
        return prometheus.ask("metadata", metric="namewire_build").get("namewire_build") \
            or prometheus.ask("metadata", metric="namewire_build_info").get("namewire_build_info")
    found = wait_for("metadata of namewire_build_info", known)
    if found[0]["type"] != "info":
        raise CaseFailed(f"Prometheus read {found}")
    return "namewire_build is of type info"


def instances(prometheus: Prometheus, board: dict) -> str:
    """The variable of the dashboard lists both routers."""
    query = dashboard.variable_query(board, "instance")
    metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", query).groups()
    found = prometheus.ask(f"label/{label}/values", **{"match[]": metric})
    wanted = sorted(router.observer for router in prometheus.routers)
    if sorted(found) != wanted:
        raise CaseFailed(f"{query} lists {found}, not {wanted}")
    return ", ".join(found)


def all_queries(prometheus: Prometheus, board: dict) -> str:
    """Asks all queries until each has returned a finite number, for the router where the consumers are."""
    chosen = re.escape(prometheus.routers[0].observer).replace("\\", "\\\\")
    variables = {"instance": chosen, "__rate_interval": "10s"}
    waiting = dashboard.queries(board, variables)
    count = len(waiting)

    def none_waits():
        nonlocal waiting
        waiting = [query for query in waiting if not prometheus.numbers(query)]
        if waiting:
            raise CaseFailed("no data for\n" + "\n".join(f"    {query.panel}: {query.expr}" for query in waiting))
        return True
    wait_for("queries of the dashboard", none_waits)
    absent = dashboard.Query("", 'rate(namewire_no_such_metric_total{instance=~".*"}[10s])', False)
    if prometheus.numbers(absent):
        raise CaseFailed("a metric that does not exist has data: this check cannot fail")
    return f"{count} queries return data"


def drops_agree(prometheus: Prometheus, traffic: Traffic) -> str:
    """When the traffic has ended, Prometheus has the drops that `namewire status` shows."""
    traffic.stop()
    expr = f'namewire_drops_total{{instance="{traffic.near.observer}"}}'

    def equal():
        wanted = json.loads(command(*traffic.near.words("--json", "status")))["drops"]
        series = prometheus.ask("query", query=expr)["result"]
        found = {one["metric"]["reason"]: int(one["value"][1]) for one in series}
        if found != wanted:
            raise CaseFailed(f"Prometheus has {found}, namewire status {wanted}")
        return found
    return ", ".join(f"{reason} {count}" for reason, count in wait_for("equal drops", equal).items())


def names_exist(prometheus: Prometheus) -> str:
    scraped = set(prometheus.ask("label/__name__/values"))
    # The page has the name of a histogram, Prometheus those of its parts.
    scraped |= {re.sub(r"_(bucket|count|sum)$", "", name) for name in scraped}
    listed = set(re.findall(r"^\| `(namewire_\w+)`", (ROOT / "docs/reference/metrics.md").read_text(), re.MULTILINE))
    used = set(re.findall(r"\bnamewire_\w+", DASHBOARD.read_text() + ALERTS.read_text()))
    missing = sorted((listed | used) - scraped)
    if missing:
        raise CaseFailed(f"Prometheus has no {', '.join(missing)}")
    return f"{len(listed)} of docs/reference/metrics.md, {len(used)} in dashboard and alerts"


def alerts_run(prometheus: Prometheus) -> str:
    """Prometheus evaluates each rule without an error."""
    def healthy():
        rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
        bad = [f"{rule['name']}: {rule['health']} {rule.get('lastError', '')}" for rule in rules if rule["health"] != "ok"]
        if bad or not rules:
            raise CaseFailed(", ".join(bad) or "no rules")
        return len(rules)
    return f"{wait_for('alerts are evaluated', healthy)} rules are healthy"


def report(title: str, action) -> bool:
    """Runs one case, prints its line, returns whether it passed."""
    try:
        said = action().strip().splitlines()
    except (CaseFailed, dashboard.Wrong, OSError, ValueError) as failure:
        print(f"FAILED {title}: {failure}", flush=True)
        return False
    print(f"ok     {title}: {said[-1] if said else ''}", flush=True)
    return True


def with_files(board: dict) -> list[bool]:
    return [
        report("the dashboard keeps to Grafana's schema", lambda: str(dashboard.check(board) or DASHBOARD.name)),
        report("the check of the schema can fail", lambda: dashboard.self_test(board)),
        report("promtool check rules", lambda: command(promtool(), "check", "rules", str(ALERTS))),
        report("promtool test rules", lambda: command(promtool(), "test", "rules", str(ALERTS_TEST))),
    ]


def with_routers(scratch: Path, board: dict, processes: list[Process]) -> list[bool]:
    far = Router(scratch, "far", [], [])
    processes.append(far.process)
    near = Router(scratch, "near", [f"/published=udp://{far.udp}"], [f"http://{far.observer}"])
    processes.append(near.process)
    traffic = Traffic(scratch, near, far, processes)
    prometheus = Prometheus(scratch, [near, far])
    processes.append(prometheus.process)
    results = [report("promtool check metrics", lambda: text_format(near)),
               report("OpenMetrics", lambda: open_metrics(near)),
               report("Prometheus reads two routers", prometheus.wait_until_it_reads)]
    if not results[-1]:
        return results
    return results + [
        report("Prometheus reads OpenMetrics", lambda: read_as_open_metrics(prometheus)),
        report("the variable `instance`", lambda: instances(prometheus, board)),
        report("queries of the dashboard", lambda: all_queries(prometheus, board)),
        report("metrics exist", lambda: names_exist(prometheus)),
        report("alerts are evaluated", lambda: alerts_run(prometheus)),
        report("drops agree with namewire status", lambda: drops_agree(prometheus, traffic)),
    ]


def main() -> int:
    board = json.loads(DASHBOARD.read_text())
    scratch = Path(tempfile.mkdtemp(prefix="namewire-prometheus-"))
    processes: list[Process] = []
    results = with_files(board)
    try:
        results += with_routers(scratch, board, processes)
    except (CaseFailed, OSError) as failure:
        print(f"FAILED routers, traffic and Prometheus: {failure}", flush=True)
        results.append(False)
    finally:
        for process in reversed(processes):
            process.stop(signal.SIGTERM)
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` ends the children
    sys.exit(main())
