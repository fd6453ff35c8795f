"""Cases of run.py about keys: other software reads the files of `namewire key`, and the reverse.

No router runs. Every case has home directories of its own.
"""
import json
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMAND_SECONDS_MAX = 30


class Failed(Exception):
    """Why a case failed, with the output of the command."""


class KeyChainCases:
    """The programs under test; the methods `*_case` are the cases."""

    def __init__(self, namewire: str, python: str, node: str, scratch: Path):
        self.namewire_binary, self.scratch = namewire, scratch
        self.python = [python, str(HERE / "apps" / "python_keys.py")]
        self.ndnts = [node, str(HERE / "apps" / "ndnts_keys.mjs")]

    def all(self) -> list[tuple[str, object]]:
        """Title and action of each case."""
        return [
            ("key chain of namewire read and used by python-ndn", self.python_reads_ours_case),
            ("key chain of python-ndn read and used by namewire", self.ours_reads_python_case),
            ("certificates of namewire and NDNts verified by each other", self.ndnts_certificates_case),
        ]

    def run(self, command: list[str], home: Path | None = None) -> str:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("NDN_CLIENT_")}
        if home is not None:
            environment["HOME"] = str(home)
        try:
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  errors="replace", timeout=COMMAND_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(command)}: not finished in time") from None
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def namewire(self, home: Path, *arguments: str) -> str:
        return self.run([self.namewire_binary, *arguments], home)

    def home(self, name: str) -> Path:
        home = self.scratch / name
        home.mkdir()
        return home

    def python_reads_ours_case(self) -> str:
        home = self.home("ours")
        self.run([*self.python, "rsa", str(home / "rsa.pem")])
        self.namewire(home, "key", "make", "/ours/ec")
        self.namewire(home, "key", "make", "/ours/rsa", "--from", str(home / "rsa.pem"))
        return self.run([*self.python, "sign", str(home), "/ours/ec", "/ours/rsa"])

    def ours_reads_python_case(self) -> str:
        home = self.home("python")
        self.run([*self.python, "make", str(home)])
        listed = {identity["identity"]: identity for identity in json.loads(self.namewire(home, "--json", "key", "list"))}
        for name, algorithm in [("/python/ec", "ECDSA P-256"), ("/python/rsa", "RSA 2048")]:
            if name not in listed or algorithm not in [key["algorithm"] for key in listed[name]["keys"]]:
                raise Failed(f"{name} with {algorithm} is not in {listed}")
            shown = json.loads(self.namewire(home, "--json", "key", "show", name))
            if not (shown["is_self_signed"] and shown["has_private_key"] and shown["algorithm"] == algorithm):
                raise Failed(f"{name}: {shown}")
            # namewire signs with python-ndn's key, and python-ndn accepts the signature.
            own, issued = home / "own.cert", home / "issued.cert"
            self.namewire(home, "key", "export-cert", name, "-o", str(own))
            self.namewire(home, "key", "issue", str(own), "--identity", name, "-o", str(issued))
            self.run([*self.python, "verify", str(issued), str(own)])
        # namewire adds a key, and python-ndn can still read the whole key chain.
        self.namewire(home, "key", "make", "/ours/too")
        return self.run([*self.python, "sign", str(home), "/python/ec", "/python/rsa", "/ours/too"])

    def ndnts_certificates_case(self) -> str:
        home = self.home("ndnts")
        ours, theirs, issued = home / "ours.cert", home / "theirs.cert", home / "issued.cert"
        verified = 0
        for kind in ["ecdsa", "ed25519"]:
            self.namewire(home, "key", "make", f"/ours/{kind}", "--type", kind)
            self.namewire(home, "key", "export-cert", f"/ours/{kind}", "-o", str(ours))
            self.run([*self.ndnts, "verify", str(ours), str(ours)])
            for algorithm in ["ecdsa", "ed25519", "rsa"]:
                self.run([*self.ndnts, "make", algorithm, f"/theirs/{algorithm}", str(theirs)])
                # `issue` checks the request's own signature, which NDNts made.
                self.namewire(home, "key", "issue", str(theirs), "--identity", f"/ours/{kind}", "-o", str(issued))
                self.run([*self.ndnts, "verify", str(issued), str(ours)])
                verified += 1
        return f"{verified} requests certified"
