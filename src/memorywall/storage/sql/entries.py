"""Reads of entries for maintenance, tasks, sessions and statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memorywall.records.entry import Entry
from memorywall.records.tier import Eviction, Tier
from memorywall.records.usage import Usage
from memorywall.storage.derived_rows import reseal_row, usage_by_tier_from_rows
from memorywall.storage.port import LAST_KEY
from memorywall.storage.rows import decode_rows, entry_from_row
from memorywall.storage.sql.access import RowAccess
from memorywall.storage.statements import load


class SqlEntryRepository:
    """The part of `port.EntryRepository` that both databases share, over rows that are read after
    all writes of entries. The operations of single requests have the shortest form for each
    database."""

    def __init__(self, rows: RowAccess) -> None:
        self._rows = rows
        self._sql = load(rows.dialect, "entries")
        self._reseal_version = load(rows.dialect, "links")["reseal"]

    async def reseal(self, entry: Entry, *, earlier: bool = False) -> None:
        statement = self._reseal_version if earlier else self._sql["reseal"]
        if not await self._rows.change(statement, *reseal_row(entry, earlier=earlier)):
            raise LookupError("the entry to seal anew is not stored in this version")
        self._rows.count_removal()

    async def rename(self, old: Entry, new: Entry) -> None:
        bindings = (old.tenant, old.id, old.version, new.namespace, new.key)
        if not await self._rows.change(self._sql["rename"], *bindings):
            raise LookupError("the entry to rename was not read in this transaction")

    async def expired(self, now: str, limit: int) -> list[Entry]:
        return await self._list("expired", now, limit)

    async def first_to_evict(
        self,
        tier: Tier,
        owner: str,
        policy: Eviction,
        now: str,
        limit: int,
        *,
        namespace: str | None = None,
        task_id: str | None = None,
        except_kinds: Sequence[str] = (),
        about: Sequence[str] | None = None,
    ) -> list[Entry]:
        name = f"first_to_evict_{policy}"
        special = f"{name}_{tier}"
        place = (owner, tier.value, namespace, limit, task_id, now)
        subjects = None if about is None else self._rows.names(about)
        bindings = (*place, self._rows.names(except_kinds), subjects)
        return await self._list(special if special in self._sql else name, *bindings)

    async def touch(self, accesses: Mapping[str, str]) -> None:
        bindings = (self._rows.tenant,)
        await self._rows.change_each(self._sql["touch"], bindings, list(accesses.items()))

    async def of_task(self, tier: Tier | None, task_id: str) -> list[Entry]:
        if tier is None:
            return await self._list("of_task_in_every_tier", task_id)
        return await self._list("of_task", tier.value, task_id)

    async def fullest_owners(self, tier: Tier, least: int, limit: int) -> list[tuple[str, int]]:
        bindings = (self._rows.tenant, tier.value, least, limit)
        rows = await self._rows.rows(self._sql["fullest_owners"], *bindings)
        return [(row[0], row[1]) for row in rows]

    async def usage_by_tier(self) -> dict[Tier, Usage]:
        rows = await self._rows.rows(self._sql["usage_by_tier"], self._rows.tenant)
        return usage_by_tier_from_rows(rows)

    async def of_owner(
        self, tier: Tier, owner: str, limit: int, after: str = "", before: str = LAST_KEY
    ) -> list[Entry]:
        return await self._list("of_owner", owner, tier.value, limit, after, before)

    async def of_session(
        self,
        session_id: str,
        kind: str,
        owner: str,
        limit: int,
        *,
        after: str = "",
        before: str = LAST_KEY,
        newest_first: bool = False,
    ) -> list[Entry]:
        statement = "of_session_newest_first" if newest_first else "of_session"
        return await self._list(statement, session_id, kind, owner, after, before, limit)

    async def session_owners(self, session_id: str, kind: str) -> list[str]:
        bindings = (self._rows.tenant, session_id, kind)
        row = await self._rows.row(self._sql["session_owners"], *bindings)
        return sorted({owner for owner in row or () if owner is not None})

    async def count_of_session(self, session_id: str, kind: str) -> int:
        bindings = (self._rows.tenant, session_id, kind)
        row = await self._rows.row(self._sql["count_of_session"], *bindings)
        return 0 if row is None else int(row[0])

    async def walk(self, after: str, limit: int) -> list[Entry]:
        return await self._list("walk", after, limit)

    async def tasks(self, tier: Tier, owner: str, now: str) -> list[str]:
        bindings = (self._rows.tenant, owner, tier.value, now)
        return [str(row[0]) for row in await self._rows.rows(self._sql["tasks"], *bindings)]

    async def span(self, tier: Tier, owner: str, now: str) -> tuple[str | None, str | None]:
        bindings = (self._rows.tenant, owner, tier.value, now)
        oldest = await self._rows.row(self._sql["oldest"], *bindings)
        newest = await self._rows.row(self._sql["newest"], *bindings)
        return (oldest[0] if oldest else None, newest[0] if newest else None)

    async def _list(self, statement: str, *bindings: Any) -> list[Entry]:
        rows = await self._rows.rows(self._sql[statement], self._rows.tenant, *bindings)
        return await decode_rows(self._rows, rows, entry_from_row)
