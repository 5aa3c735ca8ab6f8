"""The statements of the PostgreSQL store, ready to be sent again and again.

They are the store's own, put together by the store's own code once, before the clock starts; what
is repeated then is nothing but the statement and what is bound in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from memorywall.records.clock import SystemClock
from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Entry
from memorywall.records.event import Event, EventType
from memorywall.records.event_chain import NO_HASH, DigestKey, LogHead, seal_event
from memorywall.records.filter import EntryFilter
from memorywall.records.identifiers import IdSource
from memorywall.records.tier import Tier
from memorywall.storage.postgres.search import search
from memorywall.storage.postgres.session import Connection, Row, StatementSession
from memorywall.storage.postgres.write_buffer import WriteBuffer
from memorywall.storage.rows import entry_from_row
from memorywall.storage.statements import load

GET_MANY = load("postgres", "entries")["get_many"]
PAGE = 20
_LONG_AGO = "2000-01-01T00:00:00.000Z"
_KEY = DigestKey.derive("dek_benchmark", bytes(32))
_FIRST_MARK = 10**15

Statement = tuple[str, tuple[Any, ...]]
"""Its text, and what is bound."""


class _Noting(StatementSession):
    """A session that sends nothing and keeps what would have been sent."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.noted: list[Statement] = []

    async def change(self, statement: str, *bindings: Any) -> list[Row]:
        """Keeps the statement and says that it changed as many rows as it was to."""
        self.noted.append((statement, bindings))
        return [(1,)] * len(bindings[-1])


class _Listening(StatementSession):
    """A session that keeps every statement it sends."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        super().__init__(connection, tenant)
        self.heard: list[Statement] = []

    async def rows(self, statement: str, *bindings: Any) -> list[Row]:
        """Keeps the statement and sends it."""
        self.heard.append((statement, bindings))
        return await super().rows(statement, *bindings)


class Creation:
    """The statements that store a group of new entries with tags, counts and events.

    The entries are like those given but for their ids and keys, which are new each time.
    """

    def __init__(self, statements: Sequence[Statement], entries: int, place: int) -> None:
        self.entries = entries
        self._statements = statements
        self._place = place
        self._ids = IdSource(SystemClock())
        self._marked = [_marked_columns(bindings, _marks(entries)) for _, bindings in statements]

    def statements(self, last: int) -> list[Statement]:
        """Returns the statements of the next group.

        last: the end of the tenant's log
        """
        new: list[list[Any]] = [[], [], []]
        for number in range(self.entries):
            made = self._ids.next("mem")
            new[0].append(made)
            new[1].append(f"key_{self._place}_{made[4:]}")
            new[2].append(last + number + 1)
        filled = []
        for (text, bindings), marked in zip(self._statements, self._marked, strict=True):
            columns = list(bindings)
            for position, places in marked:
                columns[position] = [new[kind][number] for kind, number in places]
            filled.append((text, tuple(columns)))
        return filled


def _marked_columns(
    bindings: Sequence[Any], marks: dict[Any, tuple[int, int]]
) -> list[tuple[int, list[tuple[int, int]]]]:
    """Returns the bound lists that consist of marks, with the marks."""
    return [
        (position, [marks[mark] for mark in column])
        for position, column in enumerate(bindings)
        if isinstance(column, list | tuple) and column and all(mark in marks for mark in column)
    ]


def _marks(entries: int) -> dict[Any, tuple[int, int]]:
    """Returns the marks for the id, the key and the event's number of each entry."""
    return {
        mark: (kind, number)
        for number in range(entries)
        for kind, mark in enumerate(_marks_of(number))
    }


def _marks_of(number: int) -> tuple[str, str, int]:
    return f"mark of an id {number}", f"mark of a key {number}", _FIRST_MARK + number


async def creation_of(entries: Sequence[Entry], tenant: str, place: int) -> Creation:
    """Returns the statements that a tenant's store sends for entries like these.

    place: sets the keys apart from those made at another place
    """
    noting = _Noting(tenant)
    pending = WriteBuffer(noting)
    for number, entry in enumerate(entries):
        made, key, seq = _marks_of(number)
        marked = msgspec.structs.replace(entry, tenant=tenant, id=made, key=key, version=1)
        pending.insert(marked, marked.created_at)
        pending.log(seal_event(_created(marked, seq), LogHead(0, NO_HASH), _KEY, marked))
    await pending.flush()
    return Creation(noting.noted, len(entries), place)


def _created(entry: Entry, seq: int) -> Event:
    return Event(
        tenant=entry.tenant,
        seq=seq,
        type=EventType.CREATED,
        stream=entry.owner,
        agent_id=entry.owner,
        actor=entry.created_by,
        entry_id=entry.id,
        tier=entry.tier,
        namespace=entry.namespace,
        key=entry.key,
        version=entry.version,
        tags=entry.tags,
        task_id=entry.scope.task_id,
        intent_id=entry.scope.intent_id,
        timestamp=entry.created_at,
    )


async def entries_of(connection: Connection, tenant: str, ids: Sequence[str]) -> list[Entry]:
    """Entries as they are stored."""
    rows = await connection.fetch(GET_MANY, tenant, ids)
    return [entry_from_row(row) for row in rows]


async def searches_of(
    connection: Connection, tenant: str, wanted: Iterable[tuple[str, str, str]]
) -> list[list[Statement]]:
    """Returns the statements that find an agent's working memory by two tags.

    wanted: an agent and two tags for each search
    """
    found = []
    for agent, *tags in wanted:
        session = _Listening(connection, tenant)
        condition = EntryFilter(
            tenant=tenant, tiers=(Tier.WORKING,), agent_id=agent, tags=tuple(tags), limit=PAGE
        )
        await search(session, condition, VisibilityFilter(owners=(agent,)), _LONG_AGO)
        found.append(session.heard)
    return found
