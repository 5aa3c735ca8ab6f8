"""Looks at a database of PostgreSQL without a change, beside servers."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import asyncpg

from memorywall.storage.description import StoreHealth
from memorywall.storage.postgres.connection import APPLICATION, owner_connection
from memorywall.storage.postgres.migrate import known_migrations
from memorywall.storage.statements import load

_SQL = load("postgres", "transfer")
_SERVERS: Final = f"^{APPLICATION}(/[0-9]+)?$"
_VERIFIED: Final = 18
_LOOKS, _PAUSE = 4, 0.05
_RISKS: Final = {
    "fsync": "fsync is off: a crash of its machine loses or damages acknowledged writes",
    "full_page_writes": "full_page_writes is off: a crash of its machine may damage pages",
    "synchronous_commit": "synchronous_commit is off: a crash loses the last acknowledged writes",
    "data_checksums": "data_checksums is off: damage of its files is not noticed",
}


async def check_health(url: str) -> StoreHealth:
    """Returns the state of a database. Raises ConfigurationError if it cannot be reached."""
    async with owner_connection(url) as connection:
        version = str(await connection.fetchval("SHOW server_version"))
        risks = [words for name, words in _RISKS.items() if await _is_off(connection, name)]
        if connection.get_server_version().major < _VERIFIED:
            risks.insert(0, f"memorywall is verified on PostgreSQL {_VERIFIED} only")
        return StoreHealth(
            engine="PostgreSQL",
            version=version,
            schema=await _schema(connection),
            newest_schema=known_migrations()[-1].number,
            is_served=await _has_servers(connection),
            damage=None,
            log_bytes=None,
            risks=tuple(risks),
        )


async def is_served(url: str) -> bool:
    """Returns whether a server is connected to the database. Raises ConfigurationError."""
    async with owner_connection(url) as connection:
        return await _has_servers(connection)


async def _has_servers(connection: Any) -> bool:
    for _ in range(_LOOKS):
        if not await connection.fetchval(_SQL["servers"], _SERVERS):
            return False
        # A recently closed connection may still be listed.
        await asyncio.sleep(_PAUSE)
    return True


async def _is_off(connection: Any, name: str) -> bool:
    return bool(await connection.fetchval("SELECT current_setting($1, true)", name) == "off")


async def _schema(connection: Any) -> int:
    try:
        return int(await connection.fetchval(_SQL["schema"]))
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        return 0
