"""Stores on PostgreSQL that leave nothing behind, and what can be seen of them from outside."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from memorywall.storage.postgres.consistency import PostgresConsistencyReader
from memorywall.storage.postgres.store import PostgresStore
from tests.support.postgres import database_of, shared_server

LIMIT = 30.0
"""Seconds after which something that must happen soon counts as not happening."""

_CONNECTIONS = """
SELECT state FROM pg_stat_activity WHERE datname = $1 AND application_name LIKE 'memorywall/%'
"""
_END = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = $1 AND application_name LIKE 'memorywall/%'
"""


@asynccontextmanager
async def open_store(url: str, **options: Any) -> AsyncIterator[PostgresStore]:
    """A store. At its end no connection of it is left and nothing was complained of.

    What the driver finds wrong in how it is used it tells the event loop, and so does a task whose
    failure nobody has asked for.
    """
    loop = asyncio.get_running_loop()
    complaints: list[str] = []
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: complaints.append(str(context)))
    try:
        store = await PostgresStore.open(url, **options)
        try:
            yield store
        finally:
            async with asyncio.timeout(LIMIT):
                await store.close()
        gc.collect()
        await asyncio.sleep(0)
    finally:
        loop.set_exception_handler(before)
    assert not complaints, "\n".join(complaints)


async def until(condition: Callable[[], object], what: str, seconds: float = LIMIT) -> None:
    """Waits for a condition; an error names it when the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain: {what}"
        await asyncio.sleep(0.01)


def states(url: str) -> list[str]:
    """Returns the state of each connection of a store to this database."""
    return [str(row[0]) for row in shared_server().rows(_CONNECTIONS, database_of(url))]


def end_connections(url: str) -> int:
    """Has the server end every connection of a store to this database; returns how many."""
    return int(shared_server().value(_END, database_of(url)))


def index_problems(url: str) -> list[str]:
    """Returns the problems that `verify` finds in the database."""
    inspection = PostgresConsistencyReader(url)
    try:
        return list(inspection.index_problems())
    finally:
        inspection.close()
