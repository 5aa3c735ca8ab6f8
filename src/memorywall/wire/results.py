"""The results that an operation returns to its surface, and their rendering for HTTP."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Hashable
from dataclasses import dataclass
from functools import cache
from time import thread_time
from typing import Any, Literal, cast, get_type_hints

import msgspec

from memorywall.records.errors import MemorywallError
from memorywall.wire.entries import FoundEntry
from memorywall.wire.operation import Operation

Header = tuple[bytes, bytes]

JSON = b"application/json"
encode = msgspec.json.Encoder().encode
_MOST_AT_ONCE = 8
"""The elements of a list that are encoded at once, in few milliseconds if they are large."""
_MOST_BYTES_AT_ONCE = 2 * 1024 * 1024
"""Bytes of results that are put together at once, which takes few milliseconds."""


class HttpResponse(msgspec.Struct, frozen=True, gc=False):
    """A complete response: status, body, headers besides the standard headers, media type."""

    status: int
    body: bytes
    headers: tuple[Header, ...] = ()
    media: bytes = JSON


@dataclass(frozen=True, slots=True)
class ResultStream:
    """A streamed result.

    parts: lists of wire structs; an empty list is a keep-alive
    media: "lines" for JSON Lines, "events" for Server-Sent Events
    endless: whether the stream ends only when the client or the server closes it; default: false
    """

    parts: AsyncGenerator[list[Any], None]
    media: Literal["lines", "events"]
    endless: bool = False


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """A part of a stream of events that omits events: the position without an event."""

    seq: int


@dataclass(frozen=True, slots=True)
class StreamProblem:
    """The last part of a stream that an error ends."""

    error: MemorywallError


class RenderingTimeoutError(Exception):
    """A result takes longer to encode than it may; see `render`."""


@cache
def _list_fields(kind: Hashable) -> tuple[str, ...]:
    """Returns the fields of a struct that may have many elements."""
    if not isinstance(kind, type) or not issubclass(kind, msgspec.Struct):
        return ()
    hints = get_type_hints(kind)
    return tuple(name for name, hint in hints.items() if "list" in str(hint) or hint is msgspec.Raw)


def lists_of(result: Any) -> list[list[Any]]:
    """Returns the lists of a result that may have many elements."""
    names = _list_fields(cast(Hashable, type(result)))
    parts = [result, *(getattr(result, name) for name in names)]
    return [part for part in parts if type(part) is list]


def _encode(result: Any, seconds: float) -> bytes:
    """Returns a result as JSON. Raises RenderingTimeoutError; see `render`."""
    most = _MOST_BYTES_AT_ONCE if seconds < math.inf else math.inf
    if type(result) is list:
        return _encode_list(result, seconds)
    shown = {}
    for name in _list_fields(cast(Hashable, type(result))):
        part = getattr(result, name)
        if type(part) is list and len(part) > _MOST_AT_ONCE:
            shown[name] = msgspec.Raw(_encode_list(part, seconds))
        elif type(part) is msgspec.Raw and len(part) > most:
            raise RenderingTimeoutError
    return encode(msgspec.structs.replace(result, **shown) if shown else result)


def _encode_list(elements: list[Any], seconds: float) -> bytes:
    """Encodes a list in parts, because the encoder lets no other thread run."""
    if len(elements) <= _MOST_AT_ONCE:
        return encode(elements)
    latest, size = thread_time() + seconds, 0
    parts = []
    for begin in range(0, len(elements), _MOST_AT_ONCE):
        if (size > _MOST_BYTES_AT_ONCE and seconds < math.inf) or thread_time() > latest:
            raise RenderingTimeoutError
        parts.append(encode(elements[begin : begin + _MOST_AT_ONCE])[1:-1])
        size += len(parts[-1])
    return b"[%b]" % b",".join(parts)


def render(
    operation: Operation, result: Any, known: str | None = None, *, seconds: float = math.inf
) -> HttpResponse:
    """The response for the result of an operation: 204 for None, otherwise JSON with headers.

    known: the value of If-None-Match of a conditional read; 304 if it contains the entity tag
    seconds: the processor time for encoding a list; default: any
    Raises RenderingTimeoutError if a list takes longer.
    """
    if isinstance(result, HttpResponse):
        return result
    if result is None:
        return HttpResponse(204, b"")
    headers: tuple[Header, ...] = ()
    if operation.etag:
        tag = entity_tag(result)
        if tag is not None:
            headers = ((b"etag", b'"%b"' % tag.encode()),)
            if known is not None and is_known(known, tag):
                return HttpResponse(304, b"", headers)
    status = operation.status_of(result)
    if operation.location is not None and status in (201, 202):
        location = operation.location.format(id=result.id)
        headers = (*headers, (b"location", location.encode()))
    # A single record, which has a tag, is short.
    return HttpResponse(status, encode(result) if headers else _encode(result, seconds), headers)


def entity_tag(result: Any) -> str | None:
    """The entity tag of a result without quotation marks: its version, or that of a name."""
    return result.tag if type(result) is FoundEntry else str(result.version)


def is_known(header: str, tag: str) -> bool:
    """Whether the value of If-None-Match contains an entity tag or is `*`. A version may be sent
    without quotation marks, as in If-Match."""
    if header.strip() == "*":
        return True
    given = (one.strip().removeprefix("W/").strip('"') for one in header.split(","))
    return tag in given
