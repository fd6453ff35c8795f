"""The same consumer and producer in three languages: each consumer hears each producer.

docs/client.md shows the programs; `tools/tidy.py` compares them with the page. Ours are the examples `consumer` and
`producer` of crates/client, built without optimisation beside the router.
"""
import os
import signal
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARIES = ["python-ndn", "NDNts", "namewire"]
CASE_SECONDS_MAX = 60


class HelloCases:
    def __init__(self, router, python: str, node: str, scratch: Path, process, failed):
        """`router` starts a router in a folder; `process` runs a program; `failed` is its exception."""
        self.start_router, self.scratch, self.process, self.failed = router, scratch, process, failed
        target = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
        self.commands = {
            "python-ndn": lambda role, socket: [python, str(HERE / "apps" / "hello" / f"{role}.py")],
            "NDNts": lambda role, socket: [node, str(HERE / "apps" / "hello" / f"{role}.mjs"), str(socket)],
            "namewire": lambda role, socket: [str(target / "debug" / "examples" / role)],
        }

    def all(self):
        pairs = [(producer, consumer) for producer in LIBRARIES for consumer in LIBRARIES]
        return [(f"hello  {producer} -> {consumer}", lambda pair=pair: self.hello(*pair))
                for pair in pairs for producer, consumer in [pair]]

    def hello(self, producer: str, consumer: str) -> str:
        folder = self.scratch / f"hello-{producer}-{consumer}"
        folder.mkdir()
        router = self.start_router(folder, 1)
        environment = os.environ | {"NDN_CLIENT_TRANSPORT": router.uris["unix"], "HOME": str(folder)}
        serving = None
        try:
            command = self.commands[producer]("producer", router.socket_path)
            serving = self.process(command, folder / "producer.log", environment)
            return self.ask(self.commands[consumer]("consumer", router.socket_path), folder, environment)
        finally:
            if serving is not None:
                serving.stop(signal.SIGTERM)
            router.process.stop(signal.SIGTERM)

    def ask(self, command: list[str], folder: Path, environment: dict[str, str]) -> str:
        """Asks until the producer has registered its prefix."""
        deadline = time.monotonic() + CASE_SECONDS_MAX
        while True:
            asking = self.process(command, folder / "consumer.log", environment)
            try:
                said = asking.wait(deadline, "consumer")
                if said.strip() != "hello":
                    raise self.failed(f"it heard {said!r}")
                return said
            except self.failed as failure:
                if time.monotonic() > deadline:
                    raise self.failed(f"{failure}--- producer said:\n{(folder / 'producer.log').read_text()}") from None
            finally:
                asking.stop(signal.SIGTERM)
