"""From the bytes of a request to checked values. Messages name fields, never what is in them."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from functools import cache
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl

import msgspec

from memorywall.records.errors import (
    PreconditionError,
    RequestError,
    ValidationError,
    ValueTooLargeError,
)

Body = TypeVar("Body")

DEEPEST = 100
_IF_MATCH = re.compile(r'(?:W/)?"?(\d{1,18})"?', re.ASCII)
_ENUM = re.compile(r"Invalid enum value .*?( - at `[^`]*`)?$", re.DOTALL)
_TOO_DEEP = f"the JSON is nested deeper than {DEEPEST} levels"
_generic = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Oversized(ValueTooLargeError):
    """The body is longer than the operation takes; it was not read to its end."""


def decode_body(content: bytes, kind: type[Body]) -> Body:
    """A JSON body as `kind`, strictly: no repeated key, no lone surrogate, no NaN, bounded depth.

    Raises RequestError for what is not JSON, ValidationError naming the field that does not fit.
    """
    generic = decode_json(content)
    try:
        return msgspec.convert(generic, kind, strict=True)
    except msgspec.ValidationError as error:
        raise ValidationError(_describe(error, generic, kind)) from None


def decode_json(content: bytes) -> Any:
    """Any strict JSON text. Raises RequestError."""
    try:
        generic = _generic(content)
    except RecursionError:
        raise RequestError(_TOO_DEEP) from None
    except msgspec.ValidationError:
        raise RequestError("a number in the JSON is out of range") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise RequestError("the body is not valid JSON in UTF-8") from None
    if content.count(b"{") + content.count(b"[") > DEEPEST and _is_too_deep(generic):
        raise RequestError(_TOO_DEEP)
    # Text that comes out of our encoder as it went in cannot have repeated a key. Any other is
    # read a second time by a parser that shows every pair.
    if _encode(generic) != content:
        json.loads(content, object_pairs_hook=_without_repetition)
    return generic


def _without_repetition(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) != len({key for key, _ in pairs}):
        raise RequestError("an object in the JSON has the same key twice")


def _is_too_deep(generic: Any) -> bool:
    level = [generic]
    for _ in range(DEEPEST + 1):
        inner: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                inner.extend(node.values())
            elif isinstance(node, list):
                inner.extend(node)
        if not inner:
            return False
        level = inner
    return True


def _describe(error: msgspec.ValidationError, generic: Any, kind: type) -> str:
    """What msgspec found, without the value it found it in."""
    message = str(error)
    if "unknown field" in message and "at `" not in message and isinstance(generic, dict):
        unknown = sorted(name[:64] for name in generic if name not in _field_names(kind))
        return "unknown fields: " + ", ".join(f"`{name}`" for name in unknown[:20])
    if match := _ENUM.match(message):
        return "not one of the allowed values" + (match[1] or "")
    return message[:300]


@cache
def _field_names(kind: Hashable) -> frozenset[str]:
    return frozenset(field.encode_name for field in msgspec.structs.fields(cast(Any, kind)))


def decode_query(text: bytes, kind: type[Body]) -> Body:
    """A query string as `kind`. Raises RequestError naming every parameter that is unknown."""
    known = _field_names(cast(Hashable, kind))
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise RequestError("the query string is not percent-encoded UTF-8") from None
    except ValueError:
        raise RequestError("the query string has too many parameters") from None
    unknown = sorted({name[:64] for name, _ in pairs if name not in known})
    if unknown:
        names = ", ".join(f"`{name}`" for name in unknown[:20])
        raise RequestError(f"unknown query parameters: {names}")
    values = dict(pairs)
    if len(values) != len(pairs):
        raise RequestError("a query parameter is given twice")
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise RequestError(_describe(error, values, kind).replace("$.", "")) from None


def refuse_query(text: bytes) -> None:
    """For operations that take no parameters."""
    if text:
        decode_query(text, _NoParameters)


class _NoParameters(msgspec.Struct):
    pass


def parse_if_match(header: str | None, *, required: bool) -> int | None:
    """The version in `3`, `"3"` or `W/"3"`. Raises PreconditionError."""
    if header is None:
        if required:
            raise PreconditionError("send the entry's current version as `If-Match`")
        return None
    match = _IF_MATCH.fullmatch(header.strip())
    if match is None:
        raise PreconditionError("`If-Match` must be a version number such as 3")
    return int(match[1])
