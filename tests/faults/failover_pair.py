"""A primary and its synchronous streaming replica, with a memorywall database on them."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from urllib.parse import urlsplit, urlunsplit

from tests.support.postgres import DatabaseServer, PostgresServer, Replica

# Every version an entry ever had has one event, and the numbers have no gap.
_GAPS_IN_VERSIONS = """
SELECT entry_id, count(*), max(version) FROM memorywall.events
WHERE type IN ('memory.created', 'memory.updated')
GROUP BY tenant, entry_id
HAVING count(*) <> max(version) OR count(DISTINCT version) <> count(*) OR min(version) <> 1
"""
_ENDS_OF_LOGS = """
SELECT heads.tenant, heads.seq, count(events.seq) AS count,
    coalesce(min(events.seq), 1) AS first, coalesce(max(events.seq), 0) AS last
FROM memorywall.heads LEFT JOIN memorywall.events USING (tenant)
GROUP BY heads.tenant, heads.seq
"""


def assert_dense(server: DatabaseServer, database: str) -> None:
    """The log of each tenant has neither gap nor double, and nor have the versions of any entry."""
    ends = server.rows(_ENDS_OF_LOGS, database=database)
    assert any(row["count"] > 100 for row in ends), "hardly anything was written"
    for row in ends:
        seq = row["seq"]
        assert (row["count"], row["first"], row["last"]) == (seq, 1, seq), dict(row)
    gaps = server.rows(_GAPS_IN_VERSIONS, database=database)
    assert not gaps, [dict(row) for row in gaps[:10]]


def stored_in(server: DatabaseServer, database: str, namespace: str) -> dict[str, tuple[str, int]]:
    """The id and the version of every entry of a namespace, by its key."""
    rows = server.rows(
        "SELECT key, id, version FROM memorywall.entries WHERE namespace = $1",
        namespace,
        database=database,
    )
    found = {row["key"]: (row["id"], row["version"]) for row in rows}
    assert len(found) == len(rows), "two entries have one name"
    return found


def processes_of(postgres: PostgresServer) -> list[int]:
    """The first of the processes of a server, and then the others."""
    first = int((postgres.data / "postmaster.pid").read_text().splitlines()[0])
    others = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    return [first, *(row[0] for row in postgres.rows(others))]


def send(number: signal.Signals, processes: Sequence[int]) -> None:
    """Sends a signal to each of them."""
    for process in processes:
        # One that has ended meanwhile needs no signal.
        with suppress(ProcessLookupError):
            os.kill(process, number)


class Pair:
    """Two PostgreSQL servers, of which the second takes over. A context manager.

    store: the URL of the database, which names both
    database: its name
    """

    def __init__(self) -> None:
        self.primary = PostgresServer(durable=True)
        try:
            database = urlsplit(self.primary.create_database()).path
            self.replica = Replica(self.primary, durable=True)
        except BaseException:
            self.primary.close()
            raise
        self._frozen: list[int] = []
        self.replica.make_synchronous()
        self.database = database.removeprefix("/")
        first = urlsplit(self.primary.url())
        account = first.netloc.rpartition("@")[0]
        hosts = f"{account}@127.0.0.1:{self.primary.port},127.0.0.1:{self.replica.port}"
        self.store = urlunsplit(first._replace(netloc=hosts, path=database))

    def freeze(self) -> None:
        """The primary says nothing more, and does not close a connection either."""
        self._frozen = processes_of(self.primary)
        send(signal.SIGSTOP, self._frozen)

    def __enter__(self) -> Pair:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        send(signal.SIGCONT, self._frozen)
        self.replica.close()
        self.primary.close()
