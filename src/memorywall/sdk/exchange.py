"""Sending a request, and sending it again where that is safe. No waiting in between.

A lost reply leaves open whether the request was carried out. Reading again is always safe; a POST
that creates carries an Idempotency-Key, under which the server carries it out once; what is bound
to a version, and a DELETE of an id, can do nothing new a second time, and what it is answered
tells what became of the first. Everything else is sent again only if it cannot have arrived:
above all what takes something up, a claim, a lease or a task, which whoever takes it twice is
refused by its own first hold.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from memorywall.records.clock import parse_instant
from memorywall.records.entry import Scope, Source
from memorywall.records.errors import (
    MemoryConflictError,
    MemoryNotFoundError,
    MemorywallError,
    ResourceConflictError,
    ValidationError,
)
from memorywall.sdk.problems import MemoryTransportError, decode, raise_for
from memorywall.sdk.shapes import MemoryEntry
from memorywall.sdk.steps import Request, Response, Script, part

ATTEMPTS = 3
Shape = TypeVar("Shape")


def again(request: Request) -> Script[Response]:
    """For what may be carried out any number of times."""
    response, _ = yield from _until_answered(request)
    return response


def once(request: Request) -> Script[Response]:
    """For a POST that the server must carry out once."""
    keyed = replace(request, headers={**request.headers, "Idempotency-Key": uuid.uuid4().hex})
    return (yield from again(keyed))


def if_unsent(request: Request) -> Script[Response]:
    """For what must not be carried out twice: sent again only if it cannot have arrived."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return (yield from _send(request))
        except MemoryTransportError as error:
            if error.sent or attempt == ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def update(
    entry_id: str,
    version: int,
    fields: Mapping[str, Any],
    agent: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Script[MemoryEntry]:
    """Replaces fields of an entry at `version`.

    agent: who is writing, as far as that is known
    After a lost reply, a conflict may be with ourselves. It is taken for that if the entry stands
    at the next version, holds exactly what was sent, and was not written by anyone else. Two
    writers of one agent that send the very same from the same version cannot be told apart so.
    """
    request = Request(
        method="PATCH",
        path="/api/v1/memory/" + part(entry_id),
        headers={"If-Match": str(version), **(headers or {})},
        body=encode(fields),
    )
    response, lost = yield from _until_answered(request)
    try:
        return decode(response, MemoryEntry)
    except MemoryConflictError as conflict:
        current = conflict.current
        if lost and isinstance(current, MemoryEntry):
            foreign = agent is not None and current.curated_by not in (None, agent)
            if not foreign and _holds(current, version + 1, fields):
                return current
        raise


def change(
    request: Request, shape: type[Shape], path: str, is_done: Callable[[Shape], bool]
) -> Script[Shape]:
    """Changes an intent, a task or an attachment, on a condition that a second time does not hold.

    path: where the thing is read
    is_done: whether it is as it would be after this change
    After a lost reply, a conflict may be with ourselves, and the thing tells.
    Raises what the reply stands for: ResourceConflictError where another came first.
    """
    response, lost = yield from _until_answered(request)
    try:
        return decode(response, shape, conflict=ResourceConflictError)
    except ResourceConflictError:
        if lost:
            read = yield from again(Request(method="GET", path=path))
            current = decode(read, shape)
            if is_done(current):
                return current
        raise


def remove(
    path: str,
    headers: Mapping[str, str] | None = None,
    *,
    gone: tuple[type[MemorywallError], ...] = (MemoryNotFoundError,),
) -> Script[None]:
    """Deletes or gives back what is at `path`. After a lost reply, to be told that there is nothing
    to delete is what was wanted.

    gone: what such an answer raises
    """
    response, lost = yield from _until_answered(
        Request(method="DELETE", path=path, headers=headers or {})
    )
    try:
        raise_for(response)
    except gone:
        if not lost:
            raise


def encode(content: Any) -> bytes:
    """A body as JSON text. Raises ValidationError for what JSON cannot carry unchanged."""
    try:
        text = json.dumps(
            content,
            allow_nan=False,
            ensure_ascii=False,
            separators=(",", ":"),
            default=_plain,
        )
        return text.encode()
    except (ValueError, RecursionError) as error:
        raise ValidationError(
            "a NaN, an infinity, a lone surrogate or endless nesting cannot be sent as JSON"
        ) from error


def _plain(part_of_body: object) -> Any:
    if isinstance(part_of_body, msgspec.Struct):
        return msgspec.to_builtins(part_of_body)
    raise TypeError(f"a {type(part_of_body).__name__} cannot be sent as JSON")


def _send(request: Request) -> Script[Response]:
    response: Response = yield request
    return response


def _until_answered(request: Request) -> Script[tuple[Response, bool]]:
    """The first reply, and whether an earlier attempt may have been carried out unheard."""
    lost = False
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return (yield from _send(request)), lost
        except MemoryTransportError as error:
            if attempt == ATTEMPTS:
                raise
            lost = lost or error.sent
    raise AssertionError("the last attempt returns or raises")


def _holds(entry: MemoryEntry, version: int, fields: Mapping[str, Any]) -> bool:
    return entry.version == version and all(
        _same(name, sent, _held(entry, name)) for name, sent in fields.items()
    )


def _held(entry: MemoryEntry, name: str) -> Any:
    if name == "derived_from":
        return () if entry.provenance is None else entry.provenance.derived_from
    return getattr(entry, name)


def _same(name: str, sent: Any, held: Any) -> bool:
    if name == "tags":
        return bool(tuple(dict.fromkeys(sent)) == held)
    if name == "scope":
        return bool(msgspec.convert(msgspec.to_builtins(sent), Scope) == held)
    if name == "expires_at":
        # Without an instant of its own, the entry's follows from its ttl.
        return sent is None or bool(parse_instant(sent) == held)
    if name == "derived_from":
        sources = msgspec.convert(sent, tuple[Source, ...])
        return bool(tuple(dict.fromkeys(sources)) == held)
    return is_same(sent, held)


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON, which tells 1 from true and from 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
