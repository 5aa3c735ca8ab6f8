"""Streaming responses: JSON Lines and Server-Sent Events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from memorywall.records.errors import UnavailableError
from memorywall.sdk.effects import (
    Emit,
    Open,
    Pause,
    Read,
    Request,
    Response,
    StreamGenerator,
)
from memorywall.sdk.errors import MemoryTransportError, decode_json, raise_for
from memorywall.sdk.models import MemoryEntry, from_wire, read_event
from memorywall.sdk.retry import admitted
from memorywall.wire.events import EventResponse
from memorywall.wire.results import StreamPosition, StreamProblem
from memorywall.wire.service import ProblemDetails

Shape = TypeVar("Shape")
ATTEMPTS = 3
_FIELDS = (b"id", b"event", b"data")
_EXPORT_SILENCE = 60.0
_EVENT_SILENCE = 45.0  # The server gives a sign of life every 15 seconds.
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


def export_entries(query: Mapping[str, str]) -> StreamGenerator[MemoryEntry]:
    """Iterates over entries of an export. A broken connection resumes after the last received
    entry."""
    place: dict[str, str] = {}
    failures = 0
    while True:
        request = Request(operation="export_entries", query={**query, **place})
        try:
            raise_for((yield from admitted(Open(request, _EXPORT_SILENCE))))
            lines = Lines()
            while (piece := (yield Read())) is not None:
                for entry in _entries(piece, lines):
                    place = {"before": entry.id}
                    failures = 0
                    yield Emit(entry)
            return
        except MemoryTransportError:
            failures += 1
            if failures == ATTEMPTS:
                raise


def follow_events(
    operation: str,
    path: Mapping[str, str],
    after: int,
    patience: float,
    query: Mapping[str, str] | None = None,
    saw: Callable[[EventResponse], None] | None = None,
) -> StreamGenerator[EventResponse]:
    """Iterates over events of a stream without end; see `EventsCore.follow`.

    saw: is called with each event before the caller gets it
    """
    connected = False
    paused, pause = 0.0, _FIRST_PAUSE
    while True:
        trouble: MemoryTransportError | UnavailableError | None = None
        try:
            request = Request(operation=operation, path=path, query=query or {}, resume_after=after)
            raise_for((yield from admitted(Open(request, _EVENT_SILENCE))))
            events = ServerSentEvents()
            while (piece := (yield Read())) is not None:
                connected, paused, pause = True, 0.0, _FIRST_PAUSE
                for part in _events(piece, events):
                    if isinstance(part, StreamPosition):
                        after = part.seq
                        continue
                    event = read_event(part)
                    if saw is not None:
                        saw(event)
                    after = event.seq
                    yield Emit(event)
        except (MemoryTransportError, UnavailableError) as error:
            trouble = error
        if not connected or paused >= patience:
            raise trouble or MemoryTransportError("the server ends every stream at once")
        yield Pause(pause)
        paused += pause
        pause = min(2 * pause, _LONGEST_PAUSE)


def _entries(piece: bytes | list[Any], parser: Lines) -> Iterator[MemoryEntry]:
    """Returns the entries of a chunk of an export; see `Read`."""
    if isinstance(piece, list):
        return (from_wire(one, MemoryEntry) for one in piece)
    return (decode_json(text, MemoryEntry) for text in parser.feed(piece))


def _events(
    piece: bytes | list[Any], parser: ServerSentEvents
) -> Iterator[EventResponse | StreamPosition]:
    """Returns the events and positions of a chunk of a stream. Raises the error that ends it."""
    if isinstance(piece, list):
        for one in piece:
            if isinstance(one, StreamProblem):
                raise_for(Response(one.error.status, error=one.error))
            yield one if isinstance(one, StreamPosition) else from_wire(one, EventResponse)
        return
    for message in parser.messages(piece):
        if message.data is None:
            if message.id.isdigit():
                yield StreamPosition(int(message.id))
        elif message.event == b"problem":
            status = decode_json(message.data, ProblemDetails).status
            raise_for(Response(status, message.data))
        else:
            yield decode_json(message.data, EventResponse)


class Lines:
    """Splits a sequence of chunks into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Returns the lines that end in this chunk, without line ends."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")


class ServerSentMessage(NamedTuple):
    """A message of a stream.

    id, event: empty without such a field
    data: None for a message that only has an id
    """

    id: bytes
    event: bytes
    data: bytes | None


class ServerSentEvents:
    """Extracts messages from a sequence of chunks."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._fields: dict[bytes, bytes] = {}

    def messages(self, piece: bytes) -> Iterator[ServerSentMessage]:
        """Returns the messages that end in this chunk. Comments and other fields are skipped."""
        for line in self._lines.feed(piece):
            name, _, content = line.partition(b":")
            content = content.removeprefix(b" ")
            if line == b"" and self._fields:
                fields, self._fields = self._fields, {}
                yield ServerSentMessage(
                    fields.get(b"id", b""), fields.get(b"event", b""), fields.get(b"data")
                )
            elif name == b"data" and name in self._fields:
                self._fields[name] += b"\n" + content
            elif name in _FIELDS:
                self._fields[name] = content

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Returns the data of the messages with data that end in this chunk."""
        return (one.data for one in self.messages(piece) if one.data is not None)
