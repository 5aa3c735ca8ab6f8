"""Row-level security, the second isolation boundary: no statement reaches another tenant's rows,
even without a condition on the tenant."""

from __future__ import annotations

from typing import Any

import asyncpg

from memorywall.records.errors import ConfigurationError
from memorywall.storage.postgres.connection import SCHEMA, ConnectionPool
from memorywall.storage.statements import load

_SQL = load("postgres", "walls")


async def check_row_security(connections: ConnectionPool) -> None:
    """Raises ConfigurationError unless row-level security applies to the current role in every
    table."""
    try:
        async with connections.use() as connection:
            await _check(connection)
    except asyncpg.PostgresError as error:
        raise ConfigurationError(
            "PostgreSQL does not let this user act as the role memorywall_app;"
            " run `memorywall migrate` as the owner, and GRANT memorywall_app to this user"
        ) from error


async def _check(connection: Any) -> None:
    if await connection.fetchval(_SQL["above_walls"], SCHEMA):
        raise ConfigurationError(
            "the role memorywall_app owns tables or is above row-level security; take that from it"
        )
    tables = [row[0] for row in await connection.fetch(_SQL["open_tables"], SCHEMA)]
    if tables:
        raise ConfigurationError(
            f"row-level security is off in {', '.join(tables)}; run `memorywall migrate`, or"
            " ENABLE and FORCE it"
        )
