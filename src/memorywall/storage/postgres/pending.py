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
from memorywall.records.event import Event
from memorywall.storage.postgres.counts import Place, places_of
from memorywall.storage.postgres.session import Session
from memorywall.storage.rows import Row, entry_to_row, event_to_row, replacement_row
from memorywall.storage.statements import load

_SQL = load("postgres", "pending")
_ID = 1
_NAME = (2, 3, 5, 6)
"""Where the tier, the owner, the namespace and the key stand in the row of an entry."""

Name = tuple[str, str, str, str]
Mark = tuple[int, int, int, int, int, int, int]


class LostRaceError(Exception):
    """What was noted does not fit what is stored: to be done again, step by step."""


class Pending:
    """The notes of one transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._clear()

    def _clear(self) -> None:
        self._inserted: list[Row] = []
        self._replaced: list[Row] = []
        self._outdated: list[str] = []
        self._untagged: list[tuple[str, str, str]] = []
        self._tagged: list[tuple[str, str, str]] = []
        self._counted: list[tuple[str, str, int, int, int]] = []
        self._logged: list[Row] = []
        self._ids: set[str] = set()
        self._names: set[Name] = set()
        self._places: set[Place] = set()

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

    def changes(self, place: Place) -> bool:
        """Whether a count of this place would miss something."""
        return place in self._places

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
        self._places.update(places_of(entry))
        self._tagged.extend((entry.owner, tag, entry.id) for tag in entry.tags)
        self._count(entry, 1, entry.size, int(entry.pinned))

    def replace(self, old: Entry, new: Entry) -> None:
        """Notes what an entry becomes."""
        self._replaced.append(replacement_row(old, new))
        self._ids.add(old.id)
        if has_other_content(old, new):
            self._outdated.append(old.id)
        self._places.update(places_of(old), places_of(new))
        if new.tags != old.tags:
            before, after = set(old.tags), set(new.tags)
            self._untagged.extend((old.owner, tag, old.id) for tag in before - after)
            self._tagged.extend((old.owner, tag, old.id) for tag in after - before)
        if new.size != old.size or new.pinned != old.pinned:
            self._count(old, 0, new.size - old.size, int(new.pinned) - int(old.pinned))

    def log(self, event: Event) -> None:
        """Notes an event, which has its number already."""
        self._logged.append(event_to_row(event))

    def _count(self, entry: Entry, entries: int, size: int, pinned: int) -> None:
        self._counted.append((entry.owner, entry.tier.value, entries, size, pinned))

    def mark(self) -> Mark:
        """Where the notes are now; see `undo`."""
        return (
            len(self._inserted),
            len(self._replaced),
            len(self._outdated),
            len(self._untagged),
            len(self._tagged),
            len(self._counted),
            len(self._logged),
        )

    def undo(self, mark: Mark) -> None:
        """Forgets what was noted since a mark, if nothing was flushed since."""
        notes: tuple[list[Any], ...] = (
            self._inserted,
            self._replaced,
            self._outdated,
            self._untagged,
            self._tagged,
            self._counted,
            self._logged,
        )
        for one, length in zip(notes, mark, strict=True):
            del one[length:]
        self._ids = {row[_ID] for row in (*self._inserted, *self._replaced)}
        self._names = {_name_of(row) for row in self._inserted}

    async def flush(self) -> None:
        """Writes everything noted. Raises LostRaceError."""
        if self.is_empty:
            return
        tenant = self._session.tenant
        change = self._session.change
        inserted, replaced, logged = self._inserted, self._replaced, self._logged
        outdated = self._outdated
        untagged, tagged, counted = self._untagged, self._tagged, _summed(self._counted)
        self._clear()
        if inserted and len(await change(_SQL["insert"], *_columns(inserted))) != len(inserted):
            raise LostRaceError
        if replaced:
            _, *columns = _columns(replaced)
            if len(await change(_SQL["replace"], tenant, *columns, outdated)) != len(replaced):
                raise LostRaceError
        if untagged:
            await change(_SQL["untag"], tenant, *_columns(untagged))
        if tagged:
            await change(_SQL["tag"], tenant, *_columns(tagged))
        if counted:
            await change(_SQL["count"], tenant, *_columns(counted))
        if logged:
            await change(_SQL["log"], *_columns(logged))


def _name_of(row: Row) -> Name:
    tier, owner, namespace, key = _NAME
    return row[tier], row[owner], row[namespace], row[key]


def _columns(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True))


def _summed(
    counted: list[tuple[str, str, int, int, int]],
) -> list[tuple[str, str, int, int, int]]:
    """One line for each owner and tier: a statement may not change a row twice."""
    sums: dict[tuple[str, str], tuple[int, int, int]] = {}
    for owner, tier, entries, size, pinned in counted:
        before = sums.get((owner, tier), (0, 0, 0))
        sums[owner, tier] = (before[0] + entries, before[1] + size, before[2] + pinned)
    return [(*key, *sum_) for key, sum_ in sums.items()]
