"""The instructions of a request: `python -m benchmarks.instructions`.

A count of instructions does not depend on what else the machine does. One process sends requests to
the ASGI application without a socket, one at a time, beside 100 stored entries of one agent, under
`valgrind --tool=cachegrind --cache-sim=no`. The difference of a long and a short run, divided by
that of their requests, is the count of one request. The figure is that count without what the
sender itself takes, which is counted by requests to an application that does nothing. `--gate` ends
with 1 if a figure is above its limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memorywall.assembly import open_memory
from memorywall.records.principal import DEFAULT_PERMISSIONS, PrincipalKind
from memorywall.server.app import build_app
from memorywall.service.access.api_keys import ApiKeyAuthenticator
from memorywall.service.administration.tenants import create_key
from memorywall.settings import DATABASE_NAME, DEFAULT_TENANT, Settings

LIMITS = {"get": 200_000, "create": 1_000_000, "patch": 900_000}
"""The most instructions of a request that the gate lets pass."""
_SHORT, _LONG = 100, 400
_WARM = 50
_ENTRIES = 100
_REFS = re.compile(r"I\s+refs:\s+([\d,]+)")
_MEMORY = "/api/v1/memory"

Request = Callable[[int], Awaitable[None]]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gate", action="store_true", help="end with 1 above a limit")
    for hidden in ("--send", "--send-to-nobody"):
        parser.add_argument(hidden, nargs=2, metavar=("NAME", "COUNT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.send:
        asyncio.run(_send(options.send[0], int(options.send[1])))
        return
    if options.send_to_nobody:
        asyncio.run(_send_to_nobody(options.send_to_nobody[0], int(options.send_to_nobody[1])))
        return
    if shutil.which("valgrind") is None:
        sys.exit(
            "valgrind counts the instructions; install it (Debian: `apt-get install valgrind`)"
        )
    figures = {name: count(name) for name in LIMITS}
    for name, figure in figures.items():
        print(f"{name:8} {figure:>10,} instructions, limit {LIMITS[name]:,}")
    if options.gate and any(figures[name] > limit for name, limit in LIMITS.items()):
        sys.exit(1)


def count(name: str) -> int:
    """Returns the instructions of one request.

    name: one of `LIMITS`
    """
    return _count("--send", name) - _count("--send-to-nobody", name)


def _count(option: str, name: str) -> int:
    short, long = (_run(option, name, requests) for requests in (_SHORT, _LONG))
    return (long - short) // (_LONG - _SHORT)


def _run(option: str, name: str, requests: int) -> int:
    """Returns the instructions of a process that sends this many requests."""
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    program = [sys.executable, "-m", "benchmarks.instructions", option, name, str(requests)]
    ended = subprocess.run(
        [*tool, *program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        check=True,
    )
    found = _REFS.search(ended.stderr)
    if found is None:
        raise RuntimeError("valgrind printed no count of instructions")
    return int(found[1].replace(",", ""))


async def _send(name: str, requests: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings(sqlite_path=Path(directory) / DATABASE_NAME, access_log=False)
        async with open_memory(settings) as service:
            key, _ = await create_key(
                service, DEFAULT_TENANT, "agent", PrincipalKind.AGENT, tuple(DEFAULT_PERMISSIONS)
            )
            app = build_app(service, ApiKeyAuthenticator(service))
            headers = [(b"x-api-key", key.encode()), (b"content-type", b"application/json")]
            await _repeat(Caller(app, headers), name, requests)


async def _send_to_nobody(name: str, requests: int) -> None:
    async def answer(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'{"id":"mem_%026d"}' % 0})

    headers = [(b"x-api-key", b"k" * 48), (b"content-type", b"application/json")]
    await _repeat(Caller(answer, headers), name, requests)


async def _repeat(caller: Caller, name: str, requests: int) -> None:
    request = (await _requests(caller))[name]
    for number in range(_WARM + requests):
        await request(number)


class Caller:
    """Sends requests to an ASGI application, with less of its own than any HTTP client.

    headers: those of every request
    """

    def __init__(self, app: ASGIApp, headers: list[tuple[bytes, bytes]]) -> None:
        self._app = app
        self._headers = headers

    async def send(self, method: str, path: str, body: object = None, version: int = 0) -> bytes:
        """Returns the body of the reply.

        body: JSON; None for none
        version: the value of If-Match; 0 for none
        Raises RuntimeError for a reply that is no success.
        """
        content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        replies: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Message) -> None:
            replies.append(message)

        precondition = [(b"if-match", b"%d" % version)] if version else []
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
            "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
            "root_path": "", "headers": [*self._headers, *precondition],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 7377),
        }  # fmt: skip
        await self._app(scope, receive, send)
        if replies[0]["status"] >= 300:
            raise RuntimeError(f"{method} {path} was answered with {replies[0]['status']}")
        return b"".join(message["body"] for message in replies[1:])


async def _requests(caller: Caller) -> dict[str, Request]:
    """Returns the measured requests, by name, each as a function of its number."""
    made = [
        await caller.send("POST", _MEMORY, _draft("invoices", number)) for number in range(_ENTRIES)
    ]
    ids = [json.loads(one)["id"] for one in made]
    versions = dict.fromkeys(ids, 1)

    async def get(number: int) -> None:
        await caller.send("GET", f"{_MEMORY}/{ids[number % _ENTRIES]}")

    async def create(number: int) -> None:
        await caller.send("POST", _MEMORY, _draft("others", number))

    async def patch(number: int) -> None:
        entry = ids[number % _ENTRIES]
        change = {"value": {"completed": number, "note": "y" * 60}}
        await caller.send("PATCH", f"{_MEMORY}/{entry}", change, versions[entry])
        versions[entry] += 1

    return {"get": get, "create": create, "patch": patch}


def _draft(namespace: str, number: int) -> dict[str, object]:
    value = {"completed": number, "note": "x" * 60}
    place = {"namespace": namespace, "key": f"k{number}", "memory_type": "working"}
    return {**place, "value": value, "tags": ["a", "b"]}


if __name__ == "__main__":
    main()
