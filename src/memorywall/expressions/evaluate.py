"""Evaluates a condition in memory."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from memorywall.records.condition import AllOf, Condition, Negation, Path, Scalar, Test

Lookup = Callable[[str], Any]
"""Returns the value of a field as JSON has it: None, a bool, a number, a text, a list or a dict."""
_NUMBERS = frozenset({int, float})
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def evaluate(condition: Condition, lookup: Lookup) -> bool:
    """Returns whether a condition is true for a record. Never raises an error of its own."""
    if isinstance(condition, Test):
        return _test(condition, follow(condition.path, lookup))
    if isinstance(condition, Negation):
        return not evaluate(condition.part, lookup)
    if isinstance(condition, AllOf):
        return all(evaluate(one, lookup) for one in condition.parts)
    return any(evaluate(one, lookup) for one in condition.parts)


def tests_of(condition: Condition) -> Iterator[Test]:
    """Yields the tests of a condition."""
    if isinstance(condition, Test):
        yield condition
        return
    for part in (condition.part,) if isinstance(condition, Negation) else condition.parts:
        yield from tests_of(part)


def fields_of(condition: Condition) -> frozenset[str]:
    """Returns the names of the fields that a condition reads."""
    return frozenset(test.path.field for test in tests_of(condition))


def follow(path: Path, lookup: Lookup) -> Any:
    """Returns the value at a path, None if there is none."""
    found = lookup(path.field)
    for step in path.steps:
        if isinstance(step, str):
            found = found.get(step) if isinstance(found, dict) else None
        elif isinstance(found, (list, tuple)) and step < len(found):
            found = found[step]
        else:
            return None
    return found


def _test(test: Test, found: Any) -> bool:
    if test.operator == "exists":
        return found is not None
    if test.operator in ("=", "in"):
        return any(_equals(found, one) for one in test.literals)
    (literal,) = test.literals
    if test.operator == "contains":
        return _contains(found, literal)
    if test.operator == "!=":
        differs = literal is None or _kind(found) == _kind(literal)
        return differs and not _equals(found, literal)
    if _kind(found) != _kind(literal):
        return False
    if isinstance(found, str):
        return _ORDERS[test.operator](found, literal)
    return _ORDERS[test.operator](as_number(found), as_number(literal))


def _contains(found: Any, literal: Scalar) -> bool:
    if isinstance(found, str):
        return isinstance(literal, str) and literal in found
    if not isinstance(found, (list, tuple)):
        return False
    if literal is None or isinstance(literal, str):
        return literal in found
    if isinstance(literal, bool):
        return any(one is literal for one in found)
    # Only numbers of these types are in JSON; a call of `_equals` for each would take five times
    # as long.
    number = as_number(literal)
    return any(as_number(one) == number for one in found if type(one) in _NUMBERS)


def _equals(found: Any, literal: Scalar) -> bool:
    kind = _kind(found)
    if kind != _kind(literal) or kind == "other":
        return False
    return as_number(found) == as_number(literal) if kind == "number" else bool(found == literal)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "text" if isinstance(value, str) else "other"


def as_number(value: Any) -> float:
    """Returns a number as a 64-bit floating-point number, as the stores compare it."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
