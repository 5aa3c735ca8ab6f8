"""Ids of requests: those that clients send, and new ones.

`X-Request-ID` identifies a request in replies, problem documents and logs. `traceparent` (W3C Trace
Context) places the request in a trace. An invalid value of either is ignored, as Trace Context
requires, and a request without an id gets a new one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

LONGEST_REQUEST_ID = 128
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=@~-]{1,%d}" % LONGEST_REQUEST_ID)
_TRACEPARENT = re.compile(
    rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_VERSION = b"00"


class TraceContext(NamedTuple):
    """The place of a request in a trace.

    trace_id: the id of the trace
    parent_id: the id of the client's span
    span_id: the id of this request's span, as `traceparent` of the reply names it
    flags: the flags of the client
    """

    trace_id: str
    parent_id: str
    span_id: str
    flags: str

    @property
    def header(self) -> bytes:
        """The `traceparent` of the reply."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}".encode()


class RequestIds:
    """Reads the ids of requests and makes new ones.

    random_bytes: returns n random bytes; tests inject their own
    """

    def __init__(self, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self._random_bytes = random_bytes
        # One random number per process and a count are unique, and cost less than a random number
        # per request.
        self._prefix = f"req-{random_bytes(8).hex()}-"
        self._numbers = count(1)

    def new(self) -> str:
        """A new id such as `req-5f0c2a9e8b7d6c41-1a`."""
        return f"{self._prefix}{next(self._numbers):x}"

    def read(self, header: bytes) -> str:
        """The id in `X-Request-ID`, or a new id if the header is invalid."""
        return header.decode("ascii") if _REQUEST_ID.fullmatch(header) else self.new()

    def read_trace(self, header: bytes) -> TraceContext | None:
        """The place in the trace of `traceparent`; None if the header is invalid."""
        match = _TRACEPARENT.fullmatch(header)
        if match is None or (match[1] == _VERSION and match[5] is not None):
            return None
        return TraceContext(
            trace_id=match[2].decode(),
            parent_id=match[3].decode(),
            span_id=self._random_bytes(8).hex(),
            flags=match[4].decode(),
        )
