"""Effects that the SDK's generators request from a driver. Neither this module nor the generators
do I/O."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from memorywall.records.errors import MemorywallError, ValidationError

if TYPE_CHECKING:
    from memorywall.wire.operation import Operation

Item = TypeVar("Item")
Result = TypeVar("Result")


class Request(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Requests the whole response of an operation.

    operation: the name of the operation
    path: the path parameters, by name
    query: the query parameters, as text
    body: the JSON body, or bytes for operations with a binary body; None for no body
    if_match: the version to replace, or `*` for any where the operation accepts it
    if_none_match: "*" to create and never to replace
    media_type: the media type of a JSON body; default: application/json
    fencing_token: the token of the lease or claim
    idempotency_key: a repeated request with the same key runs once
    resume_after: the last event that the client has seen of an event stream; None requests a page
    keeps: whether the sender keeps the reply, and takes `Response.is_current`
    """

    operation: str
    path: Mapping[str, str] = {}
    query: Mapping[str, str] = {}
    body: Any = None
    if_match: int | str | None = None
    if_none_match: str | None = None
    media_type: str | None = None
    fencing_token: int | None = None
    idempotency_key: str | None = None
    resume_after: int | None = None
    keeps: bool = False

    @property
    def record(self) -> Operation:
        """Returns the operation's record in the operations table, or in that of OpenWOP."""
        return operations()[self.operation]

    @property
    def method(self) -> str:
        """Returns the HTTP method."""
        return self.record.method

    def check_path(self) -> None:
        """Raises ValidationError for a path parameter that is no text, and for a new name that
        cannot be one segment of a path. Other names with a slash are those of nothing."""
        for name, given in self.path.items():
            if not isinstance(given, str):
                raise ValidationError(f"`{name}` must be a text")
            # A server decodes a path before it separates the segments.
            if "/" in given and self.method == "PUT" and f"{{{name}}}" in self.record.path:
                raise ValidationError(f"`{name}` must not contain `/`")

    @property
    def target(self) -> str:
        """Returns the encoded path and query. Raises the error of `check_path`."""
        self.check_path()
        text = "".join(
            part(self.path[name]) if is_name else name
            for name, is_name in _template(self.record.path)
        )
        return f"{text}?{urlencode(self.query, quote_via=quote)}" if self.query else text

    @property
    def headers(self) -> dict[str, str]:
        """Returns the HTTP headers, except those of the client and of the body."""
        headers = {}
        if self.if_match is not None:
            headers["If-Match"] = str(self.if_match)
        if self.if_none_match is not None:
            headers["If-None-Match"] = self.if_none_match
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
    """A response. The response of an opened stream has a body only if it is an error.

    body: the bytes of the response
    result: instead of a body, the result of an operation in this process
    error: instead of a body or result, the exception of an operation in this process
    is_current: returns whether the same request would have the same reply now, and counts as this
        request if it does; its argument is None. None if only a request can tell
    """

    status: int
    body: bytes = b""
    result: Any = None
    error: MemorywallError | None = None
    is_current: Callable[[None], bool] | None = None


@dataclass(frozen=True, slots=True)
class Open:
    """Requests the head of an operation's response; `Read` then requests the chunks.

    silence: seconds without any data after which the connection counts as lost
    """

    request: Request
    silence: float


@dataclass(frozen=True, slots=True)
class Read:
    """Requests the next chunk of the opened stream, or None at its end. A chunk consists of bytes,
    or of a list of results from an operation in this process."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Requests a pause of this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Now:
    """Requests the time in seconds of a clock that never goes back. Only differences have a
    meaning."""


@dataclass(frozen=True, slots=True)
class Invoke:
    """Requests the result of a function of the caller, which may be a coroutine function if the
    client is asynchronous, or of a function of a response."""

    function: Callable[[Any], Any]
    argument: Any


@dataclass(frozen=True, slots=True)
class Emit(Generic[Item]):
    """Passes an item to the iterating caller."""

    item: Item


# A driver throws MemoryTransportError into a generator if a request or a stream fails.
RequestGenerator: TypeAlias = Generator[Request | Pause | Now | Invoke, Any, Result]
StreamGenerator: TypeAlias = Generator[
    Request | Open | Read | Pause | Now | Invoke | Emit[Item], Any, None
]


def part(name: str) -> str:
    """Encodes a name as one path segment."""
    # URL libraries collapse `.` and `..` segments unless the dots are encoded.
    return name.replace(".", "%2E") if name in (".", "..") else quote(name, safe="")


@cache
def operations() -> Mapping[str, Operation]:
    """Returns the records of the operations table and of that of OpenWOP, by name. The first call
    imports them, which takes as long as the rest of the SDK, so that the import of an adapter does
    not."""
    from memorywall.wire.openwop import OPENWOP_BY_NAME
    from memorywall.wire.operations import OPERATIONS_BY_NAME

    return {**OPENWOP_BY_NAME, **OPERATIONS_BY_NAME}


@cache
def _template(path: str) -> tuple[tuple[str, bool], ...]:
    """Returns the segments of a path: each a literal, or the name of a parameter."""
    pieces: list[tuple[str, bool]] = []
    for text in path.split("{"):
        name, is_name, rest = text.partition("}")
        if is_name:
            pieces.append((name.removesuffix(":path"), True))
        pieces.append((rest if is_name else name, False))
    return tuple(pieces)
