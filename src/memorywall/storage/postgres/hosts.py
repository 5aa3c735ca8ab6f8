"""Connects to the one of several servers that accepts writes.

A URL may name a primary and its replicas, separated by commas. All are tried concurrently: a server
that does not answer does not delay the others.
"""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg

_WRITABLE = "target_session_attrs=read-write"


def each_host(url: str) -> list[str]:
    """Returns a URL for each server that this one names. Of several, only a server that accepts
    writes is used, unless the URL specifies otherwise."""
    scheme, mark, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    account, at, hosts = place.rpartition("@")
    if "," not in hosts:
        return [url]
    if "target_session_attrs" not in path:
        path += ("&" if "?" in path else "?") + _WRITABLE
    return [f"{scheme}{mark}{account}{at}{host}{slash or '/'}{path}" for host in hosts.split(",")]


async def connect(dsn: str | None = None, **options: Any) -> asyncpg.Connection:
    """Opens a connection, with the options of asyncpg. Raises an error of one of the servers."""
    attempts: set[asyncio.Task[asyncpg.Connection]] = {
        asyncio.create_task(_connect(url, options)) for url in each_host(dsn or "")
    }
    waiting = attempts
    try:
        while True:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for attempt in done:
                if attempt.exception() is None:
                    attempts.discard(attempt)
                    return attempt.result()
            if not waiting:
                return done.pop().result()
    finally:
        for attempt in attempts:
            attempt.cancel()
            attempt.add_done_callback(_drop)


async def _connect(url: str, options: dict[str, Any]) -> asyncpg.Connection:
    connection: asyncpg.Connection = await asyncpg.connect(url, **options)
    return connection


def _drop(attempt: asyncio.Task[asyncpg.Connection]) -> None:
    """Closes a connection that was opened too late."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().terminate()
