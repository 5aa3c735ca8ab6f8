"""What recall keeps, in SQLite."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import apsw

from memorywall.records.recall import EntryVector
from memorywall.storage.rows import encode_names
from memorywall.storage.statements import load

_SQL = load("sqlite", "recall")


class SqliteRecall:
    """`port.Recall` on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._executemany = connection.executemany
        self.removals = 0
        """How often vectors were removed without their entries through this connection: their bytes
        have yet to leave the write-ahead log."""

    async def put_vectors(self, tenant: str, model: str, vectors: Sequence[EntryVector]) -> None:
        if vectors:
            self._execute(_SQL["begin_model"], (tenant, model))
            self._executemany(
                _SQL["put_vector"],
                [(tenant, one.entry_id, model, one.version, one.vector) for one in vectors],
            )

    async def vectors(
        self, tenant: str, model: str, entry_ids: Collection[str]
    ) -> dict[str, bytes]:
        wanted = encode_names(list(entry_ids))
        return dict(self._execute(_SQL["vectors"], (tenant, model, wanted)))

    async def remove_other_models(self, tenant: str, model: str, limit: int) -> int:
        removed = 0
        for (other,) in self._execute(_SQL["other_models"], (tenant, model)).fetchall():
            # From the beginning, should the model come back before all of its vectors are gone.
            self._execute(_SQL["forget_position"], (tenant, other))
            rest = (tenant, other, limit - removed)
            removed += len(self._execute(_SQL["remove_some_of_model"], rest).fetchall())
            self._execute(_SQL["forget_model"], (tenant, other))
        self.removals += removed > 0
        return removed

    async def position(self, tenant: str, model: str) -> int:
        row = self._execute(_SQL["position"], (tenant, model)).fetchone()
        return 0 if row is None else int(row[0])

    async def take_turn(
        self, tenant: str, model: str, holder: str, now: str, until: str
    ) -> int | None:
        row = self._execute(_SQL["take_turn"], (tenant, model, holder, now, until)).fetchone()
        return None if row is None else int(row[0])

    async def advance(self, tenant: str, model: str, holder: str, position: int) -> bool:
        moved = self._execute(_SQL["advance"], (tenant, model, holder, position))
        return moved.fetchone() is not None

    async def add_uses(self, tenant: str, uses: Mapping[str, int]) -> None:
        self._executemany(
            _SQL["add_uses"], [(tenant, entry_id, count) for entry_id, count in uses.items()]
        )

    async def uses(self, tenant: str, entry_ids: Collection[str]) -> dict[str, int]:
        return dict(self._execute(_SQL["uses"], (tenant, encode_names(list(entry_ids)))))
