"""The index of values: the rows of an entry, and the rows that a condition needs.

The index is for `=` and `in` with texts, numbers and truth values, and for ranges of instants. It
may contain more than the matching entries, because long texts are cut; the condition itself is
always checked as well.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from memorywall.expressions.evaluate import as_number
from memorywall.expressions.printer import print_path
from memorywall.records.condition import AllOf, Condition, Scalar, Test

UNKNOWN = "?"
"""The row of an entry whose value is sealed: nothing that is derived from it is stored in clear
text, and a query reads the entry to check the condition."""
_RELATION = "path:"
"""Begins the relations of rows; no relation of a kind contains a colon."""
_LONGEST = 100
"""Characters of a text in the index."""
_TEXT = "t"
"""Begins the targets of texts, which are in the order of the texts."""
_EVERY_TEXT = (_TEXT, "u")
_ORDERS = frozenset({"<", "<=", ">", ">="})


class RowsOfPath(NamedTuple):
    """The rows that contain every match of a condition.

    path: the indexed path
    targets: their targets, `UNKNOWN` among them
    between: the first and the last of further targets; None for no further ones
    """

    path: str
    targets: tuple[str, ...]
    between: tuple[str, str] | None = None


def relation_of(path: str, kind: str | None = None) -> str:
    """Returns the relation of the edges that are the rows of a path.

    kind: the kind that declares the path; None for a namespace
    """
    return f"{_RELATION}{path}" if kind is None else f"{_RELATION}{kind}:{path}"


def is_index_row(relation: str) -> bool:
    """Returns whether an edge is a row of the index of values, and no edge between entries."""
    return relation.startswith(_RELATION)


def index_target(value: Any) -> str | None:
    """Returns a value as a row of the index has it; None if it has no row."""
    if isinstance(value, bool):
        return f"b{int(value)}"
    if isinstance(value, (int, float)):
        # `-0.0` equals 0.
        return f"n{as_number(value) or 0.0!r}"
    if isinstance(value, str):
        return _TEXT + value[:_LONGEST].replace("\0", "\ufffd")
    return None


def find_index(
    condition: Condition, paths: Collection[str], instants: Collection[str] = ()
) -> RowsOfPath | None:
    """Returns the rows that contain every match of a condition; None if no index helps.

    paths: the indexed paths as text
    instants: those among them whose rows are in the order of time
    """
    ranges: dict[str, tuple[str, str]] = {}
    for part in condition.parts if isinstance(condition, AllOf) else (condition,):
        if not isinstance(part, Test) or (path := print_path(part.path)) not in paths:
            continue
        if part.operator in ("=", "in"):
            if (targets := _targets(part.literals)) is not None:
                return RowsOfPath(path, (*targets, UNKNOWN))
        elif path in instants and part.operator in _ORDERS and isinstance(part.literals[0], str):
            bound = _TEXT + part.literals[0]
            first, last = ranges.get(path, _EVERY_TEXT)
            is_lower = part.operator in (">", ">=")
            ranges[path] = (max(first, bound), last) if is_lower else (first, min(last, bound))
    if not ranges:
        return None
    # A range with two bounds contains the fewest rows.
    path = min(ranges, key=lambda one: sum(end in _EVERY_TEXT for end in ranges[one]))
    return RowsOfPath(path, (UNKNOWN,), ranges[path])


def _targets(literals: Collection[Scalar]) -> tuple[str, ...] | None:
    found = tuple(dict.fromkeys(index_target(one) for one in literals))
    targets = tuple(one for one in found if one is not None)
    return targets if len(targets) == len(found) else None
