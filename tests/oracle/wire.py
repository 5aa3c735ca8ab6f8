"""Speaks to the application without a socket, streams included."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlencode

from starlette.types import ASGIApp


@dataclass(frozen=True)
class Answer:
    """A whole reply, or of an endless one what came first."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.text.splitlines()]


async def send(
    app: ASGIApp,
    method: str,
    path: str,
    *,
    query: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
    content: bytes = b"",
) -> Answer:
    """One request. A stream of events is left after what it sends first."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("ascii"),
        "root_path": "",
        "query_string": urlencode(query or {}).encode("ascii"),
        "headers": [
            (name.lower().encode("ascii"), text.encode("utf-8"))
            for name, text in (headers or {}).items()
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    start: dict[str, Any] = {}
    pieces: list[bytes] = []
    heard_enough = asyncio.Event()
    asked = False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if not asked:
            asked = True
            return {"type": "http.request", "body": content, "more_body": False}
        await heard_enough.wait()
        return {"type": "http.disconnect"}

    async def take(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
            return
        pieces.append(message.get("body", b""))
        kind = dict(start["headers"]).get(b"content-type", b"")
        if kind == b"text/event-stream" or not message.get("more_body", False):
            heard_enough.set()

    async with asyncio.timeout(30):
        await app(scope, receive, take)
    return Answer(
        status=start["status"],
        headers={name.decode(): text.decode() for name, text in start["headers"]},
        text=b"".join(pieces).decode(),
    )


def part(name: str) -> str:
    """A name as one part of a path or, with slashes, as several."""
    return quote(name, safe="/")


def server_sent_events(text: str) -> list[dict[str, Any]]:
    """The data of each event; its `id` and `event` lines must repeat what the data says."""
    events = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":")
        if fields:
            event = json.loads(fields["data"])
            assert fields["id"] == str(event["seq"])
            assert fields["event"] == event["type"]
            events.append(event)
    return events
