"""Replies, and how they go out over ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.types import Receive, Send

from memorywall.records.entry import Entry
from memorywall.records.errors import MemorywallError, UnavailableError
from memorywall.records.lease import Lease
from memorywall.wire.entries import view
from memorywall.wire.leases import held_view
from memorywall.wire.service import problem

Header = tuple[bytes, bytes]

JSON = b"application/json"
_PROBLEM = b"application/problem+json"
# Memory is private to its caller: no cache on the way may keep it.
_ALWAYS: tuple[Header, ...] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)
encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply."""

    status: int
    body: bytes
    headers: tuple[Header, ...] = ()
    media: bytes = JSON

    async def send(self, send: Send) -> None:
        headers = [
            (b"content-type", self.media),
            (b"content-length", b"%d" % len(self.body)),
            *_ALWAYS,
            *self.headers,
        ]
        if self.status == 204:
            headers = [*_ALWAYS, *self.headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


@dataclass(frozen=True, slots=True)
class Stream:
    """A reply that is sent piece by piece; an endless one stops when the server does."""

    media: bytes
    pieces: AsyncIterator[bytes]
    endless: bool = False

    async def send(self, send: Send) -> None:
        headers = [(b"content-type", self.media), *_ALWAYS]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for piece in self.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            # Reads do not suspend, so without this a long export would shut everyone else out.
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})

    async def send_while_wanted(
        self, receive: Receive, send: Send, stopping: asyncio.Event
    ) -> None:
        """Sends until the end, until the client has gone, or, when endless, until `stopping`."""
        sending = asyncio.ensure_future(self.send(send))
        reasons: list[asyncio.Future[Any]] = [asyncio.ensure_future(_disconnected(receive))]
        if self.endless:
            reasons.append(asyncio.ensure_future(stopping.wait()))
        try:
            await asyncio.wait({sending, *reasons}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, *reasons):
                if not task.done():
                    task.cancel()
            outcome, *_ = await asyncio.gather(sending, *reasons, return_exceptions=True)
        if isinstance(outcome, asyncio.CancelledError) and stopping.is_set():
            await send({"type": "http.response.body", "body": b""})
        elif isinstance(outcome, Exception):
            raise outcome


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def json_reply(content: Any, status: int = 200, headers: tuple[Header, ...] = ()) -> Reply:
    """Anything msgspec can encode, as JSON."""
    return Reply(status, encode(content), headers)


def entry_reply(entry: Entry, status: int = 200) -> Reply:
    """An entry with its version as ETag."""
    headers: tuple[Header, ...] = ((b"etag", b'"%d"' % entry.version),)
    if status == 201:
        headers = (*headers, (b"location", b"/api/v1/memory/" + entry.id.encode()))
    return Reply(status, encode(view(entry)), headers)


def problem_reply(error: MemorywallError) -> Reply:
    """An error as an RFC 9457 problem document."""
    document = problem(error)
    if isinstance(document.get("current"), Entry):
        document["current"] = view(document["current"])
    if isinstance(document.get("existing_lease"), Lease):
        document["existing_lease"] = held_view(document["existing_lease"])
    headers: tuple[Header, ...] = ()
    if error.status == 401:
        headers = ((b"www-authenticate", b"Bearer"),)
    elif isinstance(error, UnavailableError):
        headers = ((b"retry-after", b"1"),)
    return Reply(error.status, encode(document), headers, _PROBLEM)
