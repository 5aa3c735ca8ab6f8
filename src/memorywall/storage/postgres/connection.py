"""Connections to PostgreSQL: their configuration, and the meaning of their errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg

from memorywall.records.errors import (
    ConfigurationError,
    MemorywallError,
    StorageFullError,
    UnavailableError,
)
from memorywall.storage.migration import load_migrations
from memorywall.storage.postgres.hosts import connect

SCHEMA = "memorywall"
APPLICATION = "memorywall"
ROLE = "memorywall_app"
"""The role of a server. It owns nothing, so row-level security applies to it."""

_IDLE_IN_TRANSACTION = "10s"
_SETTINGS = {
    # A contracting migration waits for connections with a lower number here.
    "application_name": f"{APPLICATION}/{load_migrations(__package__)[-1].number}",
    "search_path": SCHEMA,
    # A server that hangs within a transaction would block a tenant for all other servers.
    "idle_in_transaction_session_timeout": _IDLE_IN_TRANSACTION,
    # All statements are simple look-ups: planning each execution costs more than it gains.
    "plan_cache_mode": "force_generic_plan",
    # Such a plan may have been made for a tiny table and is kept while the table grows.
    "enable_seqscan": "off",
    "jit": "off",
}
LONG_SETTINGS = {
    "search_path": SCHEMA,
    "role": ROLE,
    # A client that reads in chunks may pause to wait for the other side of a copy.
    "idle_in_transaction_session_timeout": "0",
    "statement_timeout": "0",
    "jit": "off",
}
"""Settings for reads and writes of a whole store, on one snapshot."""

_LOST = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # The driver may raise this for a connection that the server has closed while it was idle.
    asyncpg.InternalClientError,
    asyncpg.exceptions.OperatorInterventionError,
    asyncpg.exceptions.InsufficientResourcesError,
    # The error for a client that hung within a transaction; the transaction is rolled back.
    asyncpg.exceptions.IdleInTransactionSessionTimeoutError,
    asyncpg.exceptions.ReadOnlySQLTransactionError,
    asyncpg.exceptions.TargetServerAttributeNotMatched,
)
_AGAIN = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    # The rest of the error class: the server rolled back, or reports an unknown outcome.
    asyncpg.exceptions.TransactionRollbackError,
    asyncpg.LockNotAvailableError,
    # A prepared statement whose table has changed, or whose connection has ended.
    asyncpg.InvalidCachedStatementError,
    asyncpg.InvalidSQLStatementNameError,
)


class _Connection(asyncpg.Connection):
    """A connection that its transactions leave clean, so releasing it needs no round trip.

    made_at: the instant of creation, by the clock of the event loop
    was_silent: whether it was closed because no answer came
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.made_at = asyncio.get_running_loop().time()
        self.was_silent = False

    def get_reset_query(self) -> str:
        return ""

    @property
    def itself(self) -> _Connection:
        """The connection without the pool's proxy."""
        return self

    def cut(self) -> None:
        """Closes the connection at once, because it does not answer."""
        self.was_silent = True
        self.terminate()


class ConnectionPool:
    """A fair pool: the longest waiting caller is next, even before a caller that just released a
    connection."""

    def __init__(self, pool: asyncpg.Pool, size: int) -> None:
        self._pool = pool
        self._turns = asyncio.Semaphore(size)
        self._silent_at = float("-inf")

    @property
    def are_scarce(self) -> bool:
        """Returns whether all connections are in use, so that their holders should release them at
        times."""
        return self._turns.locked()

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Any]:
        """Acquires a connection."""
        async with self._turns:
            held = await self._acquire()
            # The pool's proxy is unusable after the connection has ended.
            connection: _Connection = held.itself
            try:
                yield connection
            finally:
                if connection.was_silent:
                    self._silent_at = asyncio.get_running_loop().time()
                # The pool closes a connection that cannot be released. Its work has an outcome
                # already, which this error must not change.
                with suppress(Exception):
                    await self._pool.release(held)

    async def _acquire(self) -> Any:
        """Returns a connection that is newer than the last one that did not answer. Older
        connections lead to the same server, and each would cost a timeout."""
        while True:
            connection: Any = await self._pool.acquire()
            if connection.made_at > self._silent_at:
                return connection
            connection.terminate()
            await self._pool.release(connection)

    async def close(self) -> None:
        """Closes all connections after they are released."""
        await self._pool.close()


async def make_pool(url: str, size: int) -> ConnectionPool:
    """Returns a pool of connections with the role that owns nothing. No connection is opened yet.

    If the URL names several hosts, the pool connects to the host that accepts writes.
    """
    pool = await asyncpg.create_pool(
        url,
        connect=connect,
        min_size=0,
        max_size=size,
        connection_class=_Connection,
        statement_cache_size=1_000,
        # A plan that was made for a small table is replaced after a while.
        max_cached_statement_lifetime=30,
        timeout=5,
        server_settings={**_SETTINGS, "role": ROLE},
    )
    return ConnectionPool(pool, size)


@asynccontextmanager
async def owner_connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Opens a connection with the rights of the URL's user. Raises ConfigurationError."""
    try:
        connection = await connect(url, timeout=10, server_settings=_SETTINGS)
    except (
        OSError,
        TimeoutError,
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,
        ValueError,
    ) as error:
        raise ConfigurationError(
            f"PostgreSQL cannot be reached with this URL ({type(error).__name__});"
            " look at its host, port, user, password and database"
        ) from error
    try:
        yield connection
    finally:
        await connection.close()


def begin(tenant: str | None, isolation: str) -> str:
    """Returns the statements that begin a transaction and set its tenant, for one round trip."""
    if tenant is None:
        wall = "SET LOCAL memorywall.registry = 'on'"
    else:
        wall = f"SET LOCAL memorywall.tenant = {quote(tenant)}"
    return f"BEGIN ISOLATION LEVEL {isolation}; {wall}"


def quote(text: str) -> str:
    """Returns a text as an SQL literal, for statements without bindings."""
    if "\0" in text:
        raise ValueError("a name holds no NUL")
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'"


def is_lost(error: BaseException) -> bool:
    """Returns whether the connection is unusable, so that another may succeed."""
    # For values that the driver cannot encode, it raises an error of the interface and of the
    # value.
    return isinstance(error, _LOST) and not isinstance(error, asyncpg.DiskFullError | ValueError)


def is_answer(error: BaseException) -> bool:
    """Returns whether the server reported this error and continues, so that a COMMIT with this
    error was refused. After any other error, regardless of its class, the outcome is unknown."""
    return isinstance(error, asyncpg.PostgresError) and not is_lost(error)


def lost(connection: Any, error: Exception) -> Exception:
    """Returns the error, or a ConnectionError for an error that is no answer and closed the
    connection.

    The driver reports the death of a server by several kinds of errors, including internal ones.
    """
    if is_lost(error) or is_answer(error) or not connection.is_closed():
        return error
    broken = ConnectionError(f"the connection was closed ({type(error).__name__})")
    broken.__cause__ = error
    return broken


def is_of_database(error: BaseException) -> bool:
    """Returns whether the transaction is unusable after the error."""
    return is_lost(error) or isinstance(error, asyncpg.PostgresError)


def is_to_be_repeated(error: BaseException) -> bool:
    """Returns whether the transaction conflicted with another and must be run again."""
    return isinstance(error, _AGAIN)


def translate_error(error: BaseException) -> BaseException:
    """Returns memorywall's error for an error of the driver."""
    if isinstance(error, MemorywallError):
        return error
    if isinstance(error, asyncpg.DiskFullError):
        return StorageFullError("the database has no room left; nothing was stored, reads go on")
    if is_lost(error) or is_to_be_repeated(error):
        return UnavailableError("the database cannot be reached or is busy; try again")
    return error


async def roll_back(connection: Any) -> None:
    """Rolls back a transaction, if necessary by closing the connection. Raises nothing."""
    if connection.is_closed():
        return
    try:
        # Asyncpg's own timeout excludes the time in which it waits for a cancelled statement.
        async with asyncio.timeout(1):
            if not connection.is_in_transaction():
                # It may have been cancelled while the transaction began, and be in one afterwards.
                await connection.execute("SELECT")
            if connection.is_in_transaction():
                await connection.execute("ROLLBACK")
    except Exception:
        connection.cut()


async def run_to_end(connection: Any, statement: str, deadline: float) -> None:
    """Runs a statement that must not be cancelled: PostgreSQL may confirm a COMMIT that is
    cancelled while it waits for a replica, although it can be lost. After the deadline the
    connection is closed instead.

    Raises the error of the statement, or an error for which `is_lost` is true.
    """
    task = asyncio.ensure_future(connection.execute(statement))
    left = deadline - asyncio.get_running_loop().time()
    await asyncio.wait({task}, timeout=max(left, 0.05))
    if not task.done():
        connection.cut()
        await asyncio.wait({task}, timeout=1)
        if not task.done():
            task.cancel()
            raise TimeoutError
    await task
