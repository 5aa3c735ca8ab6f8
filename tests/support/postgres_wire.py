"""The wire between a store and PostgreSQL, for tests that cut it where they want."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto
from urllib.parse import urlsplit, urlunsplit

_SSL_REQUEST, _CANCEL_REQUEST = 80877103, 80877102
_COMMIT = b"Q" + struct.pack("!i", 4 + len(b"COMMIT\0")) + b"COMMIT\0"


class Fault(Enum):
    """The fault that a COMMIT meets."""

    NONE = auto()
    CUT_BEFORE = auto()
    """The connection is gone before it arrives."""
    CUT_AFTER = auto()
    """It is carried out, and the connection is gone before the answer."""
    SILENT_BEFORE = auto()
    """It never arrives, and nobody says so."""
    SILENT_AFTER = auto()
    """It is carried out, and the answer never comes."""


class Wire:
    """Passes on everything between stores and a server.

    url: what to connect to instead of the server
    away: while it is set nobody gets through to the server
    faults: what befalls the next COMMITs, the first one first
    away_after_fault: whether a fault begins a time in which nobody gets through
    """

    def __init__(self, server_url: str) -> None:
        self._server = urlsplit(server_url)
        self._passages: set[_Passage] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""
        self.away = False
        self.faults: deque[Fault] = deque()
        self.away_after_fault = False
        self.commits = 0

    def cut(self) -> int:
        """Cuts every connection there is; returns how many."""
        passages = list(self._passages)
        for passage in passages:
            passage.cut()
        return len(passages)

    def go_away(self) -> None:
        """Cuts every connection, and lets nobody through until `come_back`."""
        self.away = True
        self.cut()

    def come_back(self) -> None:
        """Lets everybody through again."""
        self.away = False

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if not self.away:
                await self._pass_on(reader, writer)
        except OSError:
            pass
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(self._server.hostname, self._server.port)
        passage = _Passage(self, (reader, writer), there)
        self._passages.add(passage)
        try:
            await passage.run()
        finally:
            self._passages.discard(passage)

    @classmethod
    @asynccontextmanager
    async def to(cls, server_url: str) -> AsyncIterator[Wire]:
        """A wire to the server of this URL."""
        wire = cls(server_url)
        listener = await asyncio.start_server(wire._accept, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        account = wire._server.netloc.rpartition("@")[0]
        wire.url = urlunsplit(wire._server._replace(netloc=f"{account}@127.0.0.1:{port}"))
        try:
            yield wire
        finally:
            listener.close()
            await listener.wait_closed()
            wire.go_away()
            for task in list(wire._tasks):
                task.cancel()
            await asyncio.gather(*wire._tasks, return_exceptions=True)


class _Passage:
    """One connection."""

    def __init__(
        self,
        wire: Wire,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._wire = wire
        self._from_client, self._to_client = client
        self._from_server, self._to_server = server
        self._is_muted = False
        self._answered = asyncio.Event()

    def cut(self) -> None:
        self._to_client.transport.abort()
        self._to_server.transport.abort()

    async def run(self) -> None:
        ways = {asyncio.create_task(self._there()), asyncio.create_task(self._back())}
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.cut()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _there(self) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await self._introduce()
            while True:
                head = await self._from_client.readexactly(5)
                body = await self._from_client.readexactly(struct.unpack("!i", head[1:])[0] - 4)
                message = head + body
                if message == _COMMIT:
                    await self._commit(message)
                else:
                    self._to_server.write(message)
                    await self._to_server.drain()

    async def _introduce(self) -> None:
        """Returns the bytes before the first message with a type."""
        while True:
            head = await self._from_client.readexactly(8)
            length, code = struct.unpack("!ii", head)
            self._to_server.write(head + await self._from_client.readexactly(length - 8))
            await self._to_server.drain()
            if code == _CANCEL_REQUEST:
                await self._from_client.read()
            if code != _SSL_REQUEST:
                return

    async def _commit(self, message: bytes) -> None:
        self._wire.commits += 1
        fault = self._wire.faults.popleft() if self._wire.faults else Fault.NONE
        if fault is not Fault.NONE and self._wire.away_after_fault:
            self._wire.away = True
            for other in self._wire._passages - {self}:
                other.cut()
        self._is_muted = fault is not Fault.NONE
        if fault not in (Fault.CUT_BEFORE, Fault.SILENT_BEFORE):
            self._to_server.write(message)
            await self._to_server.drain()
        if fault in (Fault.CUT_AFTER, Fault.SILENT_AFTER):
            await self._answered.wait()
        if fault in (Fault.CUT_BEFORE, Fault.CUT_AFTER):
            self.cut()
        if fault in (Fault.SILENT_BEFORE, Fault.SILENT_AFTER):
            await self._from_client.read()

    async def _back(self) -> None:
        with suppress(OSError):
            while received := await self._from_server.read(65_536):
                if self._is_muted:
                    self._answered.set()
                    continue
                self._to_client.write(received)
                await self._to_client.drain()
