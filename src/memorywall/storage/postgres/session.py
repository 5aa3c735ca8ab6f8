"""One transaction on one connection, and the base of the repositories."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from time import thread_time
from typing import Any, Protocol

from memorywall.storage.postgres.connection import lost
from memorywall.storage.sql.access import LONGEST_IN_LOOP
from memorywall.storage.sql.record_statements import Dialect

Row = Sequence[Any]
_NEVER_STORED = "\uffff"
"""No name can contain this character, because it is not printable."""


class Connection(Protocol):
    """The part of an asyncpg connection that a transaction uses."""

    async def fetch(self, query: str, *args: Any) -> list[Any]:
        """Runs a statement and returns its rows."""
        ...

    async def execute(self, query: str, *args: Any) -> str:
        """Runs statements and returns the status of the last one."""
        ...

    def is_closed(self) -> bool:
        """Returns whether the connection is closed."""
        ...


class StatementSession:
    """Runs the statements of one transaction, one after another.

    tenant: the tenant of the transaction; None for the registry
    statements: the number of changing statements that have run
    keys_changed, keys_revoked: grow with every change, and every revocation or earlier end, of an
        API key
    """

    def __init__(self, connection: Connection, tenant: str | None) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()
        self._is_over = False
        self._resumed = thread_time()
        self.tenant = tenant
        self.statements = 0
        self.keys_changed = 0
        self.keys_revoked = 0

    @property
    def bound_tenant(self) -> str:
        """The tenant of the transaction. Raises LookupError in a transaction of the registry."""
        if self.tenant is None:
            raise LookupError("a transaction over the registry reads no tenant's rows")
        return self.tenant

    def end(self) -> None:
        """Prevents further statements: the connection may soon serve another transaction."""
        self._is_over = True

    async def give_way(self) -> None:
        """Lets the event loop serve others, if it has been used for a few milliseconds since the
        last time."""
        if thread_time() - self._resumed > LONGEST_IN_LOOP:
            await asyncio.sleep(0)
            self._resumed = thread_time()

    async def rows(self, statement: str, *bindings: Any) -> list[Row]:
        """Runs a reading statement."""
        return await self._run(statement, [_findable(one) for one in bindings])

    async def row(self, statement: str, *bindings: Any) -> Row | None:
        """Returns the first row of a reading statement."""
        rows = await self.rows(statement, *bindings)
        return rows[0] if rows else None

    async def change(self, statement: str, *bindings: Any) -> list[Row]:
        """Runs a changing statement and returns its rows."""
        rows = await self._run(statement, bindings)
        if rows or "RETURNING" not in statement:
            # A statement that returns its changed rows and returns none has changed nothing.
            self.statements += 1
        return rows

    async def _run(self, statement: str, bindings: Sequence[Any]) -> list[Row]:
        async with self._turn:
            if self._is_over:
                raise RuntimeError("a script went on after its transaction")
            try:
                return await self._connection.fetch(statement, *bindings)
            except Exception as error:
                raise lost(self._connection, error) from error


def _mark_retrieved(answer: asyncio.Future[list[Row]]) -> None:
    """Suppresses the warning about an error that no caller has awaited."""
    if not answer.cancelled():
        answer.exception()


def _findable(binding: Any) -> Any:
    """Returns a binding in a form that PostgreSQL accepts, because a text must not contain NUL. No
    stored search key contains NUL, nor the character that replaces it here."""
    if isinstance(binding, str):
        return binding.replace("\0", _NEVER_STORED) if "\0" in binding else binding
    if isinstance(binding, list):
        return [_findable(one) for one in binding]
    return binding


class PostgresRepository:
    """`RowAccess` for one repository within a transaction.

    Reads are cached until the repository changes a row, because no other transaction can change it
    meanwhile: a writing transaction holds the lock of its tenant, and a reading one has its
    snapshot. So the many small facts for access decisions are read once for a group of functions.

    remembers: false for a repository whose rows other repositories also change
    """

    def __init__(self, session: StatementSession, *, remembers: bool = True) -> None:
        self._session = session
        self._remembers = remembers
        self._known: dict[tuple[Any, ...], asyncio.Future[list[Row]]] = {}

    dialect: Dialect = "postgres"

    @property
    def tenant(self) -> str:
        return self._session.bound_tenant

    @property
    def bound(self) -> str | None:
        return self._session.tenant

    async def rows(self, statement: str, *bindings: Any) -> list[Row]:
        if not self._remembers:
            return await self._session.rows(statement, *bindings)
        key = (statement, *(tuple(one) if isinstance(one, list) else one for one in bindings))
        known = self._known.get(key)
        if known is None:
            # Concurrent functions with the same read share its result.
            known = asyncio.ensure_future(self._session.rows(statement, *bindings))
            known.add_done_callback(_mark_retrieved)
            self._known[key] = known
        return await asyncio.shield(known)

    async def row(self, statement: str, *bindings: Any) -> Row | None:
        rows = await self.rows(statement, *bindings)
        return rows[0] if rows else None

    async def large_rows(self, statement: str, *bindings: Any) -> list[Row]:
        return await self._session.rows(statement, *bindings)

    async def change_each(
        self, statement: str, shared: Sequence[Any], rows: Sequence[Sequence[Any]]
    ) -> None:
        if rows:
            await self.change(statement, *shared, *map(list, zip(*rows, strict=True)))

    def names(self, names: Collection[str] | Collection[int]) -> list[Any]:
        return list(names)

    def numbers_by_name(self, numbers: Mapping[str, int]) -> tuple[list[str], list[int]]:
        return list(numbers), list(numbers.values())

    async def give_way(self) -> None:
        await self._session.give_way()

    def count_removal(self) -> None:
        """Does nothing: a server cannot overwrite deleted bytes in PostgreSQL's files."""

    async def change(self, statement: str, *bindings: Any) -> list[Row]:
        self._known.clear()
        return await self._session.change(statement, *bindings)
