"""Streaming responses: JSON Lines and Server-Sent Events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from memorywall.records.errors import UnavailableError
from memorywall.sdk.effects import Emit, Open, Pause, Read, Request, StreamGenerator
from memorywall.sdk.errors import MemoryTransportError, decode_json, raise_for
from memorywall.sdk.models import MemoryEntry, from_wire, read_event
from memorywall.sdk.retry import admitted
from memorywall.wire.agents import EventResponse

Shape = TypeVar("Shape")
ATTEMPTS = 3
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
                for entry in _read(piece, lines, MemoryEntry):
                    place = {"before": entry.id}
                    failures = 0
                    yield Emit(entry)
            return
        except MemoryTransportError:
            failures += 1
            if failures == ATTEMPTS:
                raise


def follow_events(
    operation: str, path: Mapping[str, str], after: int, patience: float
) -> StreamGenerator[EventResponse]:
    """Iterates over events of a stream without end; see `EventsCore.follow`."""
    connected = False
    paused, pause = 0.0, _FIRST_PAUSE
    while True:
        trouble: MemoryTransportError | UnavailableError | None = None
        try:
            request = Request(operation=operation, path=path, resume_after=after)
            raise_for((yield from admitted(Open(request, _EVENT_SILENCE))))
            events = ServerSentEvents()
            while (piece := (yield Read())) is not None:
                connected, paused, pause = True, 0.0, _FIRST_PAUSE
                for event in map(read_event, _read(piece, events, EventResponse)):
                    after = event.seq
                    yield Emit(event)
        except (MemoryTransportError, UnavailableError) as error:
            trouble = error
        if not connected or paused >= patience:
            raise trouble or MemoryTransportError("the server ends every stream at once")
        yield Pause(pause)
        paused += pause
        pause = min(2 * pause, _LONGEST_PAUSE)


def _read(
    piece: bytes | list[Any], parser: Lines | ServerSentEvents, shape: type[Shape]
) -> Iterator[Shape]:
    """Returns the content of a chunk of a stream; see `Read`."""
    if isinstance(piece, list):
        return (from_wire(one, shape) for one in piece)
    return (decode_json(text, shape) for text in parser.feed(piece))


class Lines:
    """Splits a sequence of chunks into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Returns the lines that end in this chunk, without line ends."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")


class ServerSentEvents:
    """Extracts the data of events from a sequence of chunks."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Returns the data of the events that end in this chunk. Comments and other fields are
        skipped."""
        for line in self._lines.feed(piece):
            name, _, content = line.partition(b":")
            if line == b"" and self._data:
                data, self._data = self._data, []
                yield b"\n".join(data)
            elif name == b"data":
                self._data.append(content.removeprefix(b" "))
