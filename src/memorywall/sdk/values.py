"""Values of entries: every write takes an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memorywall.records.errors import ValidationError

NOT_AN_OBJECT = (
    'the value of an entry is an object: pass a dict, such as {"value": ...} for a text, a number'
    " or a list"
)


def checked_value(value: Any, *, index: int | None = None) -> dict[str, Any]:
    """Returns a copy of the value of an entry. Raises ValidationError for anything but a mapping.

    index: the position of the element in a batch
    """
    if not isinstance(value, Mapping):
        raise ValidationError(NOT_AN_OBJECT, index=index)
    return dict(value)
