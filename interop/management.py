"""Other software commands the router: NDNts from another host with a certificate of its own, and python-ndn's pynfdc.

NDNts registers over UDP under `/localhop/nfd`, as users of the testbed do. It alone serves its certificate, so the router
must ask the face that the command came from. pynfdc signs its requests for datasets, too. Its `New-Face` is left out:
python-ndn 0.5.2 reads the parameters of an answer in an order that is not NFD's, and refuses those of any NFD.
"""
import json
import os
import signal
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CASE_SECONDS_MAX = 60
RULE = """
    rule
    {{
      id {id}
      for {packet}
      filter
      {{
        type name
        regex {names}
      }}
      checker
      {{
        type {checker}
        sig-type ecdsa-sha256{locator}
      }}
    }}"""
LOCATOR = """
        key-locator
        {
          type name
          regex ^<>*<KEY><>{1,3}$
        }"""
CONFIGURATION = """face_system
{{
  unix
  {{
    path {socket}
  }}
  udp
  {{
    port {port}
    mcast no
  }}
}}
rib
{{
  localhop_security
  {{{rules}
    trust-anchor
    {{
      type dir
      dir {anchors}
    }}
  }}
}}
"""


class ManagementCases:
    def __init__(self, router, namewire: str, python: str, node: str, port: int, scratch: Path, process, failed):
        """`router` starts a router in a folder; `process` runs a program; `failed` is its exception."""
        self.start_router, self.namewire, self.python, self.node, self.port = router, namewire, python, node, port
        self.scratch, self.process, self.failed = scratch, process, failed

    def all(self):
        return [("certificate  NDNts registers from another host", self.certificate),
                ("pynfdc  status, faces, routes, strategies", self.pynfdc)]

    def tool(self, socket: Path, *arguments: str) -> str:
        command = [self.namewire, "--transport", f"unix://{socket}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=CASE_SECONDS_MAX)
        return done.stdout if done.returncode == 0 else ""

    def wait_for(self, what: str, is_so) -> None:
        deadline = time.monotonic() + CASE_SECONDS_MAX
        while not is_so():
            if time.monotonic() > deadline:
                raise self.failed(f"{what}: not so in time\n")
            time.sleep(0.1)

    def certificate(self) -> str:
        folder = self.scratch / "certificate"
        folder.mkdir()
        application = [self.node, str(HERE / "apps" / "ndnts_certificate.mjs")]
        subprocess.run([*application, "make", str(folder)], check=True, timeout=CASE_SECONDS_MAX)
        rules = RULE.format(id="commands", packet="interest", checker="customized", locator=LOCATOR,
                            names="^<localhop><nfd><rib>[<register><unregister>]<>{1,3}$")
        rules += RULE.format(id="certificates", packet="data", checker="hierarchical", locator="",
                             names="^<>*<KEY><>{1,3}$")
        socket, file = folder / "nfd.sock", folder / "nfd.conf"
        file.write_text(CONFIGURATION.format(socket=socket, port=self.port, rules=rules, anchors=folder / "anchors"))
        router = self.process([self.namewire, "nfd", "--config", str(file)], folder / "router.log",
                              os.environ | {"HOME": str(folder)})
        producer = None
        try:
            self.wait_for("the router answers", lambda: self.tool(socket, "status"))
            command = [*application, "produce", str(folder), f"127.0.0.1:{self.port}"]
            producer = self.process(command, folder / "producer.log")
            self.wait_for("NDNts has a route", lambda: "/ndn/host/alice/app" in self.tool(socket, "route", "list"))
            said = self.tool(socket, "peek", "/ndn/host/alice/app/hello")
            if said.strip() != "from alice":
                raise self.failed(f"the packet says {said!r}\n")
            return "registered with a certificate that it alone has"
        finally:
            for one in [producer, router]:
                if one is not None:
                    one.stop(signal.SIGTERM)

    def pynfdc(self) -> str:
        folder = self.scratch / "pynfdc"
        folder.mkdir()
        router = self.start_router(folder, 1)
        environment = os.environ | {"NDN_CLIENT_TRANSPORT": router.uris["unix"], "HOME": str(folder)}
        program = str(Path(self.python).parent / "pynfdc")

        def ask(expected: str, *arguments: str) -> None:
            done = subprocess.run([program, *arguments], capture_output=True, text=True, env=environment,
                                  timeout=CASE_SECONDS_MAX)
            if done.returncode != 0 or expected not in done.stdout:
                raise self.failed(f"pynfdc {' '.join(arguments)}: not {expected!r} in\n{done.stdout}{done.stderr}")

        try:
            uri = f"udp4://127.0.0.1:{self.port}"
            self.tool(router.socket_path, "face", "create", uri)
            faces = json.loads(self.tool(router.socket_path, "face", "list", "--json"))
            face = next(str(face["face_id"]) for face in faces if face["remote_uri"] == uri)
            ask("nFibEntries", "status")
            ask(uri, "face")
            ask("POINT_TO_POINT", "face", face)
            ask("200 OK", "nr", "/interop/pynfdc", face)
            ask(f"FaceID={face}", "route", "/interop/pynfdc")
            ask("200 OK", "ss", "/interop/pynfdc", "/localhost/nfd/strategy/multicast")
            ask("/interop/pynfdc", "strategy")
            ask("200 OK", "rs", "/interop/pynfdc")
            ask("200 OK", "rr", "/interop/pynfdc", face)
            ask("200 OK", "rf", face)
            return "ten commands"
        finally:
            router.process.stop(signal.SIGTERM)
