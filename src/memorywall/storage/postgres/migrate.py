"""Brings the schema up to date. Numbered, each in a transaction of its own, safe to run at once."""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files

import asyncpg

from memorywall.records.errors import ConfigurationError
from memorywall.storage.postgres.connection import ROLE, SCHEMA, owner_connection

_NAME = re.compile(r"(\d{3})_\w+\.sql")
_ATTEMPTS = 20
_PREPARE = f"""
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
CREATE TABLE IF NOT EXISTS {SCHEMA}.migrations (
    number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL
);
"""
_PRESENT = f"SELECT coalesce(max(number), 0) FROM {SCHEMA}.migrations"
_RACES = (
    asyncpg.UniqueViolationError,
    asyncpg.DuplicateObjectError,
    asyncpg.DuplicateTableError,
    asyncpg.DuplicateSchemaError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.InternalServerError,
)
"""What one of several that do the same at once may be told."""


def known_migrations() -> list[tuple[int, str, str]]:
    """Every migration in order: its number, its name and its SQL."""
    found = []
    for resource in files(__package__).joinpath("migrations").iterdir():
        if match := _NAME.fullmatch(resource.name):
            found.append((int(match[1]), resource.name, resource.read_text(encoding="utf-8")))
    return sorted(found)


async def migrate(url: str) -> list[str]:
    """Applies what is missing and returns the names of what it applied.

    Any number of processes may do this at once: the first locks the table of migrations, and the
    others find its work done. Raises ConfigurationError when the database cannot be reached, was
    written by a newer memorywall, or does not let this user do it.
    """
    async with owner_connection(url) as connection:
        try:
            if await _is_current(connection):
                return []
            return await _prepare_and_apply(connection)
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
    newest = known_migrations()[-1][0]
    if present > newest:
        raise ConfigurationError(
            f"this database has schema {present}, this memorywall knows {newest};"
            " use the version that wrote it or a newer one"
        )
    return bool(present == newest)


async def _prepare_and_apply(connection: asyncpg.Connection) -> list[str]:
    for _ in range(_ATTEMPTS):
        try:
            await connection.execute(_PREPARE)
            await connection.execute(_ROLE)
            return [
                name
                for number, name, sql in known_migrations()
                if await _apply(connection, number, name, sql)
            ]
        except _RACES:
            # Another server is at the same; what it has made is found the next time.
            await asyncio.sleep(0.1)
    raise ConfigurationError("the schema could not be brought up to date; try again")


async def _apply(connection: asyncpg.Connection, number: int, name: str, sql: str) -> bool:
    """False when it has been applied already."""
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
