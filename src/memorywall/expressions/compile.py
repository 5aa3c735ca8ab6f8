"""Compiles a condition to SQL.

A dialect gives the parts of the text; the tests are put together here, so that they mean the same
in every store. The parts of a statement are made in the order of its text, because a dialect may
bind by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from memorywall.records.condition import (
    AllOf,
    Condition,
    Negation,
    Operator,
    Path,
    Scalar,
    Test,
)

ValueKind = Literal["null", "true", "false", "number", "text", "array"]


class SqlValue(Protocol):
    """A value of a record as SQL. No text is ever NULL for a value of the named kind."""

    def is_kind(self, kind: ValueKind) -> str:
        """Returns the condition that the value is of a kind; it is never NULL."""
        ...

    def text(self) -> str:
        """Returns the value, which is a text; texts are ordered by code point."""
        ...

    def number(self) -> str:
        """Returns the value, which is a number, as a 64-bit floating-point number."""
        ...

    def elements(self) -> tuple[str, SqlValue]:
        """Returns an element of the value, which is an array, and the beginning of the condition
        that an element exists for which a condition is true, up to its WHERE."""
        ...


class SqlDialect(Protocol):
    """The differences between the stores."""

    def value_at(self, path: Path) -> SqlValue:
        """Returns the value at a path of the record."""
        ...

    def among(self, left: str, literals: Sequence[str] | Sequence[float]) -> str:
        """Returns the condition that `left` is one of some literals of one type."""
        ...

    def compare(self, left: str, comparison: str, literal: str | float) -> str:
        """Returns a comparison with a literal of the type of `left`."""
        ...

    def has_part(self, left: str, literal: str) -> str:
        """Returns the condition that the text `left` contains a text."""
        ...


def compile_condition(condition: Condition, dialect: SqlDialect) -> str:
    """Returns a condition as SQL, which is never NULL and never fails."""
    if isinstance(condition, Test):
        if condition.operator == "in" and not condition.literals:
            # The value is not made, because a dialect may bind its path, which no text would use.
            return "FALSE"
        return _test(dialect, dialect.value_at(condition.path), condition)
    if isinstance(condition, Negation):
        return f"(NOT {compile_condition(condition.part, dialect)})"
    word = " AND " if isinstance(condition, AllOf) else " OR "
    return f"({word.join(compile_condition(one, dialect) for one in condition.parts)})"


def _test(dialect: SqlDialect, value: SqlValue, test: Test) -> str:
    if test.operator == "exists":
        return f"(NOT {value.is_kind('null')})"
    if test.operator in ("=", "in"):
        return _equals(dialect, value, test.literals)
    (literal,) = test.literals
    if test.operator == "contains":
        return _contains(dialect, value, literal)
    if literal is None:
        return f"(NOT {value.is_kind('null')})"
    if isinstance(literal, bool):
        # Only `!=` compares truth values otherwise.
        return value.is_kind("false" if literal else "true")
    return _compare(dialect, value, test.operator, literal)


def _equals(dialect: SqlDialect, value: SqlValue, literals: Sequence[Scalar]) -> str:
    """Returns the condition that a value equals any of some literals."""
    texts = [one for one in literals if isinstance(one, str)]
    numbers = [
        float(one)
        for one in literals
        if isinstance(one, (int, float)) and not isinstance(one, bool)
    ]
    ways = []
    if None in literals:
        ways.append(value.is_kind("null"))
    if any(one is True for one in literals):
        ways.append(value.is_kind("true"))
    if any(one is False for one in literals):
        ways.append(value.is_kind("false"))
    if texts:
        kind = value.is_kind("text")
        ways.append(_guard(kind, dialect.among(value.text(), texts)))
    if numbers:
        kind = value.is_kind("number")
        ways.append(_guard(kind, dialect.among(value.number(), numbers)))
    return f"({' OR '.join(ways)})"


def _compare(
    dialect: SqlDialect, value: SqlValue, comparison: Operator, literal: str | float
) -> str:
    sign = "<>" if comparison == "!=" else comparison
    if isinstance(literal, str):
        kind = value.is_kind("text")
        return _guard(kind, dialect.compare(value.text(), sign, literal))
    kind = value.is_kind("number")
    return _guard(kind, dialect.compare(value.number(), sign, float(literal)))


def _contains(dialect: SqlDialect, value: SqlValue, literal: Scalar) -> str:
    ways = []
    if isinstance(literal, str):
        kind = value.is_kind("text")
        ways.append(_guard(kind, dialect.has_part(value.text(), literal)))
    kind = value.is_kind("array")
    exists, element = value.elements()
    ways.append(_guard(kind, f"{exists} {_equals(dialect, element, (literal,))})"))
    return f"({' OR '.join(ways)})"


def _guard(kind: str, condition: str) -> str:
    """Returns a condition that is computed only for values of a kind, and is false for others."""
    return f"CASE WHEN {kind} THEN {condition} ELSE FALSE END"
