"""Vectors, use counts and embedding positions in SQLite."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from memorywall.records.recall import (
    ContextOutcomes,
    EntryVector,
    LastUse,
    StoredSegment,
    UseCounts,
)
from memorywall.records.tier import Tier
from memorywall.storage.rows import encode_names
from memorywall.storage.sqlite.repository import SqliteRepository
from memorywall.storage.statements import load

_SQL = load("sqlite", "recall")


class SqliteRecallRepository(SqliteRepository):
    """`port.Recall` on one connection."""

    async def put_vectors(self, model: str, vectors: Sequence[EntryVector]) -> None:
        if vectors:
            self._execute(_SQL["begin_model"], (self._tenant, model))
            self._executemany(
                _SQL["put_vector"],
                [(self._tenant, one.entry_id, model, one.version, one.vector) for one in vectors],
            )

    async def vectors(self, model: str, entry_ids: Collection[str]) -> dict[str, bytes]:
        wanted = encode_names(list(entry_ids))
        return dict(self._execute(_SQL["vectors"], (self._tenant, model, wanted)))

    async def remove_other_models(self, model: str, limit: int) -> int:
        removed = 0
        for (other,) in self._execute(_SQL["other_models"], (self._tenant, model)).fetchall():
            # The position restarts, in case the model returns before all its vectors are removed.
            self._execute(_SQL["forget_position"], (self._tenant, other))
            rest = (self._tenant, other, limit - removed)
            removed += len(self._execute(_SQL["remove_some_of_model"], rest).fetchall())
            self._execute(_SQL["forget_model"], (self._tenant, other))
        if removed:
            self.count_removal()
        return removed

    async def position(self, model: str) -> int:
        row = self._execute(_SQL["position"], (self._tenant, model)).fetchone()
        return 0 if row is None else int(row[0])

    async def acquire_lease(self, model: str, holder: str, now: str, until: str) -> int | None:
        row = self._execute(
            _SQL["acquire_lease"], (self._tenant, model, holder, now, until)
        ).fetchone()
        return None if row is None else int(row[0])

    async def advance(self, model: str, holder: str, position: int) -> bool:
        moved = self._execute(_SQL["advance"], (self._tenant, model, holder, position))
        return moved.fetchone() is not None

    async def put_segment(
        self, tier: Tier, owner: str, segment: StoredSegment, versions: Mapping[str, int]
    ) -> bool:
        place = (self._tenant, owner, tier.value, segment.first, segment.last)
        self._execute(_SQL["remove_segments"], place)
        self.count_removal()
        listed = msgspec.json.encode(versions).decode()
        bindings = (*place, segment.form, listed, segment.content)
        return self._execute(_SQL["put_segment"], bindings).fetchone() is not None

    async def next_segment(
        self, tier: Tier, owner: str, form: str, after: str
    ) -> StoredSegment | None:
        place = (self._tenant, owner, tier.value, form, after)
        row = self._execute(_SQL["next_segment"], place).fetchone()
        return None if row is None else StoredSegment(row[0], row[1], form, row[2])

    async def without_segment(
        self, form: str, least: int, after: tuple[str, str] = ("", "")
    ) -> tuple[str, Tier] | None:
        bindings = (self._tenant, form, least, *after)
        row = self._execute(_SQL["without_segment"], bindings).fetchone()
        return None if row is None else (row[0], Tier(row[1]))

    async def add_uses(self, uses: Mapping[str, int], now: str | None = None) -> None:
        self._executemany(
            _SQL["add_uses"],
            [(self._tenant, entry_id, count, now) for entry_id, count in uses.items()],
        )

    async def last_uses(self, entry_ids: Collection[str]) -> list[LastUse]:
        wanted = encode_names(list(entry_ids))
        return [LastUse(*row) for row in self._execute(_SQL["last_uses"], (self._tenant, wanted))]

    async def add_outcomes(self, outcomes: Mapping[str, ContextOutcomes]) -> None:
        rows = [(self._tenant, entry_id, *counts) for entry_id, counts in outcomes.items()]
        self._executemany(_SQL["add_outcomes"], rows)

    async def uses(self, entry_ids: Collection[str]) -> dict[str, UseCounts]:
        rows = self._execute(_SQL["uses"], (self._tenant, encode_names(list(entry_ids))))
        return {row[0]: UseCounts(row[1], ContextOutcomes(*row[2:])) for row in rows}
