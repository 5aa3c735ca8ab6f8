"""The filters of LangGraph's store: conditions on fields of an item's value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda value, bound: value > bound,
    "$gte": lambda value, bound: value >= bound,
    "$lt": lambda value, bound: value < bound,
    "$lte": lambda value, bound: value <= bound,
}
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9 _.:/@-]{1,200}")


def check_filter(wanted: Mapping[str, Any]) -> None:
    """Raises ValueError, as LangGraph's stores do, for an operator that does not exist."""
    for condition in wanted.values():
        if _has_operators(condition) and not condition.keys() <= {"$eq", "$ne", *_ORDERS}:
            known = ", ".join(("$eq", "$ne", *_ORDERS))
            raise ValueError(f"an operator of `filter` must be one of: {known}")


def meets(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a value meets all conditions. A field is a path with dots, or a name with dots."""
    return all(_meets_one(_field(value, path), one) for path, one in wanted.items())


def as_where(wanted: Mapping[str, Any]) -> str | None:
    """Returns the conditions that a query of entries can check as well, so that it returns less;
    None for none. `meets` decides."""
    parts = []
    for path, condition in wanted.items():
        if isinstance(condition, dict):
            condition = condition.get("$eq")
        if not _FIELD.fullmatch(path):
            continue
        if isinstance(condition, str) and _PLAIN_TEXT.fullmatch(condition):
            parts.append(f'value.{path} = "{condition}"')
        elif isinstance(condition, int) and not isinstance(condition, bool):
            parts.append(f"value.{path} = {condition}")
    return " AND ".join(parts) or None


def _field(value: Any, path: str) -> Any:
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _has_operators(condition: Any) -> bool:
    return isinstance(condition, dict) and any(str(one).startswith("$") for one in condition)


def _meets_one(value: Any, condition: Any) -> bool:
    if isinstance(condition, dict) and not _has_operators(condition):
        return isinstance(value, Mapping) and meets(value, condition)
    if not isinstance(condition, dict):
        return bool(value == condition)
    return all(_compare(value, operator, bound) for operator, bound in condition.items())


def _compare(value: Any, operator: str, bound: Any) -> bool:
    if operator == "$eq":
        return bool(value == bound)
    if value is None:
        # As in SQL: nothing is known about what is not there.
        return False
    if operator == "$ne":
        return bool(value != bound)
    try:
        return _ORDERS[operator](value, bound)
    except TypeError:
        return False
