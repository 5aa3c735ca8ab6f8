"""Declared records: one `RecordSpec` each, from which storage derives everything else.

The table and its statements in both dialects (`record_statements.py`), encoding and decoding, the
repository (`repository.py`), copy (`storage/transfer.py`), the checks of `verify`, erasure and the
conformance cases follow from it. Each record has its own table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec

from memorywall.records.sealed import SealedPart

Record = TypeVar("Record", bound=msgspec.Struct)
Row = Sequence[Any]

NOTHING_SEALED = ""
"""Replaces a key in the row of a record without data to seal. A row without even that was written
before its fields were sealed, or has fields in clear text."""


class ColumnType(StrEnum):
    """The type of a column. `RAW_TEXT` may contain U+0000, which PostgreSQL accepts only in
    bytes."""

    TEXT = "text"
    INTEGER = "integer"
    BYTES = "bytes"
    RAW_TEXT = "raw_text"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordColumn:
    """A column besides the tenant and the body.

    field: the record's field for the column, "" for the field of the same name
    """

    name: str
    type: ColumnType = ColumnType.TEXT
    required: bool = True
    field: str = ""

    @property
    def source(self) -> str:
        """The record's field for the column."""
        return self.field or self.name

    def read(self, record: msgspec.Struct) -> Any:
        """Returns the column's value for a record."""
        value = getattr(record, self.source)
        if isinstance(value, bool):
            return int(value)
        return value.value if isinstance(value, Enum) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordIndex:
    """An index; the tenant precedes its columns.

    where: the condition of a partial index, in SQL for both dialects; "" for all rows
    dialect: the one dialect with this index, "" for both
    """

    name: str
    columns: tuple[str, ...]
    where: str = ""
    dialect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordParent:
    """A parent of a record: a row of `table`, whose id is in `column`.

    noun: the name of the parent in messages
    key: the column of the parent that `column` refers to; default: "id"
    """

    noun: str
    table: str
    column: str
    key: str = "id"


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordSpec(Generic[Record]):
    """A record that belongs to a tenant.

    noun: its name in messages
    columns: the columns for queries, or all fields of a record without a body
    key: the columns that identify a record of a tenant
    parents: the possible parents; each record has exactly one of them
    status: the column that lists filter by, "" for none
    has_body: whether the complete record is stored as JSON in the column `body`
    sealed: the fields that are sealed with a data key of the agent in the field `owner`
    """

    noun: str
    table: str
    struct: type[Record]
    columns: tuple[RecordColumn, ...]
    key: tuple[str, ...] = ("id",)
    indexes: tuple[RecordIndex, ...] = ()
    parents: tuple[RecordParent, ...] = ()
    status: str = ""
    has_body: bool = True
    sealed: tuple[str, ...] = ()
    owner: str = "created_by"

    @cached_property
    def stored(self) -> tuple[tuple[str, ColumnType, bool], ...]:
        """Returns every column after the tenant: its name, its type and whether it is NOT NULL."""
        body = [("body", ColumnType.TEXT, True)] if self.has_body else []
        sealing = [("sealing_key", ColumnType.TEXT, False), ("sealed", ColumnType.BYTES, False)]
        return (
            *((one.name, one.type, one.required) for one in self.columns),
            *body,
            *(sealing if self.sealed else []),
        )

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """The columns from which a record is decoded."""
        if not self.has_body:
            return ("tenant", *(one.name for one in self.columns))
        return ("body", "sealing_key", "sealed") if self.sealed else ("body",)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers."""
        return tuple(one.name for one in self.columns if one.type is ColumnType.INTEGER)

    def to_row(self, record: Record) -> tuple[Any, ...]:
        """Returns the bindings of the statements `insert` and `replace`."""
        cells = [column.read(record) for column in self.columns]
        if self.sealed:
            part: SealedPart | None = record.sealed  # type: ignore[attr-defined]
            body = record if part is None else msgspec.structs.replace(record, sealed=None)
            key = None if self.has_clear_content(record) else NOTHING_SEALED
            cells += [_encode(body).decode(), *((key, None) if part is None else part)]
        elif self.has_body:
            cells.append(_encode(record).decode())
        return (record.tenant, *cells)  # type: ignore[attr-defined]

    def from_row(self, row: Row) -> Record:
        """Decodes the record in a row of the columns `shown`."""
        if not self.has_body:
            named = zip(self._fields, row, strict=True)
            # An older row may have NULL in place of a default, and a boolean is stored as 0 or 1.
            cells = {name: cell for name, cell in named if cell is not None}
            converted: Record = msgspec.convert(cells, self.struct, strict=False)
            return converted
        record: Record = self._decode(row[0])
        if self.sealed and row[2] is not None:
            return msgspec.structs.replace(record, sealed=SealedPart(row[1], row[2]))
        return record

    def has_clear_content(self, record: Record) -> bool:
        """Returns whether a field that must be sealed is in clear text."""
        return any(getattr(record, name) != self.empty[name] for name in self.sealed)

    def key_of(self, record: Record) -> tuple[Any, ...]:
        """Returns the record's key."""
        return tuple(getattr(record, name) for name in self.key)

    def index_on(self, column: str) -> RecordIndex | None:
        """Returns the index that begins with a column and continues with the id."""
        wanted = (column, *self.key)
        return next((one for one in self.indexes if one.columns[: len(wanted)] == wanted), None)

    @cached_property
    def empty(self) -> dict[str, Any]:
        """Returns the values of the sealed fields while they are sealed, by name."""
        found = {one.name: one for one in msgspec.structs.fields(self.struct)}
        return {
            name: found[name].default
            if found[name].default is not msgspec.NODEFAULT
            else found[name].default_factory()
            for name in self.sealed
        }

    @cached_property
    def raw_places(self) -> tuple[int, ...]:
        """Returns the indexes of the text columns that PostgreSQL stores as bytes."""
        stored = enumerate(self.stored, 1)
        return tuple(place for place, (_, kind, _) in stored if kind is ColumnType.RAW_TEXT)

    @cached_property
    def _decode(self) -> Any:
        return msgspec.json.Decoder(self.struct).decode

    @cached_property
    def _fields(self) -> tuple[str, ...]:
        return ("tenant", *(one.source for one in self.columns))


_encode = msgspec.json.Encoder().encode
