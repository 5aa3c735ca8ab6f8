"""Conditions as SQL for PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from memorywall.expressions.compile import SqlValue, ValueKind, compile_condition
from memorywall.expressions.entry_fields import reads_sealed
from memorywall.records.condition import Condition, Path
from memorywall.storage.entry_columns import ESCAPED_NUL, column_of, json_path

Bind = Callable[[Any], str]
"""Binds a value; returns its placeholder."""
OPAQUE = f"(e.sealing_key IS NOT NULL OR position('\\x{ESCAPED_NUL.hex()}'::bytea IN e.value) > 0)"
_DOCUMENTS = {"value": "nullif(convert_from(e.value, 'UTF8'), '')"}
_TYPES = {
    "null": "null",
    "true": "boolean",
    "false": "boolean",
    "number": "number",
    "text": "string",
    "array": "array",
}
_LARGEST = "1.797693134862315708e308"
"""Numbers from here on are infinite as 64-bit floating-point numbers."""


def compile_where(condition: Condition, met: Sequence[str], bind: Bind) -> str:
    """Returns a condition on an entry of table `e`.

    met: the ids of the matching entries among those whose fields SQL cannot read
    """
    dialect = PostgresDialect(bind)
    text = dialect.with_documents(compile_condition(condition, dialect))
    if not reads_sealed(condition):
        return text
    listed = f"e.id = ANY({bind(list(met))}::text[])"
    return f"CASE WHEN {OPAQUE} THEN {listed} ELSE {text} END"


class PostgresDialect:
    """`SqlDialect` for PostgreSQL."""

    def __init__(self, bind: Bind) -> None:
        self._bind = bind
        self._documents: dict[str, str] = {}

    def with_documents(self, condition: str) -> str:
        """Returns the condition with the JSON texts that it reads, each decoded once."""
        if not self._documents:
            return condition
        decoded = ", ".join(f"{text}::jsonb AS {name}" for name, text in self._documents.items())
        return f"(SELECT {condition} FROM (SELECT {decoded} OFFSET 0) document)"

    def value_at(self, path: Path) -> SqlValue:
        column = column_of(path)
        if column is not None:
            return column
        self._documents[path.field] = _DOCUMENTS.get(path.field, f"e.{path.field}")
        if not path.steps:
            return _PostgresMember(f"document.{path.field}")
        # The operator `->` would take a scalar for an array with one element.
        place = f"{self._bind('strict ' + json_path(path))}::text::jsonpath"
        return _PostgresMember(
            f"jsonb_path_query_first(document.{path.field}, {place}, '{{}}', TRUE)"
        )

    def among(self, left: str, literals: Sequence[str] | Sequence[float]) -> str:
        kind = "text" if isinstance(literals[0], str) else "float8"
        return f"{left} = ANY({self._bind(list(literals))}::{kind}[])"

    def compare(self, left: str, comparison: str, literal: str | float) -> str:
        kind = "text" if isinstance(literal, str) else "float8"
        return f"{left} {comparison} {self._bind(literal)}::{kind}"

    def has_part(self, left: str, literal: str) -> str:
        return f"strpos({left}, {self._bind(literal)}::text) > 0"


@dataclass(frozen=True, slots=True)
class _PostgresMember:
    """A value in a document."""

    value: str

    def is_kind(self, kind: ValueKind) -> str:
        if kind in ("true", "false"):
            return f"coalesce({self.value} = '{kind}'::jsonb, FALSE)"
        return f"coalesce(jsonb_typeof({self.value}), 'null') = '{_TYPES[kind]}'"

    def text(self) -> str:
        return f"({self.value} #>> '{{}}') COLLATE \"C\""

    def number(self) -> str:
        # A cast of a number beyond the largest fails.
        number = f"{self.value}::numeric"
        return (
            f"CASE WHEN abs({number}) < {_LARGEST} THEN {self.value}::float8"
            f" WHEN {number} < 0 THEN '-Infinity' ELSE 'Infinity' END"
        )

    def elements(self) -> tuple[str, SqlValue]:
        items = f"jsonb_array_elements({self.value}) AS item (element)"
        return f"EXISTS (SELECT 1 FROM {items} WHERE", _PostgresMember("item.element")
