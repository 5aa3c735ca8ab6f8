"""The columns of entries that conditions read, the same in both dialects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from memorywall.expressions.compile import SqlValue, ValueKind
from memorywall.expressions.entry_fields import ENTRY_FIELDS
from memorywall.records.condition import Path
from memorywall.records.entry import PRIORITY_RANK
from memorywall.records.filter import EntryFilter

ESCAPED_NUL = b"\\u0000"
"""The escape of the character NUL in JSON text; neither store can handle the character."""
_RANKED = " ".join(f"WHEN {rank} THEN '{word}'" for word, rank in PRIORITY_RANK.items())
_COLUMNS = {
    "memory_type": "e.tier",
    "scope.task_id": "e.task_id",
    "scope.intent_id": "e.intent_id",
    "scope.session_id": "e.session_id",
    "priority": f"CASE e.priority {_RANKED} END",
}
ORDER_COLUMNS: Final = {
    "created": (),
    "updated": ("updated_at",),
    "key": ("key",),
    "priority": ("priority",),
}
"""The columns before the id in each order of a page; ids follow the order of creation."""


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """A column as a value of a condition; no column contains an array."""

    column: str
    kind: str

    def is_kind(self, kind: ValueKind) -> str:
        if kind == "null":
            return f"({self.column} IS NULL)"
        if self.kind == "boolean" and kind in ("true", "false"):
            return f"({self.column} = {int(kind == 'true')})"
        return f"({self.column} IS NOT NULL)" if kind == self.kind else "FALSE"

    def text(self) -> str:
        # A part that is never computed must have the right type as well.
        return self.column if self.kind == "text" else "CAST('' AS text)"

    def number(self) -> str:
        return f"CAST({self.column if self.kind == 'number' else 0} AS double precision)"

    def elements(self) -> tuple[str, SqlValue]:
        return "EXISTS (SELECT 1 WHERE", self


def column_of(path: Path) -> ColumnValue | None:
    """Returns the column of a field; None for a column of JSON text."""
    kind = ENTRY_FIELDS[path.field].type
    if kind == "json":
        return None
    column = _COLUMNS.get(path.field, f"e.{path.field}")
    return ColumnValue(column, "text" if kind == "instant" else kind)


def json_path(path: Path) -> str:
    """Returns the steps of a path as a JSON path of SQL, with every name quoted."""
    steps = (
        f"[{step}]" if isinstance(step, int) else f".{msgspec.json.encode(step).decode()}"
        for step in path.steps
    )
    return "$" + "".join(steps)


def order_terms(wanted: EntryFilter, prefix: str) -> str:
    """Returns the terms of ORDER BY for a page.

    prefix: the table of the columns with a dot, or ""
    """
    direction = "ASC" if wanted.ascending else "DESC"
    if wanted.order == "created":
        return f"{prefix}id {direction}"
    columns = (*ORDER_COLUMNS[wanted.order], "id")
    return ", ".join(f"{prefix}{column} {direction}" for column in columns)


def after_position(wanted: EntryFilter) -> tuple[str, tuple[str, ...]]:
    """Returns the columns that are compared with the position of a page, and the comparison."""
    columns = tuple(f"e.{column}" for column in (*ORDER_COLUMNS[wanted.order], "id"))
    return ">" if wanted.ascending else "<", columns
