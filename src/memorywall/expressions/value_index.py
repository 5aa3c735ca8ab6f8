"""The index of values: the rows of an entry, and the rows that a condition needs.

The index is for `=` and `in` with texts, numbers and truth values. It may contain more than the
matching entries, because long texts are cut; the condition itself is always checked as well.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from memorywall.expressions.evaluate import as_number
from memorywall.expressions.printer import print_path
from memorywall.records.condition import AllOf, Condition, Path, Scalar, Test

UNKNOWN = "?"
"""The row of an entry whose value is sealed: nothing that is derived from it is stored in clear
text, and a query reads the entry to check the condition."""
_RELATION = "path:"
"""Begins the relations of rows; no relation of a kind contains a colon."""
_LONGEST = 100
"""Characters of a text in the index."""


def relation_of(path: Path) -> str:
    """Returns the relation of the edges that are the rows of a path."""
    return _RELATION + print_path(path)


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
        return "t" + value[:_LONGEST].replace("\0", "\ufffd")
    return None


def find_index(condition: Condition, paths: Collection[str]) -> tuple[str, tuple[str, ...]] | None:
    """Returns the relation and the targets of the rows that contain every match of a condition;
    None if no index helps.

    paths: the indexed paths as text
    """
    parts = condition.parts if isinstance(condition, AllOf) else (condition,)
    for part in parts:
        if not isinstance(part, Test) or part.operator not in ("=", "in"):
            continue
        targets = _targets(part.literals)
        if targets is not None and print_path(part.path) in paths:
            return relation_of(part.path), (*targets, UNKNOWN)
    return None


def _targets(literals: Collection[Scalar]) -> tuple[str, ...] | None:
    found = tuple(dict.fromkeys(index_target(one) for one in literals))
    targets = tuple(one for one in found if one is not None)
    return targets if len(targets) == len(found) else None
