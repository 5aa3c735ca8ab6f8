"""The results that an operation returns to its surface, and their rendering for HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from memorywall.wire.operation import Operation

Header = tuple[bytes, bytes]

JSON = b"application/json"
encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class HttpResponse:
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


def render(operation: Operation, result: Any) -> HttpResponse:
    """The response for the result of an operation: 204 for None, otherwise JSON with headers."""
    if isinstance(result, HttpResponse):
        return result
    if result is None:
        return HttpResponse(204, b"")
    headers: tuple[Header, ...] = ()
    if operation.etag:
        headers = ((b"etag", b'"%d"' % result.version),)
    status = operation.status_of(result)
    if operation.location is not None and status == 201:
        location = operation.location.format(id=result.id)
        headers = (*headers, (b"location", location.encode()))
    return HttpResponse(status, encode(result), headers)
