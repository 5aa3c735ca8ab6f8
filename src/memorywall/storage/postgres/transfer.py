"""Both sides of a copy over PostgreSQL, with the same role and row-level security as a server.

The database computes the row digests, so that equal rows are not transferred.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

import asyncpg

from memorywall.records.errors import ConfigurationError, StoreLockedError
from memorywall.storage.postgres.connection import (
    APPLICATION,
    LONG_SETTINGS,
    ROLE,
    begin,
    owner_connection,
    translate_error,
)
from memorywall.storage.postgres.hosts import connect
from memorywall.storage.postgres.migrate import known_migrations, migrate
from memorywall.storage.postgres.transfer_statements import (
    counting,
    deletion,
    deletion_of_any,
    insertion,
    one_row,
    page_of_lines,
)
from memorywall.storage.rows import decode_edges, decode_names
from memorywall.storage.statements import load
from memorywall.storage.transfer import (
    API_KEYS,
    EMBEDDED,
    ENTRIES,
    EVENTS,
    NOT_CHAINED,
    TENANTS,
    UNFINISHED_RESTORE,
    CopyRowDigest,
    Key,
    Row,
    Table,
    TableDigest,
)

_SQL = load("postgres", "transfer")
_RECALL = load("postgres", "recall")
_JOBS = load("postgres", "scheduled_jobs")
_SNAPSHOT = "REPEATABLE READ READ ONLY"
_AT_WORK = f"^{APPLICATION}(/[0-9]+| copy)?$"
_COPY = "memorywall copy"
_BACKUP = "memorywall copy from here"
_LOOKS, _PAUSE = 10, 0.1
_ID, _TIER, _OWNER = (ENTRIES.indexes[name] for name in ("id", "tier", "owner"))
_WIDTH = len(ENTRIES.columns)
_TAGS, _SIZE, _PINNED = (ENTRIES.indexes[name] for name in ("tags", "size", "pinned"))
_EDGES, _LISTED = (ENTRIES.indexes[name] for name in ("edges", "listed"))


class _Side:
    """`transfer.Readable` over one connection."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def _fetch(self, tenant: str | None, statement: str, *bindings: Any) -> list[Any]:
        """Runs a reading statement for a tenant or the registry."""
        raise NotImplementedError

    async def _fetch_each(
        self, tenant: str, statement: str, bindings: Sequence[Sequence[Any]]
    ) -> list[Any]:
        """Runs a reading statement once for each of these, and combines the results."""
        raise NotImplementedError

    async def tenants(self) -> list[str]:
        return [row[0] for row in await self._fetch(None, _SQL["tenants"])]

    async def count(self, table: Table, tenant: str) -> int:
        rows = await self._fetch(tenant, counting(table), tenant)
        return int(rows[0][0])

    async def lines(self, table: Table, tenant: str, after: Key | None) -> list[CopyRowDigest]:
        if not table.key and after is not None:
            return []
        rows = await self._fetch(tenant, page_of_lines(table, bool(after)), tenant, *(after or ()))
        return [CopyRowDigest(tuple(row[:-2]), row[-2], row[-1]) for row in rows]

    async def rows(self, table: Table, tenant: str, keys: Sequence[Key]) -> list[Row]:
        if not keys:
            return []
        bindings = [(tenant, *key) for key in keys]
        return [tuple(row) for row in await self._fetch_each(tenant, one_row(table), bindings)]

    async def end_of_log(self, tenant: str) -> int:
        rows = await self._fetch(tenant, _SQL["end_of_log"], tenant)
        return int(rows[0][0])

    async def close(self) -> None:
        await self._connection.close()


class PostgresCopySource(_Side):
    """`transfer.Origin`: one snapshot, read tenant by tenant."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        super().__init__(connection)
        self._inside: str | None = ""
        self._marks: dict[str, list[tuple[Any, ...]]] = {}

    @classmethod
    async def open(cls, url: str) -> PostgresCopySource:
        """Takes the snapshot. Raises ConfigurationError if the database cannot be reached or
        contains no store of this version."""
        await _check_schema(url)
        connection = await _connect(url, _BACKUP)
        origin = cls(connection)
        try:
            await connection.execute(f"BEGIN ISOLATION LEVEL {_SNAPSHOT}")
            if await origin._fetch(None, _SQL["unfinished"]):
                raise ConfigurationError(UNFINISHED_RESTORE)
            for tenant in await origin.tenants():
                if await origin._fetch(tenant, _SQL["not_chained"], tenant):
                    raise ConfigurationError(NOT_CHAINED)
                origin._marks[tenant] = await origin._mark(tenant)
        except BaseException:
            await connection.close()
            raise
        return origin

    async def changed(self) -> bool:
        await self._connection.execute(f"COMMIT; BEGIN ISOLATION LEVEL {_SNAPSHOT}")
        self._inside = ""
        marks = {tenant: await self._mark(tenant) for tenant in await self.tenants()}
        return marks != self._marks

    async def _mark(self, tenant: str) -> list[tuple[Any, ...]]:
        """Returns a value that changes with every commit of the tenant."""
        return [tuple(row) for row in await self._fetch(tenant, _SQL["mark"], tenant)]

    async def _fetch(self, tenant: str | None, statement: str, *bindings: Any) -> list[Any]:
        with _explain_errors():
            await self._enter(tenant)
            found: list[Any] = await self._connection.fetch(statement, *bindings)
        return found

    async def _fetch_each(
        self, tenant: str, statement: str, bindings: Sequence[Sequence[Any]]
    ) -> list[Any]:
        with _explain_errors():
            await self._enter(tenant)
            found: list[Any] = await self._connection.fetchmany(statement, bindings)
        return found

    async def _enter(self, tenant: str | None) -> None:
        if self._inside != tenant:
            registry = "on" if tenant is None else "off"
            await self._connection.fetch(_SQL["enter"], tenant or "", registry)
            self._inside = tenant


class PostgresCopyTarget(_Side):
    """`transfer.Target`: a transaction for each read or write."""

    is_unfinished = False

    @classmethod
    async def open(cls, url: str) -> Self:
        """Creates a missing schema. Raises ConfigurationError if the database cannot be reached,
        StoreLockedError if a server uses it."""
        await _refuse_servers(url)
        await migrate(url)
        target = cls(await _connect(url, _COPY))
        target.is_unfinished = bool(await target._fetch(None, _SQL["unfinished"]))
        return target

    async def apply(
        self, table: Table, tenant: str, put: Sequence[Row], remove: Sequence[Key]
    ) -> None:
        with _explain_errors():
            async with self._within(tenant, "READ COMMITTED", "COMMIT"):
                # Writers of a tenant acquire this lock first.
                await self._connection.execute(_SQL["lock"], tenant)
                if table is ENTRIES:
                    await self._apply_entries(tenant, put, remove)
                elif table is TENANTS:
                    await self._apply_tenant(tenant, put, remove)
                else:
                    await self._apply_rows(table, tenant, put, remove)
                if table in EMBEDDED:
                    await self._connection.execute(_RECALL["begin_again"], tenant)
                    await self._connection.execute(_RECALL["remove_all_segments"], tenant)
                    await self._connection.execute(_JOBS["forget"], tenant)
                if table is EVENTS:
                    await self._connection.execute(_SQL["end_log"], tenant)
                elif table is API_KEYS:
                    await self._connection.execute(_SQL["note_key_change"], tenant)

    async def finish(self, tables: Sequence[TableDigest]) -> None:
        """Removes the mark of an unfinished restore, whose rows are replaced. Every transaction was
        durable at its commit."""
        for (tenant,) in await self._fetch(None, _SQL["unfinished"]):
            await self.execute(tenant, _SQL["unmark_unfinished"])

    async def _fetch(self, tenant: str | None, statement: str, *bindings: Any) -> list[Any]:
        with _explain_errors():
            async with self._within(tenant, _SNAPSHOT, "ROLLBACK"):
                found: list[Any] = await self._connection.fetch(statement, *bindings)
        return found

    async def _fetch_each(
        self, tenant: str, statement: str, bindings: Sequence[Sequence[Any]]
    ) -> list[Any]:
        with _explain_errors():
            async with self._within(tenant, _SNAPSHOT, "ROLLBACK"):
                found: list[Any] = await self._connection.fetchmany(statement, bindings)
        return found

    @asynccontextmanager
    async def _within(self, tenant: str | None, isolation: str, end: str) -> AsyncIterator[None]:
        """Opens a transaction of a tenant, or of the registry, and commits it at the end."""
        await self._connection.execute(begin(tenant, isolation))
        try:
            yield
            await self._connection.execute(end)
        except BaseException:
            if self._connection.is_in_transaction():
                await self._connection.execute("ROLLBACK")
            raise

    async def execute(self, tenant: str, statement: str) -> None:
        """Runs a statement about a tenant, which is its binding, in its own transaction."""
        with _explain_errors():
            async with self._within(tenant, "READ COMMITTED", "COMMIT"):
                await self._connection.execute(statement, tenant)

    async def _apply_tenant(self, tenant: str, put: Sequence[Row], remove: Sequence[Key]) -> None:
        for row in put:
            await self._connection.execute(_SQL["put_tenant"], *row)
        if remove:
            for statement in ("remove_tenant", "remove_head", "remove_writers"):
                await self._connection.execute(_SQL[statement], tenant)
            await self._connection.execute(_RECALL["forget_models"], tenant)

    async def _apply_rows(
        self, table: Table, tenant: str, put: Sequence[Row], remove: Sequence[Key]
    ) -> None:
        gone = [*remove, *(table.key_of(row) for row in put)]
        await self._delete(table, table.key, tenant, gone)
        if not put:
            return
        for other in table.others:
            await self._delete(table, other, tenant, _cells(table, other, put))
        await self._connection.execute(insertion(table), *_columns_of(put, len(table.columns)))

    async def _delete(
        self, table: Table, names: Sequence[str], tenant: str, cells: Sequence[Row]
    ) -> None:
        """Deletes the rows of a tenant with these values in the named columns."""
        if len(names) == 1:
            statement = deletion_of_any(table, names[0])
            await self._connection.execute(statement, tenant, [row[0] for row in cells])
        else:
            bindings = [(tenant, *row) for row in cells]
            await self._connection.executemany(deletion(table, tuple(names)), bindings)

    async def _apply_entries(self, tenant: str, put: Sequence[Row], remove: Sequence[Key]) -> None:
        """Writes entries, with their tags and the usage of their owners."""
        fetch = self._connection.fetch
        ids = [key[0] for key in remove] + [row[_ID] for row in put]
        removed = await fetch(_SQL["remove_entries"], tenant, ids)
        if put:
            names = [(tenant, *cells) for cells in _cells(ENTRIES, ENTRIES.others[0], put)]
            removed += await self._connection.fetchmany(_SQL["remove_entry_by_name"], names)
        await self._connection.execute(
            _RECALL["remove_vectors"], tenant, [row[0] for row in removed]
        )
        gone = [(tenant, row[1], tag, row[0]) for row in removed for tag in decode_names(row[3])]
        await self._connection.executemany(_SQL["untag"], gone)
        if put:
            await self._connection.execute(insertion(ENTRIES), *_columns_of(put, _WIDTH))
        await self._connection.execute(_SQL["unlink"], tenant, [row[0] for row in removed])
        edges = [(*edge, row[_ID]) for row in put for edge in decode_edges(row[_EDGES])]
        await self._connection.execute(_SQL["link"], tenant, *_columns_of(edges, 3))
        tags = [(row[_OWNER], tag, row[_ID]) for row in put for tag in decode_names(row[_TAGS])]
        await self._connection.execute(_SQL["tag"], tenant, *_columns_of(tags, 3))
        usage: dict[tuple[str, str], tuple[int, int, int]] = {}
        for _, owner, tier, _, size, pinned, listed in removed:
            if listed:
                _count(usage, (owner, tier), -1, -size, -pinned)
        for row in put:
            if row[_LISTED]:
                _count(usage, (row[_OWNER], row[_TIER]), 1, row[_SIZE], row[_PINNED])
        counted = [(*owned, *counts) for owned, counts in usage.items()]
        await self._connection.execute(_SQL["count"], tenant, *_columns_of(counted, 5))
        await self._connection.execute(_SQL["uncount"], tenant)


def _count(
    usage: dict[tuple[str, str], tuple[int, int, int]],
    owned: tuple[str, str],
    entries: int,
    size: int,
    pinned: int,
) -> None:
    before = usage.get(owned, (0, 0, 0))
    usage[owned] = (before[0] + entries, before[1] + size, before[2] + pinned)


@contextmanager
def _explain_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        explained = translate_error(error)
        if explained is error:
            raise
        raise explained from error


async def _refuse_servers(url: str) -> None:
    """Raises StoreLockedError if a server, or another copy, uses the database."""
    async with owner_connection(url) as connection:
        for _ in range(_LOOKS):
            busy = await connection.fetchval(_SQL["servers"], _AT_WORK)
            if not busy:
                return
            # A recently closed connection may still be listed.
            await asyncio.sleep(_PAUSE)
    raise StoreLockedError(
        f"{busy} connections of memorywall are open to the target database;"
        " stop its servers first, and wait for any other copy into it"
    )


async def _check_schema(url: str) -> None:
    """Raises ConfigurationError unless the database contains a store of this version."""
    known = known_migrations()[-1].number
    async with owner_connection(url) as connection:
        try:
            present = await connection.fetchval(_SQL["schema"])
        except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError) as error:
            raise ConfigurationError("there is no memorywall in the database of the URL") from error
        except asyncpg.InsufficientPrivilegeError as error:
            raise ConfigurationError(
                "this user may not look at the schema; use the owner of the database"
            ) from error
    if present != known:
        raise ConfigurationError(
            f"the database has schema {present}, this memorywall knows {known}; bring it up to"
            " date with `memorywall migrate`, or use the version that wrote it"
        )


async def _connect(url: str, name: str) -> asyncpg.Connection:
    try:
        return await connect(
            url, timeout=10, server_settings={**LONG_SETTINGS, "application_name": name}
        )
    except asyncpg.PostgresError as error:
        raise ConfigurationError(
            f"PostgreSQL does not let this user act as the role {ROLE};"
            f" GRANT {ROLE} to it, as `memorywall migrate` does for the owner"
        ) from error


def _columns_of(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """Converts rows to the arrays of a statement, one for each column."""
    return [[row[place] for row in rows] for place in range(width)]


def _cells(table: Table, names: Sequence[str], rows: Sequence[Row]) -> list[Row]:
    places = [table.indexes[name] for name in names]
    return [tuple(row[place] for place in places) for row in rows]
