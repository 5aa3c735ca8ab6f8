"""Paths of values whose rows the index of values keeps for every entry of a kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from memorywall.records.condition import Path
from memorywall.records.validity import instant_of_field

Value = dict[str, Any]


@dataclass(frozen=True, slots=True)
class IndexedField:
    """A path of the values of a kind that queries of the kind find entries by, in all tiers.

    path: names of members below `value`, such as `value.valid_from`
    since: the version of the kind that declares it first, from 1. An entry of an earlier version
        has no row until it is written again, and queries read all such entries. A new path of a
        kind that has entries therefore needs a new version of the kind.
    is_instant: whether its values are null, RFC 3339 instants or dates. They are stored in the
        stored form of instants, a condition compares them with instants, and the index finds
        ranges of them. The rows of a sealed entry have its instants in clear text, like its due
        instant; every other value of a sealed entry has no row of its own. Default: False.
    """

    path: str
    since: int
    is_instant: bool = False

    def __post_init__(self) -> None:
        first, *members = self.path.split(".")
        if first != "value" or not members or not all(one.isidentifier() for one in members):
            raise ValueError(f"the path {self.path!r} must name members below `value`")

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the members, from the outermost one."""
        return tuple(self.path.split(".")[1:])

    @property
    def value_path(self) -> Path:
        """The path as conditions have it."""
        return Path("value", self.members)


def store_instants(fields: Iterable[IndexedField], value: Value) -> tuple[Value, list[str]]:
    """Returns a value with its instants in the stored form, or the same value if all have it, and
    the paths of instants at which there is something else.

    fields: those of the value's kind
    """
    wrong = []
    for field in fields:
        found: Any = value if field.is_instant else None
        for member in field.members:
            found = found.get(member) if isinstance(found, dict) else None
        if found is None:
            continue
        stored = instant_of_field(field.members[-1], found)
        if stored is None:
            wrong.append(field.path)
        elif stored != found:
            value = _replace(value, field.members, stored)
    return value, wrong


def _replace(value: Value, members: Sequence[str], instant: str) -> Value:
    first, *others = members
    return {**value, first: _replace(value[first], others, instant) if others else instant}
