"""The tree of a condition; `memorywall.expressions` parses, prints, evaluates and compiles it.

A path that leads nowhere has the value null, so an absent member and a member that is null are the
same. Every test is either true or false: a comparison of values of different types is false.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Scalar: TypeAlias = str | int | float | bool | None
Operator = Literal["=", "!=", "<", "<=", ">", ">=", "in", "contains", "exists"]


class Path(msgspec.Struct, frozen=True, gc=False):
    """The position of a value.

    field: a field of the record, such as `kind` or `value`
    steps: names of members and indexes of elements below the field
    """

    field: str
    steps: tuple[str | int, ...] = ()


class Test(msgspec.Struct, frozen=True):
    """One comparison of the value at a path.

    literals: the right side; any number for `in`, none for `exists`
    """

    __test__ = False

    path: Path
    operator: Operator
    literals: tuple[Scalar, ...] = ()


class Negation(msgspec.Struct, frozen=True):
    """True if its part is false."""

    part: Condition


class AllOf(msgspec.Struct, frozen=True):
    """True if every part is true; it has at least two."""

    parts: tuple[Condition, ...]


class AnyOf(msgspec.Struct, frozen=True):
    """True if any part is true; it has at least two."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = Test | Negation | AllOf | AnyOf
