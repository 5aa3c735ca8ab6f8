"""Decodes and validates requests. Messages name fields and never repeat values."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

from memorywall.records.argument_names import current_names, unknown_names
from memorywall.records.errors import (
    PreconditionError,
    RequestError,
    ValidationError,
    ValueTooLargeError,
)
from memorywall.records.struct_errors import explain, wanted_body
from memorywall.service.requests.operation_context import OperationCall
from memorywall.wire.operation import ANY_VERSION, MERGE_PATCH, Operation, UserOfRequest

Body = TypeVar("Body")

MOST_DECODED_AT_ONCE = 32 * 1024
"""Bytes of a body that the event loop decodes; a thread decodes a longer one."""
DEEPEST = 100
_IF_MATCH = re.compile(r'(?:W/)?"(\d{1,18})"|(\d{1,18})', re.ASCII)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`(?: - at `([^`]*)`)?$", re.DOTALL)
_ELEMENT = re.compile(r"at `\$\.entries\[(\d+)\]")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_MOST_NAMED = 20
_LONGEST_NAME = 64
_TOO_DEEP = f"the JSON is nested deeper than {DEEPEST} levels"
_generic = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Oversized(ValueTooLargeError):
    """The body exceeds the limit of the operation; the rest of it was not read."""


def decode_body(content: bytes, kind: type[Body]) -> Body:
    """A JSON body as `kind`. Duplicate keys, lone surrogates, NaN and deep nesting are refused.

    Raises RequestError for invalid JSON, ValidationError, which names the invalid field.
    """
    if not content:
        raise RequestError(f"the body is empty; send {wanted_body(kind)}")
    return convert_body(decode_json(content), kind)


def convert_body(generic: Any, kind: type[Body]) -> Body:
    """Converts decoded JSON to `kind`. Raises ValidationError, which names the invalid field.

    A struct with `collect_unknown` has a place for fields that it does not know.
    """
    if (collect_unknown := getattr(kind, "collect_unknown", None)) is not None:
        generic = collect_unknown(generic)
    try:
        return msgspec.convert(generic, kind, strict=True)
    except msgspec.ValidationError as error:
        if isinstance(generic, dict) and hasattr(kind, "__struct_fields__"):
            renamed = current_names(generic, _field_names(cast(Hashable, kind)))
            if renamed is not None:
                return convert_body(renamed, kind)
        raise _refusal(error, generic, kind) from None


def decode_json(content: bytes) -> Any:
    """The value of a strict JSON text. Raises RequestError."""
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
    # A text that the encoder reproduces exactly has no duplicate key. Any other text is parsed
    # again by a parser that shows every pair.
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


def _refusal(error: msgspec.ValidationError, generic: Any, kind: Any) -> ValidationError:
    """The error for the client: it names every unknown field and the first other invalid field, and
    the element of the batch."""
    element = _ELEMENT.search(str(error))
    unknown: list[str] = []
    other: msgspec.ValidationError | None = error
    while other is not None and (match := _UNKNOWN.match(str(other))):
        if len(unknown) == _MOST_NAMED:
            other = None
            break
        unknown.append((match[2][2:] + "." if match[2] else "") + match[1][:_LONGEST_NAME])
        _node(generic, match[2] or "$").pop(match[1], None)
        try:
            msgspec.convert(generic, kind, strict=True)
            other = None
        except msgspec.ValidationError as another:
            other = another
    known = _field_names(kind) if hasattr(kind, "__struct_fields__") else ()
    parts = [unknown_names("fields", unknown, known)] if unknown else []
    parts += [] if other is None else [explain(other, kind)]
    return ValidationError("; ".join(parts), index=int(element[1]) if element else None)


def _node(generic: Any, path: str) -> Any:
    """The value at a path such as `$.entries[3].scope`."""
    for name, place in _STEP.findall(path):
        generic = generic[name] if name else generic[int(place)]
    return generic


@cache
def _field_names(kind: Hashable) -> frozenset[str]:
    return frozenset(field.encode_name for field in msgspec.structs.fields(cast(Any, kind)))


def decode_query(text: bytes, kind: type[Body]) -> Body:
    """A query string as `kind`. Raises RequestError, which names every unknown parameter."""
    if _BAD_ESCAPE.search(text):
        raise RequestError("the query string is not percent-encoded UTF-8")
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise RequestError("the query string is not percent-encoded UTF-8") from None
    except ValueError:
        raise RequestError("the query string has too many parameters") from None
    values = dict(pairs)
    if len(values) != len(pairs):
        raise RequestError("a query parameter is given twice")
    return convert_query(values, kind)


def empty_query(kind: type[Body]) -> Body | None:
    """A query without parameters, which all such requests share, because structs of queries are
    frozen; None for a query that must have one."""
    try:
        return convert_query({}, kind)
    except RequestError:
        return None


def convert_query(values: Mapping[str, str], kind: type[Body]) -> Body:
    """Query parameters, by name, as `kind`. Raises RequestError, which names every unknown one."""
    known = _field_names(cast(Hashable, kind))
    if not values.keys() <= known:
        values = current_names(values, known) or values
        unknown = sorted({name[:_LONGEST_NAME] for name in values.keys() - known})
        if unknown:
            raise RequestError(unknown_names("query parameters", unknown, known))
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise RequestError(explain(error, kind, strict=False)) from None


def named_people(named: Mapping[str, str | None]) -> str | None:
    """The people that a request is bound to; None for nobody.

    named: the headers and the field that may name them, with what they name

    Raises RequestError for two that name different people.
    """
    given = {name: people for name, people in named.items() if people is not None}
    if len(set(given.values())) > 1:
        names = " and ".join(f"`{name}`" for name in given)
        raise RequestError(f"{names} name the same and differ; send one of them")
    return next(iter(given.values()), None)


def bind_named_user(call: OperationCall) -> None:
    """Binds a call to the people that its query or its body names, if any. Raises RequestError."""
    for part in (call.query, call.body):
        if isinstance(part, UserOfRequest) and part.user is not None:
            if not part.user:
                raise RequestError("`user` must not be empty; name a person")
            call.subject = named_people({"X-User": call.subject, "user": part.user})


def check_path(raw: bytes) -> None:
    """Raises RequestError for a path whose escapes are not UTF-8. A lenient decoder could turn such
    a path into the name of another resource."""
    if b"%" not in raw:
        return
    try:
        if _BAD_ESCAPE.search(raw):
            raise RequestError("the path is not percent-encoded UTF-8")
        unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise RequestError("the path is not percent-encoded UTF-8") from None


def refuse_query(text: bytes) -> None:
    """Raises RequestError for any parameter; for operations without query parameters."""
    if text:
        decode_query(text, NoParameters)


class NoParameters(msgspec.Struct):
    """The query of an operation that has none."""


def parse_if_match(operation: Operation, header: str | None) -> int | None:
    """The version in `3`, `"3"` or `W/"3"`; `ANY_VERSION` for `*` where the operation accepts it.
    Raises PreconditionError."""
    if header is None:
        if operation.if_match == "required":
            raise PreconditionError("send the entry's current version as `If-Match`")
        return None
    if operation.if_match == "any" and header.strip() == "*":
        return ANY_VERSION
    match = _IF_MATCH.fullmatch(header.strip())
    if match is None:
        raise PreconditionError("`If-Match` must be a version number such as 3")
    return int(match[1] or match[2])


def parse_if_none_match(header: str | None) -> bool:
    """Whether the header is `*`, which is the only accepted value. Raises PreconditionError."""
    if header is None:
        return False
    if header.strip() != "*":
        raise PreconditionError("`If-None-Match` of a write must be `*`")
    return True


def body_type(operation: Operation, media_type: str | None) -> type:
    """The struct of the body of an operation for the media type of a request.

    media_type: the value of Content-Type, None without one
    """
    if operation.merge_patch is not None and media_type is not None:
        media, _, _ = media_type.partition(";")
        if media.strip().lower() == MERGE_PATCH:
            return operation.merge_patch
    return cast(type, operation.body)
