"""The process that answers hooks: the MCP server of the same host, which has the memory open.

A hook is a new process for each prompt. With the socket it needs no client of its own, and it works
while the MCP server has the data directory open, which one process at a time may have.
"""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from memorywall.adapters.hosts.hook_socket import (
    MOST_BYTES,
    NEWLINE,
    SOCKET,
    RelayReply,
    RelayRequest,
)
from memorywall.adapters.hosts.host_memory import HostMemory
from memorywall.records.errors import MemorywallError
from memorywall.sdk.local_sockets import socket_in

_RETRY = 1.0
"""The seconds between two attempts to be the process that answers."""
_ANY_PROMPT = "memory"
_decode_request = msgspec.json.Decoder(RelayRequest).decode


@asynccontextmanager
async def hook_relay(folder: Path, memory: HostMemory) -> AsyncIterator[None]:
    """Answers hooks as long as the context lasts; while another process does, as soon as that ends.

    folder: of the connection
    """
    serving = asyncio.create_task(_serve(folder, memory))
    try:
        yield
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


async def _serve(folder: Path, memory: HostMemory) -> None:
    path = socket_in(folder, SOCKET)
    if path is None:
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(folder / "hooks.lock", "ab") as lock:
        while not _is_locked(lock):
            await asyncio.sleep(_RETRY)
        path.unlink(missing_ok=True)
        async with asyncio.TaskGroup() as drains:

            async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                with suppress(OSError, EOFError, asyncio.LimitOverrunError, ValueError):
                    request = _decode_request(await reader.readuntil(NEWLINE))
                    writer.write(msgspec.json.encode(await _answer(memory, request)) + NEWLINE)
                    await writer.drain()
                writer.close()
                # The host waits for its hook, and need not wait for this.
                drains.create_task(_drain(memory))

            async with await asyncio.start_unix_server(answer, path, limit=MOST_BYTES):
                path.chmod(0o600)
                drains.create_task(_begin(memory))
                try:
                    await asyncio.Event().wait()
                finally:
                    path.unlink(missing_ok=True)


def _is_locked(lock: BinaryIO) -> bool:
    """Returns whether this process has the lock, which ends with it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _answer(memory: HostMemory, request: RelayRequest) -> RelayReply:
    if not request.prompt:
        return RelayReply()
    try:
        return RelayReply(text=await memory.recall(request.prompt, request.session))
    except MemorywallError as error:
        return RelayReply(error=error.detail)


async def _begin(memory: HostMemory) -> None:
    """Stores what an earlier process has left, and reads the index, so that the first prompt does
    not wait for it."""
    await _drain(memory)
    with suppress(MemorywallError, OSError):
        await memory.recall(_ANY_PROMPT, "")


async def _drain(memory: HostMemory) -> None:
    """Empties the spool; what cannot be stored now stays in it."""
    with suppress(MemorywallError, OSError):
        await memory.drain()
