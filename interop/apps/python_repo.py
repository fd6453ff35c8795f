#!/usr/bin/env python3
"""The clients of ndn-python-repo 0.3, as its own examples use them.

    python_repo.py put|get|delete REPO NAME [FILE]

The router is the one of NDN_CLIENT_TRANSPORT. Segments are signed with the default key of the user's key chain.
Prints the number of packets that the repository has stored or deleted, or the number of bytes that came.
"""
import asyncio
import os
import sys

from ndn.app import NDNApp
from ndn.encoding import Name
from ndn_python_repo.clients import DeleteClient, GetfileClient, PutfileClient

SEGMENT_BYTES = 8000
FRESHNESS_MS = 0  # as its putfile has it
PROCESSES = 2
CLIENT = Name.from_str("/interop/python-repo-client")


async def work(app: NDNApp, role: str, repo, name, file: str) -> None:
    if role == "put":
        client = PutfileClient(app, CLIENT, repo)
        stored = await client.insert_file(file, name, SEGMENT_BYTES, FRESHNESS_MS, PROCESSES, register_prefix=name)
        print(f"{stored} packets stored", flush=True)
    elif role == "get":
        await GetfileClient(app, repo).fetch_file(name, file, overwrite=True)
        print(f"{os.path.getsize(file)} bytes fetched", flush=True)
    else:
        client = DeleteClient(app, CLIENT, repo)
        print(f"{await client.delete_file(name, 0, register_prefix=name)} packets deleted", flush=True)


def main() -> None:
    role, repo, name = sys.argv[1], Name.from_str(sys.argv[2]), Name.from_str(sys.argv[3])
    app = NDNApp()
    failures = []

    async def run() -> None:
        try:
            await work(app, role, repo, name, sys.argv[4] if len(sys.argv) > 4 else "")
        except Exception as error:  # it would be lost in the library's loop
            failures.append(error)
        finally:
            app.shutdown()

    app.run_forever(after_start=run())
    if failures:
        raise failures[0]


if __name__ == "__main__":
    main()
