"""Says what a field must be, when JSON does not fit a struct. Messages name the field by its path
and repeat no value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

_AT = re.compile(r" - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`$")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]+)`")
_BY_MSGSPEC = re.compile(r"(Expected|Invalid|Object|Integer|Number) ")
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
_ANY_KEY = "..."
_NOUNS: dict[type[inspect.Type], tuple[str, str]] = {
    inspect.StrType: ("a text", "texts"),
    inspect.IntType: ("an integer", "integers"),
    inspect.FloatType: ("a number", "numbers"),
    inspect.BoolType: ("true or false", "values"),
    inspect.NoneType: ("null", "values"),
    inspect.DictType: ("an object", "objects"),
    inspect.StructType: ("an object", "objects"),
}
"""One value of a type, and several of them."""
_MOST_NAMED = 4
"""The most fields of an object that a message names."""


def explain(
    error: msgspec.ValidationError, kind: Any, *, strict: bool = True, inside: str = ""
) -> str:
    """Returns which field does not fit a type, and what it must be.

    error: what `msgspec.convert(value, kind, strict=strict)` has raised
    inside: the name of the object that has the fields, such as `value`; default: "", the body
    """
    message = str(error)
    if not _BY_MSGSPEC.match(message):
        # The struct has a check of its own, whose message repeats no value.
        return message[:300]
    found = _AT.search(message)
    steps = [name or place for name, place in _STEP.findall(found["path"])] if found else []
    if missing := _MISSING.match(message):
        steps.append(missing["name"])
    wanted = list(_members(_info(kind)))
    for step in steps:
        wanted = [one for outer in wanted for one in _inside(outer, step)]
    if found and found["key"]:
        keys = [one for outer in wanted if isinstance(outer, inspect.DictType)
                for one in _members(outer.key_type)]  # fmt: skip
        return f"{_show(steps, inside)} may only have the keys {_phrase(keys)}"
    if not strict:
        # A query parameter is absent or has a value, and is never null.
        wanted = [one for one in wanted if not isinstance(one, inspect.NoneType)]
    return f"{_show(steps, inside)} {'is required:' if missing else 'must be'} {_phrase(wanted)}"


def wanted_body(kind: Any) -> str:
    """Returns what to send as the body of this type."""
    found = _info(kind)
    is_optional = isinstance(found, inspect.StructType) and not _list_required(found)
    return "`{}`, or an object with fields" if is_optional else _phrase([*_members(found)])


@cache
def _info(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _members(kind: inspect.Type) -> Iterator[inspect.Type]:
    """The alternatives of a type."""
    if isinstance(kind, inspect.Metadata):
        yield from _members(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _members(one)
    else:
        yield kind


def _inside(kind: inspect.Type, step: str) -> Iterator[inspect.Type]:
    """The types of a field, or of the elements of a list or an object."""
    if isinstance(kind, inspect.StructType):
        for field in kind.fields:
            if field.encode_name == step:
                yield from _members(field.type)
    elif isinstance(kind, inspect.DictType):
        yield from _members(kind.value_type)
    elif isinstance(kind, inspect.CollectionType):
        yield from _members(kind.item_type)


def _show(steps: Sequence[str], inside: str) -> str:
    """The path of a field."""
    text = inside
    for step in steps:
        is_place = step.isdecimal() or step == _ANY_KEY
        text += f"[{step}]" if is_place else f".{step}" if text else step
    owner = text.removesuffix(f"[{_ANY_KEY}]")
    if owner != text:
        return f"each value of `{owner}`"
    return f"`{text}`" if text else "the body"


def _phrase(kinds: Sequence[inspect.Type]) -> str:
    """Returns a description of the values of these types, in words."""
    texts = [text for one in kinds for text in (_values(one) or [_describe(one)])]
    *others, last = texts or ["another value"]
    return f"{', '.join(others)} or {last}" if others else last


def _values(kind: inspect.Type) -> list[str]:
    """The values of an enumeration; empty for other types."""
    if isinstance(kind, inspect.LiteralType):
        return [f"`{one}`" for one in kind.values]
    return [f"`{one.value}`" for one in kind.cls] if isinstance(kind, inspect.EnumType) else []


def _describe(kind: inspect.Type) -> str:
    """A value of a type that is no enumeration, with its limits."""
    noun = _NOUNS.get(type(kind), ("another value", ""))[0]
    if isinstance(kind, inspect.StructType):
        return noun + _fields(kind)
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        limits = _limits(kind.ge, kind.le)
        if " to " in limits:
            return f"{noun} from {limits}"
        words = {"above": kind.gt, "at least": kind.ge, "below": kind.lt, "at most": kind.le}
        texts = [f"{word} {limit}" for word, limit in words.items() if limit is not None]
        return f"{noun}, {' and '.join(texts)}" if texts else noun
    if isinstance(kind, inspect.StrType):
        limits = _limits(kind.min_length, kind.max_length)
        return f"{noun} of {limits} characters" if limits else noun
    if isinstance(kind, inspect.CollectionType):
        limits = _limits(kind.min_length, kind.max_length)
        return " ".join(("a list of", *([limits] if limits else ()), _plural(kind.item_type)))
    return noun


def _limits(least: float | None, most: float | None) -> str:
    """The limits of a number or of a length; empty without any."""
    if least is not None and most is not None:
        return f"{least} to {most}"
    return f"at least {least}" if least is not None else "" if most is None else f"at most {most}"


def _plural(kind: inspect.Type) -> str:
    """Several values of a type."""
    text = _NOUNS.get(type(kind), ("", "values"))[1]
    return text + _fields(kind) if isinstance(kind, inspect.StructType) else text


def _fields(kind: inspect.StructType) -> str:
    """The fields that an object must have, if they are few."""
    names = [f"`{one}`" for one in _list_required(kind)]
    return f" with {' and '.join(names)}" if 0 < len(names) <= _MOST_NAMED else ""


def _list_required(kind: inspect.StructType) -> list[str]:
    return [one.encode_name for one in kind.fields if one.required]
