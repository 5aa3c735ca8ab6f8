"""Values of entries: every write takes an object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from memorywall.records.errors import ValidationError

NOT_AN_OBJECT = (
    'the value of an entry is an object: pass a dict, such as {"value": ...} for a text, a number'
    " or a list"
)


def remembered_value(text: str, metadata: Any) -> dict[str, Any]:
    """Returns the value of an entry of `remember`. Raises ValidationError for metadata that is no
    object."""
    if metadata is None:
        return {"text": text}
    if not isinstance(metadata, Mapping):
        raise ValidationError('`metadata` must be an object, such as {"channel": "email"}')
    return {"text": text, "metadata": dict(metadata)}


def checked_value(value: Any, *, index: int | None = None) -> dict[str, Any]:
    """Returns a copy of the value of an entry. Raises ValidationError for anything but a mapping.

    index: the position of the element in a batch
    """
    if not isinstance(value, Mapping):
        raise ValidationError(NOT_AN_OBJECT, index=index)
    return dict(value)


def checked_list(field: str, given: Any) -> list[Any]:
    """Returns the elements of an argument. Raises ValidationError for anything that has none, and
    for a text, whose characters would be the elements."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ValidationError(f"`{field}` must be a list; put a single element in a list, too")
    return list(given)


def checked_objects(field: str, given: Any, example: str) -> list[Any]:
    """Returns the elements of an argument, each a dict or a struct. Raises ValidationError.

    example: an element, for the message
    """
    checked = checked_list(field, given)
    for place, one in enumerate(checked):
        if not isinstance(one, Mapping | msgspec.Struct):
            raise ValidationError(f"`{field}[{place}]` must be a dict, such as {example}")
    return [dict(one) if isinstance(one, Mapping) else one for one in checked]
