"""Migrates the schema with numbered steps, each in its own transaction, safe for concurrent runs.

A server puts the number of its schema into the application name of its connections
(`memorywall/7`). A contracting step waits while an older server is connected; the next server to
start, or `memorywall migrate`, applies the step then. Until then all servers run on the schema of
the previous steps.
"""

from __future__ import annotations

import asyncio
from functools import cache

import asyncpg

from memorywall.records.errors import ConfigurationError
from memorywall.storage.migration import Migration, check_supported, load_migrations
from memorywall.storage.postgres.connection import APPLICATION, ROLE, SCHEMA, owner_connection

OLDEST = 16
"""The oldest version of PostgreSQL with every statement that memorywall uses: `pg_has_role` knows
the privilege SET since 16."""
_LOOKS, _PAUSE = 5, 0.1
_ATTEMPTS = 20
_PREPARE = f"""
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
CREATE TABLE IF NOT EXISTS {SCHEMA}.migrations (
    number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL
);
"""
_PRESENT = f"SELECT coalesce(max(number), 0) FROM {SCHEMA}.migrations"
_NEWEST_NAME = f"SELECT name FROM {SCHEMA}.migrations WHERE number = $1"
_OLDER_SERVERS = f"""
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND application_name ~ '^{APPLICATION}(/[0-9]+)?$'
    AND coalesce(nullif(split_part(application_name, '/', 2), ''), '0')::integer < $1
"""
"""Connections of servers with an older schema. The first versions give no number."""
_RACES = (
    asyncpg.UniqueViolationError,
    asyncpg.DuplicateObjectError,
    asyncpg.DuplicateTableError,
    asyncpg.DuplicateSchemaError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.InternalServerError,
)
"""Errors that concurrent runs of the same step may raise."""


def known_migrations() -> list[Migration]:
    """Returns every migration in order."""
    return list(_load_known())


@cache
def _load_known() -> tuple[Migration, ...]:
    return tuple(load_migrations(__package__))


async def migrate(url: str) -> list[str]:
    """Applies missing migrations and returns their names.

    Any number of processes may do this concurrently: the first locks the table of migrations, and
    the others find its work done. Raises ConfigurationError if the database cannot be reached or is
    older than `OLDEST`, a newer version of memorywall wrote it, or the user lacks the rights.
    """
    async with owner_connection(url) as connection:
        version = connection.get_server_version().major
        if version < OLDEST:
            raise ConfigurationError(
                f"memorywall needs PostgreSQL {OLDEST} or newer; this server has version {version}"
            )
        try:
            if await _is_current(connection):
                return []
            applied = await _prepare_and_apply(connection)
            await _check_usable(connection)
            return applied
        except asyncpg.InsufficientPrivilegeError as error:
            raise ConfigurationError(
                "the schema is not up to date and this user may not change it;"
                " run `memorywall migrate` as the owner of the database"
            ) from error


async def _is_current(connection: asyncpg.Connection) -> bool:
    try:
        present = await connection.fetchval(_PRESENT)
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        return False
    known = known_migrations()
    newest_name = await connection.fetchval(_NEWEST_NAME, present) or ""
    check_supported(present, newest_name, known)
    return bool(present >= known[-1].number)


async def _check_usable(connection: asyncpg.Connection) -> None:
    """Raises ConfigurationError unless at most one step is missing, which waits until older servers
    have stopped."""
    present = await connection.fetchval(_PRESENT)
    missing = [one for one in known_migrations() if one.number > present]
    if len(missing) > 1 or any(one.expands for one in missing):
        raise ConfigurationError(
            f"servers of an older version are connected, and the schema is still {present};"
            " stop them and try again"
        )


async def _prepare_and_apply(connection: asyncpg.Connection) -> list[str]:
    for _ in range(_ATTEMPTS):
        try:
            await connection.execute(_PREPARE)
            await connection.execute(_ROLE)
            applied = []
            for migration in known_migrations():
                if await _waits(connection, migration):
                    break
                if await _apply(connection, *migration):
                    applied.append(migration.name)
            return applied
        except _RACES:
            # Another server does the same; its result is found in the next round.
            await asyncio.sleep(0.1)
    raise ConfigurationError("the schema could not be brought up to date; try again")


async def _waits(connection: asyncpg.Connection, migration: Migration) -> bool:
    """Returns whether a migration must wait until servers of an older schema have stopped."""
    present = await connection.fetchval(_PRESENT)
    if migration.expands or present == 0 or present >= migration.number:
        return False
    for _ in range(_LOOKS):
        if not await connection.fetchval(_OLDER_SERVERS, migration.number):
            return False
        # A recently closed server may still be listed.
        await asyncio.sleep(_PAUSE)
    return True


async def _apply(connection: asyncpg.Connection, number: int, name: str, sql: str) -> bool:
    """Applies a migration. Returns False if it has been applied already."""
    async with connection.transaction():
        await connection.execute(f"LOCK TABLE {SCHEMA}.migrations IN EXCLUSIVE MODE")
        if await connection.fetchval(_PRESENT) >= number:
            return False
        await connection.execute(sql)
        await connection.execute(
            f"INSERT INTO {SCHEMA}.migrations VALUES ($1, $2, now())", number, name
        )
    return True


_ROLE = f"""
DO $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{ROLE}') THEN
        CREATE ROLE {ROLE} NOLOGIN;
    END IF;
    IF NOT pg_has_role(current_user, '{ROLE}', 'SET') THEN
        EXECUTE format('GRANT {ROLE} TO %I', current_user);
    END IF;
END $$
"""
