"""What the logic of the SDK asks a driver to do. Nothing here, or in the logic, does I/O."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from memorywall.records.errors import MemorywallError
from memorywall.wire.operations import OPERATIONS, Operation

Item = TypeVar("Item")
Result = TypeVar("Result")
OPERATIONS_BY_NAME = {operation.name: operation for operation in OPERATIONS}


class Request(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Run this operation of the table and give me the whole reply.

    operation: its name
    path: the parameters of its path, by name
    query: its query parameters, as text
    body: what goes as JSON, or bytes where the operation takes bytes; None for no body
    if_match: the version that is to be replaced
    fencing_token: the lease or claim it is made under
    idempotency_key: under which it is carried out once
    resume_after: for a stream of events, the last event seen; None asks for a page
    """

    operation: str
    path: Mapping[str, str] = {}
    query: Mapping[str, str] = {}
    body: Any = None
    if_match: int | None = None
    fencing_token: int | None = None
    idempotency_key: str | None = None
    resume_after: int | None = None

    @property
    def record(self) -> Operation:
        """The operation's record in the table."""
        return OPERATIONS_BY_NAME[self.operation]

    @property
    def method(self) -> str:
        """The method over HTTP."""
        return self.record.method

    @property
    def target(self) -> str:
        """Path and query over HTTP, encoded."""
        text = "".join(
            part(self.path[name]) if is_name else name
            for name, is_name in _template(self.record.path)
        )
        return f"{text}?{urlencode(self.query, quote_via=quote)}" if self.query else text

    @property
    def headers(self) -> dict[str, str]:
        """The headers over HTTP, besides those of the client and of the body."""
        headers = {}
        if self.if_match is not None:
            headers["If-Match"] = str(self.if_match)
        if self.fencing_token is not None:
            headers["Fencing-Token"] = str(self.fencing_token)
        if self.idempotency_key is not None:
            headers["Idempotency-Key"] = self.idempotency_key
        if self.resume_after is not None:
            headers["Accept"] = "text/event-stream"
            headers["Last-Event-ID"] = str(self.resume_after)
        elif self.record.media == "events":
            headers["Accept"] = "application/json"
        return headers


class Response(msgspec.Struct, frozen=True):
    """A reply; of an opened stream only a refusal has anything but a status.

    body: the bytes of the reply
    result: in place of them, what the operation returned in this process
    error: in place of both, what it raised in this process
    """

    status: int
    body: bytes = b""
    result: Any = None
    error: MemorywallError | None = None


@dataclass(frozen=True, slots=True)
class Open:
    """Run this operation and give me the reply's head; the reply follows piece by piece.

    silence: seconds without a single byte after which the connection counts as lost
    """

    request: Request
    silence: float


@dataclass(frozen=True, slots=True)
class Read:
    """Give me the next piece of the opened stream, or None at its end: bytes, or from an operation
    in this process a list of what it returned."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Let this many seconds pass."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Now:
    """Tell me the time, in seconds that never go back. Only differences of it mean anything."""


@dataclass(frozen=True, slots=True)
class Emit(Generic[Item]):
    """Hand this to whoever iterates."""

    item: Item


# A driver throws MemoryTransportError into a script where a request or a stream is lost.
RequestGenerator: TypeAlias = Generator[Request | Pause | Now, Any, Result]
StreamGenerator: TypeAlias = Generator[Request | Open | Read | Pause | Now | Emit[Item], Any, None]


def part(name: str) -> str:
    """A name as one part of a path, whatever characters it has."""
    # URL libraries fold `.` and `..` away unless even the dots are encoded.
    return name.replace(".", "%2E") if name in (".", "..") else quote(name, safe="")


@cache
def _template(path: str) -> tuple[tuple[str, bool], ...]:
    """The pieces of a path: each a text, or the name of a parameter."""
    pieces: list[tuple[str, bool]] = []
    for text in path.split("{"):
        name, is_name, rest = text.partition("}")
        if is_name:
            pieces.append((name.removesuffix(":path"), True))
        pieces.append((rest if is_name else name, False))
    return tuple(pieces)
