"""Conditions as SQL for SQLite. Values are bound by position, in the order of the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from memorywall.expressions.compile import SqlValue, ValueKind, compile_condition
from memorywall.expressions.entry_fields import reads_sealed
from memorywall.records.condition import Condition, Path
from memorywall.storage.entry_columns import ESCAPED_NUL, column_of, json_path

OPAQUE = f"(e.sealing_key IS NOT NULL OR instr(e.value, x'{ESCAPED_NUL.hex()}') > 0)"
_DOCUMENTS = {"value": "nullif(CAST(e.value AS TEXT), '')"}
_TYPES = {
    "null": "= 'null'",
    "true": "= 'true'",
    "false": "= 'false'",
    "number": "IN ('integer', 'real')",
    "text": "= 'text'",
    "array": "= 'array'",
}


def compile_where(condition: Condition, met: Sequence[str]) -> tuple[str, list[Any]]:
    """Returns a condition on an entry of table `e`, and its bindings.

    met: the ids of the matching entries among those whose fields SQL cannot read
    """
    dialect = SqliteDialect()
    if not reads_sealed(condition):
        return compile_condition(condition, dialect), dialect.bindings
    dialect.bindings.append(msgspec.json.encode(met).decode())
    listed = "e.id IN (SELECT value FROM json_each(?))"
    text = compile_condition(condition, dialect)
    return f"CASE WHEN {OPAQUE} THEN {listed} ELSE {text} END", dialect.bindings


@dataclass(slots=True)
class SqliteDialect:
    """`SqlDialect` for SQLite."""

    bindings: list[Any] = field(default_factory=list)

    def value_at(self, path: Path) -> SqlValue:
        column = column_of(path)
        if column is not None:
            return column
        document = _DOCUMENTS.get(path.field, f"e.{path.field}")
        return _SqliteMember(self.bindings, document, json_path(path))

    def among(self, left: str, literals: Sequence[str] | Sequence[float]) -> str:
        self.bindings.extend(literals)
        return f"{left} IN ({', '.join('?' * len(literals))})"

    def compare(self, left: str, comparison: str, literal: str | float) -> str:
        self.bindings.append(literal)
        return f"{left} {comparison} ?"

    def has_part(self, left: str, literal: str) -> str:
        self.bindings.append(literal)
        return f"instr({left}, ?) > 0"


@dataclass(frozen=True, slots=True)
class _SqliteMember:
    """A value in a column of JSON text."""

    bindings: list[Any]
    document: str
    place: str

    def is_kind(self, kind: ValueKind) -> str:
        self.bindings.append(self.place)
        return f"coalesce(json_type({self.document}, ?), 'null') {_TYPES[kind]}"

    def text(self) -> str:
        self.bindings.append(self.place)
        return f"json_extract({self.document}, ?)"

    def number(self) -> str:
        return f"CAST({self.text()} AS REAL)"

    def elements(self) -> tuple[str, SqlValue]:
        self.bindings.append(self.place)
        return f"EXISTS (SELECT 1 FROM json_each({self.document}, ?) item WHERE", _Element()


class _Element:
    """An element of an array."""

    def is_kind(self, kind: ValueKind) -> str:
        return f"item.type {_TYPES[kind]}"

    def text(self) -> str:
        return "item.atom"

    def number(self) -> str:
        return "CAST(item.atom AS REAL)"

    def elements(self) -> tuple[str, SqlValue]:
        raise NotImplementedError
