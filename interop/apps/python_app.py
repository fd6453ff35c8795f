"""A python-ndn application: producer or consumer, by its options.

Question: does an unmodified python-ndn program work through our router?
The runner uses both application interfaces of the library, because they register
prefixes differently: `--api 1` (ndn.app) signs commands in packet format
v0.2, `--api 2` (ndn.appv2) in v0.3.

A producer prints `READY LOCAL-FACE-URI` once its prefix is reachable and serves
until its standard input closes. A consumer prints its result and exits with 0,
or prints the reason of its failure and exits with 1.
"""
import argparse
import asyncio
import logging
import sys
import threading
from urllib.parse import urlsplit

from ndn import app as app_v1
from ndn import appv2 as app_v2
from ndn.app_support.segment_fetcher import segment_fetcher
from ndn.encoding import Component, Name
from ndn.security import DigestSha256Signer, KeychainDigest
from ndn.transport.stream_face import TcpFace, UnixFace
from ndn.transport.udp_face import UdpFace
from ndn.types import InterestNack

FRESHNESS_MS = 10_000
LIFETIME_MS = 4_000


def open_face(transport: str):
    uri = urlsplit(transport)
    if uri.scheme == "unix":
        return UnixFace(uri.path)
    if uri.scheme in ("tcp", "tcp4"):
        return TcpFace(uri.hostname, uri.port)
    if uri.scheme in ("udp", "udp4"):
        return UdpFace(uri.hostname, uri.port)
    raise SystemExit(f"no python-ndn transport for {transport}")


class Producer:
    """The two interfaces of the library behind one: register, answer."""

    def __init__(self, api: int, face):
        self.api = api
        if api == 1:
            self.app = app_v1.NDNApp(face=face, keychain=KeychainDigest())
        else:
            self.app = app_v2.NDNApp(face=face, client_conf={"transport": "unused"})

    def attach(self, prefix: str, answer):
        """`answer(name)` returns (name, content, final_block_id) or None."""
        if self.api == 1:
            def on_interest(name, _param, _app_param):
                found = answer(name)
                if found:
                    data_name, content, final = found
                    self.app.put_data(data_name, content, freshness_period=FRESHNESS_MS, final_block_id=final)
            self.app.set_interest_filter(prefix, on_interest)
        else:
            def on_interest(name, _app_param, reply, _context):
                found = answer(name)
                if found:
                    data_name, content, final = found
                    reply(self.app.make_data(data_name, content, DigestSha256Signer(),
                                             freshness_period=FRESHNESS_MS, final_block_id=final))
            self.app.attach_handler(prefix, on_interest)

    async def register(self, prefix: str) -> bool:
        if self.api == 1:
            return await self.app.register(prefix, None)
        return await self.app.register(prefix)


def ping_answer(name):
    return name, b"reply to " + bytes(Component.get_value(name[-1])), None


def object_answer(prefix: str, content: bytes, segment_bytes: int):
    versioned = Name.normalize(prefix) + [Component.from_version(1)]
    chunks = [content[i:i + segment_bytes] for i in range(0, len(content), segment_bytes)]
    final = Component.from_segment(len(chunks) - 1)

    def answer(name):
        if len(name) <= len(versioned):  # discovery: CanBePrefix, without a segment number
            segment = 0
        else:
            segment = Component.to_number(name[-1])
        if segment >= len(chunks):
            return None
        return versioned + [Component.from_segment(segment)], chunks[segment], final
    return answer


def exit_when_stdin_closes(loop, stop):
    def wait():
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(stop)
    threading.Thread(target=wait, daemon=True).start()


async def produce(args, answer):
    face = open_face(args.transport)
    producer = Producer(args.api, face)
    producer.attach(args.prefix, answer)

    async def ready():
        local = "-"
        if isinstance(face, UdpFace):
            local = "udp4://%s:%d" % face.transport.get_extra_info("sockname")
        if not args.no_register and not await producer.register(args.prefix):
            print("prefix registration was refused", flush=True)
            producer.app.shutdown()
            return
        print("READY", local, flush=True)
        exit_when_stdin_closes(asyncio.get_running_loop(), producer.app.shutdown)
    await producer.app.main_loop(ready())


async def consume(args, session) -> int:
    """Runs `session(app)` on a connected v1 application; returns the exit status."""
    app = app_v1.NDNApp(face=open_face(args.transport), keychain=KeychainDigest())
    status = 1

    async def run():
        nonlocal status
        try:
            status = await session(app)
        except Exception as error:  # noqa: BLE001 - the reason is the report
            print(f"{type(error).__name__}: {error}", flush=True)
        app.shutdown()
    await app.main_loop(run())
    return status


async def ping(args, app) -> int:
    window = asyncio.Semaphore(args.window)

    async def one(index: int):
        async with window:
            text = f"{index}".encode()
            _, _, content = await app.express_interest(
                Name.normalize(args.prefix) + [Component.from_bytes(text)],
                must_be_fresh=True, lifetime=LIFETIME_MS)
            if bytes(content) != b"reply to " + text:
                raise ValueError(f"Interest {index} brought {bytes(content)!r}")
    await asyncio.gather(*(one(index) for index in range(args.count)))
    print(f"{args.count} Data", flush=True)
    return 0


async def fetch(args, app) -> int:
    with open(args.file, "wb") as out:
        segments = 0
        async for content in segment_fetcher(app, args.prefix, timeout=LIFETIME_MS):
            out.write(content)
            segments += 1
    print(f"{segments} segments", flush=True)
    return 0


async def expect_nack(args, app) -> int:
    try:
        await app.express_interest(args.prefix, lifetime=LIFETIME_MS)
    except InterestNack as nack:
        print(f"Nack reason {nack.reason}", flush=True)
        return 0 if nack.reason == 150 else 1  # 150: NoRoute
    print("Data came back where no producer is")
    return 1


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["serve-ping", "serve-object", "ping", "fetch", "expect-no-route"])
    parser.add_argument("--transport", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--api", type=int, choices=[1, 2], default=1)
    parser.add_argument("--no-register", action="store_true")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--window", type=int, default=16)
    parser.add_argument("--file")
    parser.add_argument("--segment-bytes", type=int, default=8000)
    args = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, stream=sys.stdout)

    if args.role == "serve-ping":
        asyncio.run(produce(args, ping_answer))
        return 0
    if args.role == "serve-object":
        with open(args.file, "rb") as file:
            content = file.read()
        asyncio.run(produce(args, object_answer(args.prefix, content, args.segment_bytes)))
        return 0
    session = {"ping": ping, "fetch": fetch, "expect-no-route": expect_nack}[args.role]
    return asyncio.run(consume(args, lambda app: session(args, app)))


if __name__ == "__main__":
    sys.exit(main())
