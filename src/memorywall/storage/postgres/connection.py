"""Connections to PostgreSQL: how they are set up, and which of their errors mean what."""

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
"""Whom a server acts as: it owns nothing, so row-level security holds for it."""

_IDLE_IN_TRANSACTION = "10s"
_SETTINGS = {
    # A migration that older servers cannot run on waits for those with a lower number here.
    "application_name": f"{APPLICATION}/{load_migrations(__package__)[-1].number}",
    "search_path": SCHEMA,
    # A server that hangs within a transaction would keep a tenant from all the others.
    "idle_in_transaction_session_timeout": _IDLE_IN_TRANSACTION,
    # All statements are look-ups of a known shape: planning them anew costs more than it finds.
    "plan_cache_mode": "force_generic_plan",
    # Such a plan may have been made while a table was tiny, and is kept while it grows.
    "enable_seqscan": "off",
    "jit": "off",
}
LONG_SETTINGS = {
    "search_path": SCHEMA,
    "role": ROLE,
    # What is read in one piece may wait for the other side of it.
    "idle_in_transaction_session_timeout": "0",
    "statement_timeout": "0",
    "jit": "off",
}
"""For one who reads or writes everything there is, on one snapshot."""

_LOST = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # A connection that the server has ended while nothing was asked of it may say this.
    asyncpg.InternalClientError,
    asyncpg.exceptions.OperatorInterventionError,
    asyncpg.exceptions.InsufficientResourcesError,
    # What a server is told that hung for so long within a transaction; the transaction is undone.
    asyncpg.exceptions.IdleInTransactionSessionTimeoutError,
    asyncpg.exceptions.ReadOnlySQLTransactionError,
    asyncpg.exceptions.TargetServerAttributeNotMatched,
)
_AGAIN = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    # The rest of their class: the server undid the transaction, or says that it cannot tell.
    asyncpg.exceptions.TransactionRollbackError,
    asyncpg.LockNotAvailableError,
    # A statement that was prepared for what has changed or ended since.
    asyncpg.InvalidCachedStatementError,
    asyncpg.InvalidSQLStatementNameError,
)


class _Connection(asyncpg.Connection):
    """One that is left clean by its transactions, so giving it back needs no round trip.

    made_at: when, on the clock of the event loop
    was_silent: whether it was cut because no answer came
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.made_at = asyncio.get_running_loop().time()
        self.was_silent = False

    def get_reset_query(self) -> str:
        return ""

    @property
    def itself(self) -> _Connection:
        """Without the proxy of the pool."""
        return self

    def cut(self) -> None:
        """Ends it at once, because it does not answer."""
        self.was_silent = True
        self.terminate()


class ConnectionPool:
    """A pool that is fair: who has waited longest is next, even before one who was just served."""

    def __init__(self, pool: asyncpg.Pool, size: int) -> None:
        self._pool = pool
        self._turns = asyncio.Semaphore(size)
        self._silent_at = float("-inf")

    @property
    def are_scarce(self) -> bool:
        """Whether all are in use, so that who has one should let others have it now and then."""
        return self._turns.locked()

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Any]:
        """One of them, once it is free."""
        async with self._turns:
            held = await self._acquire()
            # The pool's proxy of it is of no use any more once the connection has ended.
            connection: _Connection = held.itself
            try:
                yield connection
            finally:
                if connection.was_silent:
                    self._silent_at = asyncio.get_running_loop().time()
                # A connection that cannot be given back is ended by the pool. The work on it has
                # its outcome by now, which this must not change.
                with suppress(Exception):
                    await self._pool.release(held)

    async def _acquire(self) -> Any:
        """One that was made after the last that fell silent: those made before lead to the same
        server, and each would be waited for until a deadline."""
        while True:
            connection: Any = await self._pool.acquire()
            if connection.made_at > self._silent_at:
                return connection
            connection.terminate()
            await self._pool.release(connection)

    async def close(self) -> None:
        """Closes all, once they are back."""
        await self._pool.close()


async def make_pool(url: str, size: int) -> ConnectionPool:
    """Connections that act as the role without rights of ownership. None is opened yet.

    Where the URL names several hosts, the one that takes writes is looked for.
    """
    pool = await asyncpg.create_pool(
        url,
        connect=connect,
        min_size=0,
        max_size=size,
        connection_class=_Connection,
        statement_cache_size=1_000,
        # A plan that was made while a table was small is made anew before long.
        max_cached_statement_lifetime=30,
        timeout=5,
        server_settings={**_SETTINGS, "role": ROLE},
    )
    return ConnectionPool(pool, size)


@asynccontextmanager
async def owner_connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    """One connection with the rights of the URL's user. Raises ConfigurationError."""
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
    """The statements that begin a transaction and say whose it is, for one round trip."""
    if tenant is None:
        wall = "SET LOCAL memorywall.registry = 'on'"
    else:
        wall = f"SET LOCAL memorywall.tenant = {quote(tenant)}"
    return f"BEGIN ISOLATION LEVEL {isolation}; {wall}"


def quote(text: str) -> str:
    """A text as a literal of SQL, for where nothing can be bound."""
    if "\0" in text:
        raise ValueError("a name holds no NUL")
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'"


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone or of no use, so that another may do better."""
    # What the driver cannot encode it calls an error of its interface and of the value.
    return isinstance(error, _LOST) and not isinstance(error, asyncpg.DiskFullError | ValueError)


def is_answer(error: BaseException) -> bool:
    """Whether the server said this itself and goes on serving, so that a COMMIT which ends with it
    was refused. After any other error, whatever the driver calls it, the outcome is not known."""
    return isinstance(error, asyncpg.PostgresError) and not is_lost(error)


def lost(connection: Any, error: Exception) -> Exception:
    """The error, or a ConnectionError for one that is no answer and left the connection closed.

    The driver reports the death of a server by errors of several kinds, its own bugs among them.
    """
    if is_lost(error) or is_answer(error) or not connection.is_closed():
        return error
    broken = ConnectionError(f"the connection was closed ({type(error).__name__})")
    broken.__cause__ = error
    return broken


def is_of_database(error: BaseException) -> bool:
    """Whether the transaction is of no use after it."""
    return is_lost(error) or isinstance(error, asyncpg.PostgresError)


def is_to_be_repeated(error: BaseException) -> bool:
    """Whether the transaction got in another's way and is to be run again."""
    return isinstance(error, _AGAIN)


def translate_error(error: BaseException) -> BaseException:
    """The error of ours that an error of the driver means to a caller."""
    if isinstance(error, MemorywallError):
        return error
    if isinstance(error, asyncpg.DiskFullError):
        return StorageFullError("the database has no room left; nothing was stored, reads go on")
    if is_lost(error) or is_to_be_repeated(error):
        return UnavailableError("the database cannot be reached or is busy; try again")
    return error


async def roll_back(connection: Any) -> None:
    """Ends a transaction without effect, if it has to be with the connection. Raises nothing."""
    if connection.is_closed():
        return
    try:
        # Asyncpg's own timeout does not count the time it waits for what was cancelled before.
        async with asyncio.timeout(1):
            if not connection.is_in_transaction():
                # Perhaps it was cancelled while it began, and is in one when that is over.
                await connection.execute("SELECT")
            if connection.is_in_transaction():
                await connection.execute("ROLLBACK")
    except Exception:
        connection.cut()


async def run_to_end(connection: Any, statement: str, deadline: float) -> None:
    """Runs a statement that must not be cancelled: a COMMIT that is may be confirmed and lost all
    the same, where it waited for a replica. After the deadline the connection is cut instead.

    Raises what the statement raised, or an error for which `is_lost` holds.
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
