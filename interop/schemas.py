"""A case of run.py about trust schemas: python-ndn compiles LVS schemas, and both say which key may sign which name.

No router runs. lvs_cases.py has the schemas and the names.
"""
import json
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMAND_SECONDS_MAX = 30


class Failed(Exception):
    """Why the case failed."""


class SchemaCases:
    """The programs under test; the methods `*_case` are the cases."""

    def __init__(self, namewire: str, python: str, scratch: Path):
        self.namewire_binary, self.python, self.scratch = namewire, python, scratch

    def all(self) -> list[tuple[str, object]]:
        """Title and action of each case."""
        return [("LVS schemas of python-ndn decided by namewire as by python-ndn", self.verdicts_case)]

    def run(self, *command: str) -> subprocess.CompletedProcess:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=COMMAND_SECONDS_MAX)

    def verdicts_case(self) -> str:
        folder = self.scratch / "schemas"
        folder.mkdir()
        made = self.run(self.python, str(HERE / "lvs_cases.py"), "--live", str(folder))
        if made.returncode != 0:
            raise Failed(made.stderr)
        cases = allowed = 0
        for table in json.loads(made.stdout):
            for packet, key, verdict in table["cases"]:
                done = self.run(self.namewire_binary, "--json", "schema", "check", str(folder / f"{table['model']}.tlv"),
                                "--name", packet, "--key", key)
                if not done.stdout:
                    raise Failed(f"{table['model']}: {packet} by {key}: {done.stderr}")
                report = json.loads(done.stdout)
                if report["verdict"]["allowed"] != verdict or report["roots"] != table["roots"]:
                    raise Failed(f"{table['model']}: {packet} by {key}: python-ndn says {verdict}\n{done.stdout}{done.stderr}")
                cases, allowed = cases + 1, allowed + verdict
        return f"{cases} verdicts, {allowed} of them allow"
