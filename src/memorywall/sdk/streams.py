"""Replies that are read as they come: JSON Lines, and Server-Sent Events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memorywall.records.errors import UnavailableError
from memorywall.sdk.problems import MemoryTransportError, decode_json, raise_for
from memorywall.sdk.shapes import MemoryEntry, read_event
from memorywall.sdk.steps import Emit, Open, Pause, Read, Request, StreamScript
from memorywall.wire.agents import EventView

ATTEMPTS = 3
_EXPORT_SILENCE = 60.0
_EVENT_SILENCE = 45.0  # The server gives a sign of life every 15 seconds.
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


def export_entries(params: Mapping[str, str]) -> StreamScript[MemoryEntry]:
    """Entries of an export. A cut connection is taken up again after the last entry received."""
    place: dict[str, str] = {}
    failures = 0
    while True:
        request = Request(method="GET", path="/api/v1/memory/export", params={**params, **place})
        try:
            raise_for((yield Open(request, _EXPORT_SILENCE)))
            lines = Lines()
            while (piece := (yield Read())) is not None:
                for line in lines.feed(piece):
                    entry = decode_json(line, MemoryEntry)
                    place = {"before": entry.id}
                    failures = 0
                    yield Emit(entry)
            return
        except MemoryTransportError:
            failures += 1
            if failures == ATTEMPTS:
                raise


def follow_events(path: str, after: int, patience: float) -> StreamScript[EventView]:
    """Events of the stream at `path` without end; see `EventsLogic.follow`."""
    connected = False
    paused, pause = 0.0, _FIRST_PAUSE
    while True:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        trouble: MemoryTransportError | UnavailableError | None = None
        try:
            request = Request(method="GET", path=path, headers=headers)
            raise_for((yield Open(request, _EVENT_SILENCE)))
            events = ServerSentEvents()
            while (piece := (yield Read())) is not None:
                connected, paused, pause = True, 0.0, _FIRST_PAUSE
                for data in events.feed(piece):
                    event = read_event(decode_json(data, EventView))
                    after = event.seq
                    yield Emit(event)
        except (MemoryTransportError, UnavailableError) as error:
            trouble = error
        if not connected or paused >= patience:
            raise trouble or MemoryTransportError("the server ends every stream at once")
        yield Pause(pause)
        paused += pause
        pause = min(2 * pause, _LONGEST_PAUSE)


class Lines:
    """Whole lines out of pieces cut anywhere."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The lines that end in this piece, without their ends."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")


class ServerSentEvents:
    """The data of each event out of pieces cut anywhere."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The data of the events that end in this piece. Comments and other fields are skipped."""
        for line in self._lines.feed(piece):
            name, _, content = line.partition(b":")
            if line == b"" and self._data:
                data, self._data = self._data, []
                yield b"\n".join(data)
            elif name == b"data":
                self._data.append(content.removeprefix(b" "))
