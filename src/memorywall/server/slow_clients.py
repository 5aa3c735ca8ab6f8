"""Closes connections of clients that are too slow to send a request or to read a reply."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from enum import Enum, auto
from typing import Protocol
from weakref import WeakKeyDictionary

LEAST_RATE = 1024
"""Bytes per second that a client must send of a body, on average and after the timeout."""


class Stage(Enum):
    """The action of the client that a connection waits for.

    HEAD: send the head of a request
    BODY: send the body of a request
    REPLY: read a reply of which the server may not send more
    """

    HEAD = auto()
    BODY = auto()
    REPLY = auto()


class ClientConnection(Protocol):
    """A connection as the guard sees it."""

    def stage(self) -> tuple[Stage, object, int] | None:
        """Returns the stage, what it belongs to, and a number of bytes: received bodies, or what
        waits to be read. Returns None while the connection waits for the server."""
        ...

    def abort(self) -> None:
        """Closes the connection at once."""
        ...


class _Wait:
    """The stage of a connection and the instant at which the stage began."""

    __slots__ = ("begun", "size", "stage", "work")

    def __init__(self, stage: Stage, work: object, size: int, begun: float) -> None:
        self.stage = stage
        self.work = work
        self.size = size
        self.begun = begun


class SlowClientGuard:
    """Looks at all connections at intervals, so that a request needs no timer of its own.

    A head must be complete within the timeout. A body may take longer, if its rate is at least
    `LEAST_RATE`. A client that reads a reply must take some of it within each timeout.

    connections: the open connections, which change meanwhile
    timeout: seconds
    clock: seconds, which only grow
    """

    def __init__(
        self,
        connections: Collection[ClientConnection],
        timeout: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connections = connections
        self._timeout = timeout
        self._clock = clock
        self._waits: WeakKeyDictionary[ClientConnection, _Wait] = WeakKeyDictionary()

    def check(self) -> None:
        """Closes the connections that are too slow by now."""
        now = self._clock()
        for connection in tuple(self._connections):
            stage = connection.stage()
            if stage is None:
                self._waits.pop(connection, None)
            elif self._is_late(connection, stage, now):
                connection.abort()

    def _is_late(
        self, connection: ClientConnection, stage: tuple[Stage, object, int], now: float
    ) -> bool:
        kind, work, size = stage
        wait = self._waits.get(connection)
        has_read = wait is not None and kind is Stage.REPLY and size < wait.size
        if wait is None or wait.stage is not kind or wait.work is not work or has_read:
            self._waits[connection] = _Wait(kind, work, size, now)
            return False
        allowed = self._timeout
        if kind is Stage.BODY:
            allowed += (size - wait.size) / LEAST_RATE
        return now - wait.begun > allowed
