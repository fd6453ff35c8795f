"""Certificates over the network (NDNCERT 0.3): NDNts' requester and our authority, and the reverse.

The applications are interop/apps/ndnts_authority.mjs and ndnts_requester.mjs, on NDNts' own package. Each case has a
router and home directories of its own. A certificate counts as read if its new owner signs an object with it, and the
other side verifies that object from the authority's certificate alone.
"""
import json
import os
import signal
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CASE_SECONDS_MAX = 60
SITE = "/site"
WRONG_CODE = "none"
TRIES = 3


class CertificateCases:
    def __init__(self, router, namewire: str, node: str, scratch: Path, process, failed):
        """`router` starts a router in a folder; `process` runs a program; `failed` is its exception."""
        self.start_router, self.namewire, self.node = router, namewire, node
        self.scratch, self.process, self.failed = scratch, process, failed

    def all(self):
        cases = [("NDNts gets one of namewire, renews it and signs with it", self.ndnts_gets_ours),
                 ("namewire gets one of NDNts, renews it and signs with it", self.ours_gets_ndnts),
                 (f"namewire refuses NDNts after {TRIES} wrong codes", self.ours_refuses_wrong_codes),
                 (f"NDNts refuses namewire after {TRIES} wrong codes", self.ndnts_refuses_wrong_codes),
                 ("neither takes another authority for the one it knows", self.another_authority)]
        return [(f"certificates  {title}", lambda run=run, name=run.__name__: self.with_site(name, run))
                for title, run in cases]

    def with_site(self, name: str, run) -> str:
        folder = self.scratch / f"certificates-{name}"
        folder.mkdir()
        site = Site(self, folder)
        try:
            return run(site)
        finally:
            site.stop()

    def ndnts_gets_ours(self, site) -> str:
        certificate = site.our_authority()
        asking = site.requester(certificate)
        site.event(asking, "asked")
        site.say(asking, site.event(site.authority, "code")["code"])
        site.event(asking, "serves")
        days = site.event(asking, "profile")["days"]
        issued = [line["certificate"] for line in json.loads(site.tool("--json", "cert", "issued", SITE))]
        got = [site.event(asking, "got", nth)["certificate"] for nth in (0, 1)]
        if sorted(issued) != sorted(got) or days != 30:
            raise self.failed(f"at most {days} days; issued: {issued}, got: {got}")
        for challenge in ("pin", "possession"):
            site.ndnts_verifies(site.folder / f"{challenge}.cert", certificate)
        return site.hello(asking, certificate, "hello from /site/bob")

    def ours_gets_ndnts(self, site) -> str:
        certificate, digest = site.ndnts_authority()
        info = json.loads(site.tool("--json", "cert", "info", SITE))
        if info["digest"].replace(":", "").lower() != digest or info["longest_days"] != 30:
            raise self.failed(f"the digest is {digest}, not as in {info}")
        asking = site.request("--anchor", str(certificate))
        site.say(asking, site.event(site.authority, "code")["code"])
        asking.wait(site.deadline, "cert request")
        names = [site.event(site.authority, "issued")["certificate"]]
        site.shows(names[0])
        site.ndnts_verifies(site.folder / "issued.cert", certificate)
        site.tool("--json", "cert", "renew", "/site/bob")
        names.append(site.event(site.authority, "issued", 1)["certificate"])
        site.shows(names[1])
        if names[0] == names[1]:
            raise self.failed(f"{names[0]} was issued twice")
        exported = site.folder / "exported.cert"
        site.tool("key", "export-cert", "/site/bob", "-o", str(exported))
        site.ndnts_verifies(exported, certificate)
        (site.folder / "hello").write_text("hello from /site/bob")
        putting = site.start("put", "--identity", "/site/bob", "put", str(site.folder / "hello"), "/site/bob/hello")
        return site.hello(putting, certificate, "hello from /site/bob")

    def ours_refuses_wrong_codes(self, site) -> str:
        asking = site.requester(site.our_authority())
        for nth in range(TRIES):
            question = site.event(asking, "asked", nth)
            status = "wrong-code" if nth else "need-code"
            if (question["status"], question["tries"]) != (status, TRIES - nth):
                raise self.failed(f"question {nth}: {question}")
            site.say(asking, WRONG_CODE)
        why = site.event(asking, "failed")["why"]
        if "error 7" not in why:
            raise self.failed(f"not refused for want of tries (7): {why}")
        return site.event(site.authority, "refused")["why"]

    def ndnts_refuses_wrong_codes(self, site) -> str:
        """NDNts has no answer for the last try, and calls the second Interest for it a bad signature."""
        _, digest = site.ndnts_authority()
        asking = site.request("--digest", digest)
        for _ in range(TRIES):
            site.say(asking, WRONG_CODE)
        said = site.failure(asking)
        if "the authority refused" not in said or f"({TRIES - 1} tries)" not in said:
            raise self.failed(said)
        return said.rpartition("namewire: ")[2]

    def another_authority(self, site) -> str:
        """The same name, and another key: the certificate that is trusted is not the one that serves."""
        (site.folder / "other").mkdir()
        other = Site(self, site.folder / "other", site.router)
        other_file = site.folder / "other.cert"
        other.tool("key", "make", SITE)
        other.tool("key", "export-cert", SITE, "-o", str(other_file))
        _, digest = site.ndnts_authority()
        wrong = digest[:-1] + ("0" if digest[-1] != "0" else "1")
        for trust in (["--digest", wrong], ["--anchor", str(other_file)]):
            said = site.failure(site.request(*trust))
            if "not the authority that you trust" not in said:
                raise self.failed(f"{trust}: {said}")
        site.authority.stop(signal.SIGTERM)
        site.our_authority()
        why = site.event(site.requester(other_file), "failed")["why"]
        if "CA profile contains certificate" not in why:
            raise self.failed(f"NDNts says {why}")
        return "by digest, by anchor and by NDNts' full name"


class Site:
    """A router, an authority of /site, and somebody who asks it. All processes end with `stop`."""

    def __init__(self, cases: CertificateCases, folder: Path, router=None):
        self.cases, self.folder, self.processes = cases, folder, []
        self.deadline = time.monotonic() + CASE_SECONDS_MAX
        self.is_own_router, self.router = router is None, router or cases.start_router(folder, 1)
        self.authority = None

    def stop(self) -> None:
        for process in self.processes:
            process.stop(signal.SIGTERM)
        if self.is_own_router:
            self.router.process.stop(signal.SIGTERM)

    def environment(self) -> dict[str, str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("NDN_CLIENT_")}
        return clean | {"HOME": str(self.folder), "NDN_CLIENT_TRANSPORT": self.router.uris["unix"]}

    def run(self, *command: str) -> str:
        try:
            done = subprocess.run(command, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, errors="replace", timeout=CASE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise self.cases.failed(f"{' '.join(command)}: not finished in time") from None
        if done.returncode != 0:
            raise self.cases.failed(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def tool(self, *arguments: str) -> str:
        return self.run(self.cases.namewire, *arguments)

    def start(self, log: str, *arguments: str, program: str | None = None):
        command = [program or self.cases.namewire, *arguments]
        process = self.cases.process(command, self.folder / f"{log}-{len(self.processes)}.log", self.environment())
        self.processes.append(process)
        return process

    def application(self, name: str, *arguments: str):
        file = str(HERE / "apps" / f"ndnts_{name}.mjs")
        return self.start(name, file, *arguments, program=self.cases.node)

    def event(self, process, kind: str, nth: int = 0) -> dict:
        """What a line of JSON tells: the event of this kind, `nth` from 0, for which it waits."""
        while True:
            has_ended = process.child.poll() is not None
            lines = [line for line in process.output().splitlines() if line.startswith("{") and line.endswith("}")]
            found = [event for event in map(json.loads, lines) if event.get("event") == kind]
            if len(found) > nth:
                return found[nth]
            if time.monotonic() > self.deadline or has_ended:
                raise self.cases.failed(f"no event {kind} number {nth} in\n{process.output()}")
            time.sleep(0.05)

    def failure(self, process) -> str:
        """What a program says that ends with an error."""
        while process.child.poll() is None:
            if time.monotonic() > self.deadline:
                raise self.cases.failed(f"not ended in time\n{process.output()}")
            time.sleep(0.05)
        if process.child.returncode == 0:
            raise self.cases.failed(f"it did not fail\n{process.output()}")
        return process.output()

    def say(self, process, line: str) -> None:
        process.child.stdin.write(f"{line}\n".encode())
        process.child.stdin.flush()

    def wait_for_route(self) -> None:
        while f"{SITE}/CA" not in self.tool("route", "list"):
            if time.monotonic() > self.deadline or self.authority.child.poll() is not None:
                raise self.cases.failed(f"the authority has no route\n{self.authority.output()}")
            time.sleep(0.05)

    def our_authority(self) -> Path:
        """The file of its certificate."""
        self.authority = self.start("ca", "--json", "cert", "ca", SITE)
        self.wait_for_route()
        certificate = self.folder / "ours.cert"
        self.tool("key", "export-cert", SITE, "-o", str(certificate))
        return certificate

    def ndnts_authority(self) -> tuple[Path, str]:
        """The file of its certificate, and the digest of that."""
        self.authority = self.application("authority", str(self.router.socket_path), SITE, str(self.folder))
        self.wait_for_route()
        return self.folder / "ca.cert", self.event(self.authority, "serves")["digest"]

    def requester(self, certificate: Path):
        folder = str(self.folder)
        return self.application("requester", str(self.router.socket_path), "/site/bob", str(certificate), folder)

    def request(self, *trust: str):
        return self.start("request", "cert", "request", "/site/bob", "--ca", SITE, *trust)

    def shows(self, certificate: str) -> None:
        """`key show` reads the certificate, and it is what /site/bob signs with."""
        shown = json.loads(self.tool("--json", "key", "show", "/site/bob"))
        if shown["certificate"] != certificate or shown["is_self_signed"] or not shown["has_private_key"]:
            raise self.cases.failed(f"not {certificate}: {shown}")

    def ndnts_verifies(self, certificate: Path, issuer: Path) -> None:
        self.run(self.cases.node, str(HERE / "apps" / "ndnts_keys.mjs"), "verify", str(certificate), str(issuer))

    def hello(self, serving, certificate: Path, expected: str) -> str:
        """An object is fetched and verified from the certificate of the authority alone."""
        while "/site/bob" not in self.tool("route", "list"):
            if time.monotonic() > self.deadline or serving.child.poll() is not None:
                raise self.cases.failed(f"nobody serves the object\n{serving.output()}")
            time.sleep(0.05)
        said = self.tool("get", "/site/bob/hello", "--anchor", str(certificate))
        if said != expected:
            raise self.cases.failed(f"the object says {said!r}")
        return said
