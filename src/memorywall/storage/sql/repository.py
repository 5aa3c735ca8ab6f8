"""The repository of a declared record, the same over both databases."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Generic, Protocol

from memorywall.storage.rows import decode_rows
from memorywall.storage.sql.access import RowAccess
from memorywall.storage.sql.record_spec import Record, RecordSpec, Row
from memorywall.storage.sql.record_statements import record_statements

ALL = 2**53
"""A limit greater than any number of rows, for statements that need a limit."""


class RecordRepository(Protocol[Record]):
    """The operations of every declared record. A replaced record was read in the same
    transaction."""

    async def get(self, *key: str) -> Record | None:
        """Returns the record with this key, or None."""
        ...

    async def get_many(self, keys: Collection[str]) -> list[Record]:
        """Returns the records with these keys that exist, in any order. Raises LookupError for
        records whose key has several columns."""
        ...

    async def insert(self, record: Record) -> None:
        """Adds a record under a new key."""
        ...

    async def replace(self, record: Record) -> None:
        """Replaces the record with the same key. Raises LookupError."""
        ...

    async def remove(self, *key: str) -> bool:
        """Removes the record. Returns False if it is absent. Its bytes leave the files like those
        of an entry: see `Store.is_erasure_complete`."""
        ...

    async def page(
        self,
        *,
        parent: tuple[str, str] | None = None,
        status: str | None = None,
        after: str = "",
        limit: int = ALL,
    ) -> list[Record]:
        """Returns up to `limit` records, oldest first by id, starting with the first id greater
        than `after`.

        parent: only records of this parent: the name of the column, and the id
        status: only records with this status
        """
        ...

    async def sums(self) -> dict[str, int]:
        """Returns the sum of each column of numbers over all records, by its name."""
        ...

    async def unsealed(self, limit: int) -> list[Record]:
        """Returns up to `limit` records with fields in clear text that must be sealed."""
        ...

    async def erase_sealed(self, owner: str, limit: int) -> int:
        """Removes data that is sealed with the data keys of `owner` from up to `limit` records;
        returns their number."""
        ...


class SqlRecordRepository(Generic[Record]):
    """`RecordRepository` over rows."""

    def __init__(self, spec: RecordSpec[Record], rows: RowAccess) -> None:
        self._spec = spec
        self._rows = rows
        self._sql = record_statements(spec, rows.dialect)
        self._raw = spec.raw_places if rows.dialect == "postgres" else ()

    async def get(self, *key: str) -> Record | None:
        row = await self._rows.row(self._sql["get"], self._rows.tenant, *key)
        return None if row is None else self._record(row)

    async def get_many(self, keys: Collection[str]) -> list[Record]:
        if not keys:
            return []
        return await self._list(self._sql["get_many"], self._rows.names(keys))

    async def insert(self, record: Record) -> None:
        await self._rows.change(self._sql["insert"], *self._bindings(record))

    async def replace(self, record: Record) -> None:
        if not await self._rows.change(self._sql["replace"], *self._bindings(record)):
            raise LookupError(f"the {self._spec.noun} to replace was not read in this transaction")
        if self._spec.sealed:
            self._rows.count_removal()

    async def remove(self, *key: str) -> bool:
        if not await self._rows.change(self._sql["remove"], self._rows.tenant, *key):
            return False
        self._rows.count_removal()
        return True

    async def page(
        self,
        *,
        parent: tuple[str, str] | None = None,
        status: str | None = None,
        after: str = "",
        limit: int = ALL,
    ) -> list[Record]:
        name, bindings = "list", [self._rows.tenant]
        if parent is not None:
            name, bindings = f"list_by_{parent[0]}", [*bindings, parent[1]]
        if status is not None:
            name, bindings = f"{name}_in", [*bindings, status]
        rows = await self._rows.rows(self._sql[name], *bindings, after, limit)
        return await decode_rows(self._rows, rows, self._record)

    async def sums(self) -> dict[str, int]:
        numbers = self._spec.numbers
        row = await self._rows.row(self._sql["sums"], self._rows.tenant) if numbers else None
        return {} if row is None else dict(zip(numbers, map(int, row), strict=True))

    async def unsealed(self, limit: int) -> list[Record]:
        if not self._spec.sealed:
            return []
        return await self._list(self._sql["unsealed"], limit)

    async def erase_sealed(self, owner: str, limit: int) -> int:
        if not self._spec.sealed:
            return 0
        erased = await self._rows.change(self._sql["erase_sealed"], self._rows.tenant, owner, limit)
        if erased:
            self._rows.count_removal()
        return len(erased)

    def _bindings(self, record: Record) -> Sequence[Any]:
        row = self._spec.to_row(record)
        if not self._raw:
            return row
        return [
            cell.encode() if place in self._raw and cell is not None else cell
            for place, cell in enumerate(row)
        ]

    def _record(self, row: Row) -> Record:
        if self._raw and not self._spec.has_body:
            row = [cell.decode() if isinstance(cell, bytes) else cell for cell in row]
        return self._spec.from_row(row)

    async def _list(self, statement: str, *bindings: Any) -> list[Record]:
        """Returns the records of a statement that is specific to this record type."""
        rows = await self._rows.rows(statement, self._rows.tenant, *bindings)
        return await decode_rows(self._rows, rows, self._record)
