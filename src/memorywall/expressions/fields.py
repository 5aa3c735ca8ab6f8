"""The fields that a condition may name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

FieldType = Literal["text", "number", "boolean", "instant", "json"]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record.

    type: an `instant` is RFC 3339 text in the stored form; only `json` has members and elements
    words: the possible texts in ascending order; empty for any text
    is_name: whether its texts, or those of its elements, are names, which are equal in all their
        forms
    """

    type: FieldType
    words: tuple[str, ...] = ()
    is_name: bool = False


Fields: TypeAlias = Mapping[str, Field]
"""The fields of a record by name. A name may contain one dot, such as `scope.task_id`."""
