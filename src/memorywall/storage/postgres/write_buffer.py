"""The buffered writes of a transaction.

The functions of a group run one after another in one transaction. Their inserts, updates and events
are flushed together: as one statement for each kind of write before the commit, or earlier if a
read depends on them. A statement for each write would cost many times as much as its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memorywall.records.entry import Entry, has_other_content
from memorywall.records.event_chain import StoredEvent
from memorywall.storage.derived_rows import UsageChange, edge_rows, history_to_row, usage_change
from memorywall.storage.postgres.counts import CountScope, count_scopes_of
from memorywall.storage.postgres.session import PostgresRepository, StatementSession
from memorywall.storage.rows import Row, entry_to_row, envelope_to_row, replacement_row
from memorywall.storage.statements import load

_SQL = load("postgres", "pending")
_RECALL = load("postgres", "recall")
_ID = 1
_SEQ, _CONTENT = 1, 2
"""The index of the sequence number in an event's row, and the number of content columns at its
end."""
_NAME = (2, 3, 5, 6)
_SESSION = 9
"""The indexes of the tier, owner, namespace and key in an entry's row, and of the session."""

Name = tuple[str, str, str, str, str]
Mark = tuple[int, ...]


class InsertConflictError(Exception):
    """The buffered writes conflict with stored rows: run the functions again, one by one."""


class WriteBuffer:
    """The buffered writes of one transaction."""

    def __init__(self, session: StatementSession) -> None:
        self._session = session
        self._clear()

    def _clear(self) -> None:
        self._inserted: list[Row] = []
        self._replaced: list[Row] = []
        self._outdated: list[str] = []
        self._untagged: list[tuple[str, str, str]] = []
        self._tagged: list[tuple[str, str, str]] = []
        self._unlinked: list[Row] = []
        self._linked: list[Row] = []
        self._kept: list[Row] = []
        self._counted: list[UsageChange] = []
        self._logged: list[Row] = []
        self._ids: set[str] = set()
        self._names: set[Name] = set()
        self._places: set[CountScope] = set()

    @property
    def is_empty(self) -> bool:
        """Returns whether the buffer is empty."""
        return not (self._ids or self._logged)

    @property
    def touches_entries(self) -> bool:
        """Returns whether a read of entries needs a flush."""
        return bool(self._ids)

    @property
    def touches_events(self) -> bool:
        """Returns whether a read of the log needs a flush."""
        return bool(self._logged)

    def changes(self, scope: CountScope) -> bool:
        """Returns whether this count needs a flush."""
        return scope in self._places

    def has(self, entry_id: str) -> bool:
        """Returns whether a read of this entry needs a flush."""
        return entry_id in self._ids

    def takes(self, name: Name) -> bool:
        """Returns whether a buffered new entry has this name."""
        return name in self._names

    def insert(self, entry: Entry, accessed_at: str) -> None:
        """Buffers a new entry."""
        row = entry_to_row(entry, accessed_at)
        self._inserted.append(row)
        self._ids.add(entry.id)
        self._names.add(_name_of(row))
        self._places.update(count_scopes_of(entry))
        self._tagged.extend((entry.owner, tag, entry.id) for tag in entry.tags)
        self._linked.extend(edge_rows(entry, entry.edges))
        self._counted.extend(usage_change(None, entry))

    def replace(self, old: Entry, new: Entry, *, keep_old: bool = False) -> None:
        """Buffers the replacement of an entry."""
        self._replaced.append(replacement_row(old, new))
        self._ids.add(old.id)
        if has_other_content(old, new):
            self._outdated.append(old.id)
        self._places.update(count_scopes_of(old), count_scopes_of(new))
        if new.tags != old.tags:
            before, after = set(old.tags), set(new.tags)
            self._untagged.extend((old.owner, tag, old.id) for tag in before - after)
            self._tagged.extend((old.owner, tag, old.id) for tag in after - before)
        if new.edges != old.edges:
            self._unlinked.extend(edge_rows(old, set(old.edges) - set(new.edges)))
            self._linked.extend(edge_rows(new, set(new.edges) - set(old.edges)))
        if keep_old:
            self._kept.append(history_to_row(old, new.updated_at))
        self._counted.extend(usage_change(old, new))

    def log(self, stored: StoredEvent) -> None:
        """Buffers an event, which has its number already."""
        self._logged.append((*envelope_to_row(stored), stored.salt, stored.content))

    @property
    def _notes(self) -> tuple[list[Any], ...]:
        return (
            self._inserted,
            self._replaced,
            self._outdated,
            self._untagged,
            self._tagged,
            self._unlinked,
            self._linked,
            self._kept,
            self._counted,
            self._logged,
        )

    def mark(self) -> Mark:
        """Returns the position of the buffer; see `undo`."""
        return tuple(map(len, self._notes))

    def undo(self, mark: Mark) -> None:
        """Discards the writes since a position, if nothing was flushed since."""
        for one, length in zip(self._notes, mark, strict=True):
            del one[length:]
        self._ids = {row[_ID] for row in (*self._inserted, *self._replaced)}
        self._names = {_name_of(row) for row in self._inserted}

    async def flush(self) -> None:
        """Flushes the buffer. Raises InsertConflictError."""
        if self.is_empty:
            return
        tenant = self._session.tenant
        change = self._session.change
        inserted, replaced, logged = self._inserted, self._replaced, self._logged
        outdated = self._outdated
        untagged, tagged, counted = self._untagged, self._tagged, _sum_usage(self._counted)
        unlinked, linked, kept = self._unlinked, self._linked, self._kept
        self._clear()
        if inserted and len(await change(_SQL["insert"], *_columns(inserted))) != len(inserted):
            raise InsertConflictError
        if replaced:
            _, *columns = _columns(replaced)
            await self._replace(columns, outdated)
        if untagged:
            await change(_SQL["untag"], tenant, *_columns(untagged))
        if tagged:
            await change(_SQL["tag"], tenant, *_columns(tagged))
        for statement, links in (("unlink", unlinked), ("link", linked)):
            if links:
                _, *columns = _columns(links)
                await change(_SQL[statement], tenant, *columns)
        if kept:
            await change(_SQL["keep"], *_columns(kept))
        if counted:
            await change(_SQL["count"], tenant, *_columns(counted))
        if logged:
            columns = _columns(logged)
            await change(_SQL["log"], *columns[:-_CONTENT])
            await change(_SQL["log_contents"], tenant, columns[_SEQ], *columns[-_CONTENT:])

    async def _replace(self, columns: Sequence[Sequence[Any]], outdated: Sequence[str]) -> None:
        """Replaces entries, and removes the index segments that contain them.

        columns: the columns of their rows after the tenant
        outdated: the ids of those with other content
        """
        tenant, change = self._session.tenant, self._session.change
        rows = await change(_SQL["replace"], tenant, *columns, outdated)
        if len(rows) != len(columns[0]):
            raise InsertConflictError
        for owner, tier, entry_id, is_in_segment in rows:
            if is_in_segment:
                place = (tenant, owner, tier, entry_id, entry_id)
                await change(_RECALL["remove_segments"], *place)


class FlushingRowAccess(PostgresRepository):
    """`RowAccess` to rows that change with entries or with the log: buffered writes are flushed
    before each statement, and reads are not cached.

    of_log: whether the rows change with the log and not with entries
    """

    def __init__(
        self, session: StatementSession, buffer: WriteBuffer, *, of_log: bool = False
    ) -> None:
        super().__init__(session, remembers=False)
        self._buffer = buffer
        self._of_log = of_log

    async def rows(self, statement: str, *bindings: Any) -> list[Any]:
        await self._flush()
        return await super().rows(statement, *bindings)

    async def change(self, statement: str, *bindings: Any) -> list[Any]:
        await self._flush()
        return await super().change(statement, *bindings)

    async def _flush(self) -> None:
        buffer = self._buffer
        is_needed = buffer.touches_events if self._of_log else buffer.touches_entries
        if is_needed:
            await buffer.flush()


def _name_of(row: Row) -> Name:
    tier, owner, namespace, key = _NAME
    return row[tier], row[owner], row[namespace], row[key], row[_SESSION] or ""


def _columns(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True))


def _sum_usage(
    counted: list[UsageChange],
) -> list[tuple[str, str, int, int, int]]:
    """Combines the rows of each owner and tier, because a statement may not change a row twice."""
    sums: dict[tuple[str, str], tuple[int, int, int]] = {}
    for _, owner, tier, entries, size, pinned in counted:
        before = sums.get((owner, tier), (0, 0, 0))
        sums[owner, tier] = (before[0] + entries, before[1] + size, before[2] + pinned)
    return [(*key, *sum_) for key, sum_ in sums.items()]
