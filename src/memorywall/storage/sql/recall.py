"""Vectors, use counts, embedding positions and index segments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from memorywall.records.recall import (
    ContextOutcomes,
    EntryVector,
    LastUse,
    StoredSegment,
    UseCounts,
)
from memorywall.records.tier import Tier
from memorywall.storage.sql.access import RowAccess
from memorywall.storage.sql.record_spec import Row
from memorywall.storage.statements import load


class SqlRecallRepository:
    """`port.RecallRepository` over rows that are read after all writes of entries."""

    def __init__(self, rows: RowAccess) -> None:
        self._rows = rows
        self._sql = load(rows.dialect, "recall")

    async def put_vectors(self, model: str, vectors: Sequence[EntryVector]) -> None:
        if vectors:
            await self._change("begin_model", model)
            # A statement may not change a row twice; of two vectors for the same version the last
            # one counts.
            made = {(one.entry_id, one.version): one.vector for one in vectors}
            rows = [(*version, vector) for version, vector in made.items()]
            await self._change_each("put_vector", (model,), rows)

    async def vectors(self, model: str, entry_ids: Collection[str]) -> dict[str, bytes]:
        rows = await self._read("vectors", model, self._rows.names(entry_ids))
        return {row[0]: row[1] for row in rows}

    async def remove_other_models(self, model: str, limit: int) -> int:
        removed = 0
        for (other,) in await self._read("other_models", model):
            # The position restarts, in case the model returns before all its vectors are removed.
            await self._change("forget_position", other)
            removed += len(await self._change("remove_some_of_model", other, limit - removed))
            await self._change("forget_model", other)
        if removed:
            self._rows.count_removal()
        return removed

    async def position(self, model: str) -> int:
        rows = await self._read("position", model)
        return int(rows[0][0]) if rows else 0

    async def acquire_lease(self, model: str, holder: str, now: str, until: str) -> int | None:
        rows = await self._change("acquire_lease", model, holder, now, until)
        return int(rows[0][0]) if rows else None

    async def advance(self, model: str, holder: str, position: int) -> bool:
        return bool(await self._change("advance", model, holder, position))

    async def put_segment(
        self, tier: Tier, owner: str, segment: StoredSegment, versions: Mapping[str, int]
    ) -> bool:
        place = (owner, tier.value, segment.first, segment.last)
        await self.remove_segments(tier, owner, segment.first, segment.last)
        entries = self._rows.numbers_by_name(versions)
        stored = await self._change("put_segment", *place, segment.form, segment.content, *entries)
        return bool(stored)

    async def remove_segments(self, tier: Tier, owner: str, first: str, last: str) -> None:
        await self._change("remove_segments", owner, tier.value, first, last)
        self._rows.count_removal()

    async def next_segment(
        self, tier: Tier, owner: str, form: str, after: str
    ) -> StoredSegment | None:
        rows = await self._read("next_segment", owner, tier.value, form, after)
        return StoredSegment(rows[0][0], rows[0][1], form, rows[0][2]) if rows else None

    async def without_segment(
        self, form: str, least: int, after: tuple[str, str] = ("", "")
    ) -> tuple[str, Tier] | None:
        rows = await self._read("without_segment", form, least, *after)
        return (rows[0][0], Tier(rows[0][1])) if rows else None

    async def add_uses(self, uses: Mapping[str, int], now: str | None = None) -> None:
        await self._change_each("add_uses", (now,), list(uses.items()))

    async def last_uses(self, entry_ids: Collection[str]) -> list[LastUse]:
        rows = await self._read("last_uses", self._rows.names(entry_ids))
        return [LastUse(*row) for row in rows]

    async def add_outcomes(self, outcomes: Mapping[str, ContextOutcomes]) -> None:
        rows = [(entry_id, *counts) for entry_id, counts in outcomes.items()]
        await self._change_each("add_outcomes", (), rows)

    async def uses(self, entry_ids: Collection[str]) -> dict[str, UseCounts]:
        rows = await self._read("uses", self._rows.names(entry_ids))
        return {
            entry_id: UseCounts(uses, ContextOutcomes(*outcomes))
            for entry_id, uses, *outcomes in rows
        }

    async def _read(self, statement: str, *bindings: Any) -> Sequence[Row]:
        return await self._rows.rows(self._sql[statement], self._rows.tenant, *bindings)

    async def _change(self, statement: str, *bindings: Any) -> Sequence[Row]:
        return await self._rows.change(self._sql[statement], self._rows.tenant, *bindings)

    async def _change_each(
        self, statement: str, shared: Sequence[Any], rows: Sequence[Sequence[Any]]
    ) -> None:
        await self._rows.change_each(self._sql[statement], (self._rows.tenant, *shared), rows)
