"""One transaction on one connection, and what every noun stands on."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any, Protocol

from memorywall.storage.postgres.connection import lost
from memorywall.storage.sql.record_statements import Dialect

Row = Sequence[Any]
_NEVER_STORED = "\uffff"
"""No name can have it, for it is not printable."""


class Connection(Protocol):
    """What is used of an asyncpg connection within a transaction."""

    async def fetch(self, query: str, *args: Any) -> list[Any]:
        """Runs a statement and gives its rows."""
        ...

    async def execute(self, query: str, *args: Any) -> str:
        """Runs statements and gives what the last one says of itself."""
        ...

    def is_closed(self) -> bool:
        """Whether nothing can be run any more."""
        ...


class StatementSession:
    """Runs the statements of one transaction, one after another.

    tenant: whose transaction it is; None for the registry
    statements: how many statements that change something have run
    keys_changed, keys_revoked: grow with every change, and every revocation, of an API key
    """

    def __init__(self, connection: Connection, tenant: str | None) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()
        self._is_over = False
        self.tenant = tenant
        self.statements = 0
        self.keys_changed = 0
        self.keys_revoked = 0

    @property
    def bound_tenant(self) -> str:
        """The tenant of the transaction. Raises LookupError in one over the registry."""
        if self.tenant is None:
            raise LookupError("a transaction over the registry reads no tenant's rows")
        return self.tenant

    def end(self) -> None:
        """From now on no statement runs: the connection may soon be somebody else's."""
        self._is_over = True

    async def rows(self, statement: str, *bindings: Any) -> list[Row]:
        """Runs a statement that reads."""
        return await self._run(statement, [_findable(one) for one in bindings])

    async def row(self, statement: str, *bindings: Any) -> Row | None:
        """The first row of a statement that reads."""
        rows = await self.rows(statement, *bindings)
        return rows[0] if rows else None

    async def change(self, statement: str, *bindings: Any) -> list[Row]:
        """Runs a statement that changes; the rows are what it returns."""
        rows = await self._run(statement, bindings)
        if rows or "RETURNING" not in statement:
            # One that says what it has changed and says nothing leaves nothing to undo.
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


def _look_at(answer: asyncio.Future[list[Row]]) -> None:
    """So that nobody complains of an error that came after all who asked had gone away."""
    if not answer.cancelled():
        answer.exception()


def _findable(binding: Any) -> Any:
    """A binding as it can be sent: PostgreSQL takes no NUL in a text. Nothing that is stored and
    looked for has one, nor the character that stands for it here."""
    if isinstance(binding, str):
        return binding.replace("\0", _NEVER_STORED) if "\0" in binding else binding
    if isinstance(binding, list):
        return [_findable(one) for one in binding]
    return binding


class PostgresRepository:
    """`RowAccess` for the records of one kind within a transaction.

    What has been read is remembered until the noun changes something: nobody else can change it
    meanwhile. A writing transaction holds the lock of its tenant, and a reading one has its
    snapshot. The many small facts that decisions need are so asked for once in a group of scripts.

    remembers: false for a noun that others change too
    """

    def __init__(self, session: StatementSession, *, remembers: bool = True) -> None:
        self._session = session
        self._remembers = remembers
        self._known: dict[tuple[Any, ...], asyncio.Future[list[Row]]] = {}

    dialect: Dialect = "postgres"

    @property
    def tenant(self) -> str:
        return self._session.bound_tenant

    async def rows(self, statement: str, *bindings: Any) -> list[Row]:
        if not self._remembers:
            return await self._session.rows(statement, *bindings)
        key = (statement, *(tuple(one) if isinstance(one, list) else one for one in bindings))
        known = self._known.get(key)
        if known is None:
            # Scripts that run side by side and ask for the same wait for the same answer.
            known = asyncio.ensure_future(self._session.rows(statement, *bindings))
            known.add_done_callback(_look_at)
            self._known[key] = known
        return await asyncio.shield(known)

    async def row(self, statement: str, *bindings: Any) -> Row | None:
        rows = await self.rows(statement, *bindings)
        return rows[0] if rows else None

    async def large_rows(self, statement: str, *bindings: Any) -> list[Row]:
        return await self._session.rows(statement, *bindings)

    def names(self, names: Collection[str]) -> tuple[str, ...]:
        return tuple(names)

    def count_removal(self) -> None:
        """Nothing to do: no server can overwrite what PostgreSQL keeps of it."""

    async def change(self, statement: str, *bindings: Any) -> list[Row]:
        self._known.clear()
        return await self._session.change(statement, *bindings)
