"""What a transaction has noted and not yet written.

Scripts of one group run one after another in one transaction, and what they insert, replace and log
goes out together: as one statement for each kind of note before the commit, or earlier when
something is to be read that it would change. A statement for each note would cost many times as
much as the rows in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memorywall.records.entry import Entry, has_other_content
from memorywall.records.event_chain import StoredEvent
from memorywall.storage.derived_rows import UsageChange, edge_rows, history_to_row, usage_change
from memorywall.storage.postgres.counts import CountScope, count_scopes_of
from memorywall.storage.postgres.session import StatementSession
from memorywall.storage.rows import Row, entry_to_row, envelope_to_row, replacement_row
from memorywall.storage.statements import load

_SQL = load("postgres", "pending")
_ID = 1
_SEQ, _CONTENT = 1, 2
"""Where the number of an event stands in its row, and how many columns at its end are content."""
_NAME = (2, 3, 5, 6)
_SESSION = 9
"""Where the tier, the owner, the namespace and the key stand in the row of an entry, and where the
session."""

Name = tuple[str, str, str, str, str]
Mark = tuple[int, ...]


class InsertConflictError(Exception):
    """What was noted does not fit what is stored: to be done again, step by step."""


class WriteBuffer:
    """The notes of one transaction."""

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
        """Whether nothing is noted."""
        return not (self._ids or self._logged)

    @property
    def touches_entries(self) -> bool:
        """Whether a read of entries would miss something."""
        return bool(self._ids)

    @property
    def touches_events(self) -> bool:
        """Whether a read of the log would miss something."""
        return bool(self._logged)

    def changes(self, scope: CountScope) -> bool:
        """Whether a count of this place would miss something."""
        return scope in self._places

    def has(self, entry_id: str) -> bool:
        """Whether a read of this entry would miss something."""
        return entry_id in self._ids

    def takes(self, name: Name) -> bool:
        """Whether a new entry has this name."""
        return name in self._names

    def insert(self, entry: Entry, accessed_at: str) -> None:
        """Notes a new entry."""
        row = entry_to_row(entry, accessed_at)
        self._inserted.append(row)
        self._ids.add(entry.id)
        self._names.add(_name_of(row))
        self._places.update(count_scopes_of(entry))
        self._tagged.extend((entry.owner, tag, entry.id) for tag in entry.tags)
        self._linked.extend(edge_rows(entry, entry.edges))
        self._counted.extend(usage_change(None, entry))

    def replace(self, old: Entry, new: Entry, *, keep_old: bool = False) -> None:
        """Notes what an entry becomes."""
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
        """Notes an event, which has its number already."""
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
        """Where the notes are now; see `undo`."""
        return tuple(len(one) for one in self._notes)

    def undo(self, mark: Mark) -> None:
        """Forgets what was noted since a mark, if nothing was flushed since."""
        for one, length in zip(self._notes, mark, strict=True):
            del one[length:]
        self._ids = {row[_ID] for row in (*self._inserted, *self._replaced)}
        self._names = {_name_of(row) for row in self._inserted}

    async def flush(self) -> None:
        """Writes everything noted. Raises InsertConflictError."""
        if self.is_empty:
            return
        tenant = self._session.tenant
        change = self._session.change
        inserted, replaced, logged = self._inserted, self._replaced, self._logged
        outdated = self._outdated
        untagged, tagged, counted = self._untagged, self._tagged, _summed(self._counted)
        unlinked, linked, kept = self._unlinked, self._linked, self._kept
        self._clear()
        if inserted and len(await change(_SQL["insert"], *_columns(inserted))) != len(inserted):
            raise InsertConflictError
        if replaced:
            _, *columns = _columns(replaced)
            if len(await change(_SQL["replace"], tenant, *columns, outdated)) != len(replaced):
                raise InsertConflictError
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


def _name_of(row: Row) -> Name:
    tier, owner, namespace, key = _NAME
    return row[tier], row[owner], row[namespace], row[key], row[_SESSION] or ""


def _columns(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True))


def _summed(
    counted: list[UsageChange],
) -> list[tuple[str, str, int, int, int]]:
    """One line for each owner and tier: a statement may not change a row twice."""
    sums: dict[tuple[str, str], tuple[int, int, int]] = {}
    for _, owner, tier, entries, size, pinned in counted:
        before = sums.get((owner, tier), (0, 0, 0))
        sums[owner, tier] = (before[0] + entries, before[1] + size, before[2] + pinned)
    return [(*key, *sum_) for key, sum_ in sums.items()]
