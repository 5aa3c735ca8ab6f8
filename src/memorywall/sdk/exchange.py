"""Sending a request, and sending it again where that is safe. No waiting in between.

A lost reply leaves open whether the request was carried out. Reading again is always safe; a POST
carries an Idempotency-Key, under which the server carries it out once; a PATCH is bound to a
version and a DELETE to an id, so that a second one can do nothing new, and what it is answered
tells what became of the first. Everything else is sent again only if it cannot have arrived.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from memorywall.records.clock import parse_instant
from memorywall.records.entry import Scope
from memorywall.records.errors import MemoryConflictError, MemoryNotFoundError, ValidationError
from memorywall.sdk.problems import MemoryTransportError, decode, raise_for
from memorywall.sdk.shapes import MemoryEntry
from memorywall.sdk.steps import Request, Response, Script, part

ATTEMPTS = 3


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
            return (yield request)
        except MemoryTransportError as error:
            if error.sent or attempt == ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def update(
    entry_id: str, version: int, fields: Mapping[str, Any], agent: str | None = None
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
        headers={"If-Match": str(version)},
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


def delete(entry_id: str, version: int | None) -> Script[None]:
    """Deletes an entry; that it is gone when asked again after a lost reply is what was wanted."""
    response, lost = yield from _until_answered(
        Request(
            method="DELETE",
            path="/api/v1/memory/" + part(entry_id),
            headers={} if version is None else {"If-Match": str(version)},
        )
    )
    try:
        raise_for(response)
    except MemoryNotFoundError:
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


def _until_answered(request: Request) -> Script[tuple[Response, bool]]:
    """The first reply, and whether an earlier attempt may have been carried out unheard."""
    lost = False
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return (yield request), lost
        except MemoryTransportError as error:
            if attempt == ATTEMPTS:
                raise
            lost = lost or error.sent
    raise AssertionError("the last attempt returns or raises")


def _holds(entry: MemoryEntry, version: int, fields: Mapping[str, Any]) -> bool:
    return entry.version == version and all(
        _same(name, sent, getattr(entry, name)) for name, sent in fields.items()
    )


def _same(name: str, sent: Any, held: Any) -> bool:
    if name == "tags":
        return bool(tuple(dict.fromkeys(sent)) == held)
    if name == "scope":
        return bool(msgspec.convert(msgspec.to_builtins(sent), Scope) == held)
    if name == "expires_at":
        # Without an instant of its own, the entry's follows from its ttl.
        return sent is None or bool(parse_instant(sent) == held)
    return json.dumps(sent, sort_keys=True) == json.dumps(held, sort_keys=True)
