"""Vectors, use counts and embedding positions in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from memorywall.records.recall import (
    ContextOutcomes,
    EntryVector,
    LastUse,
    StoredSegment,
    UseCounts,
)
from memorywall.records.tier import Tier
from memorywall.storage.postgres.session import StatementSession
from memorywall.storage.postgres.write_buffer import WriteBuffer
from memorywall.storage.statements import load

_SQL = load("postgres", "recall")


class PostgresRecallRepository:
    """`port.RecallRepository` within one transaction.

    These rows change with the entries, so reads are not cached, and buffered writes of entries are
    flushed before.
    """

    def __init__(self, session: StatementSession, buffer: WriteBuffer) -> None:
        self._session = session
        self._buffer = buffer

    async def put_vectors(self, model: str, vectors: Sequence[EntryVector]) -> None:
        if not vectors:
            return
        await self._settle()
        await self._session.change(_SQL["begin_model"], self._session.bound_tenant, model)
        # A statement may not change a row twice; of two vectors for the same version the last one
        # counts.
        made = {(one.entry_id, one.version): one.vector for one in vectors}
        ids, versions = zip(*made, strict=True)
        await self._session.change(
            _SQL["put_vectors"],
            self._session.bound_tenant,
            model,
            ids,
            versions,
            list(made.values()),
        )

    async def vectors(self, model: str, entry_ids: Collection[str]) -> dict[str, bytes]:
        await self._settle()
        rows = await self._session.rows(
            _SQL["vectors"], self._session.bound_tenant, model, list(entry_ids)
        )
        return {row[0]: row[1] for row in rows}

    async def remove_other_models(self, model: str, limit: int) -> int:
        change, removed = self._session.change, 0
        for (other,) in await self._session.rows(
            _SQL["other_models"], self._session.bound_tenant, model
        ):
            # The position restarts, in case the model returns before all its vectors are removed.
            await change(_SQL["forget_position"], self._session.bound_tenant, other)
            rest = limit - removed
            removed += len(
                await change(_SQL["remove_some_of_model"], self._session.bound_tenant, other, rest)
            )
            await change(_SQL["forget_model"], self._session.bound_tenant, other)
        return removed

    async def position(self, model: str) -> int:
        row = await self._session.row(_SQL["position"], self._session.bound_tenant, model)
        return 0 if row is None else int(row[0])

    async def acquire_lease(self, model: str, holder: str, now: str, until: str) -> int | None:
        rows = await self._session.change(
            _SQL["acquire_lease"], self._session.bound_tenant, model, holder, now, until
        )
        return int(rows[0][0]) if rows else None

    async def advance(self, model: str, holder: str, position: int) -> bool:
        return bool(
            await self._session.change(
                _SQL["advance"], self._session.bound_tenant, model, holder, position
            )
        )

    async def put_segment(
        self, tier: Tier, owner: str, segment: StoredSegment, versions: Mapping[str, int]
    ) -> bool:
        await self._settle()
        place = (self._session.bound_tenant, owner, tier.value, segment.first, segment.last)
        await self._session.change(_SQL["remove_segments"], *place)
        entries = (list(versions), list(versions.values()))
        return bool(
            await self._session.change(
                _SQL["put_segment"], *place, segment.form, *entries, segment.content
            )
        )

    async def next_segment(
        self, tier: Tier, owner: str, form: str, after: str
    ) -> StoredSegment | None:
        await self._settle()
        place = (self._session.bound_tenant, owner, tier.value, form, after)
        row = await self._session.row(_SQL["next_segment"], *place)
        return None if row is None else StoredSegment(row[0], row[1], form, row[2])

    async def without_segment(
        self, form: str, least: int, after: tuple[str, str] = ("", "")
    ) -> tuple[str, Tier] | None:
        await self._settle()
        bindings = (self._session.bound_tenant, form, least, *after)
        row = await self._session.row(_SQL["without_segment"], *bindings)
        return None if row is None else (row[0], Tier(row[1]))

    async def add_uses(self, uses: Mapping[str, int], now: str | None = None) -> None:
        if uses:
            await self._settle()
            counts = list(uses.values())
            await self._session.change(
                _SQL["add_uses"], self._session.bound_tenant, list(uses), counts, now
            )

    async def last_uses(self, entry_ids: Collection[str]) -> list[LastUse]:
        await self._settle()
        rows = await self._session.rows(
            _SQL["last_uses"], self._session.bound_tenant, list(entry_ids)
        )
        return [LastUse(*row) for row in rows]

    async def add_outcomes(self, outcomes: Mapping[str, ContextOutcomes]) -> None:
        if outcomes:
            await self._settle()
            counts = [list(one) for one in zip(*outcomes.values(), strict=True)]
            await self._session.change(
                _SQL["add_outcomes"], self._session.bound_tenant, list(outcomes), *counts
            )

    async def uses(self, entry_ids: Collection[str]) -> dict[str, UseCounts]:
        await self._settle()
        rows = await self._session.rows(_SQL["uses"], self._session.bound_tenant, list(entry_ids))
        return {row[0]: UseCounts(row[1], ContextOutcomes(*row[2:])) for row in map(tuple, rows)}

    async def _settle(self) -> None:
        if self._buffer.touches_entries:
            await self._buffer.flush()
