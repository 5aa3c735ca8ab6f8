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
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from memorywall.records.clock import parse_instant
from memorywall.records.entry import Scope, Source
from memorywall.records.errors import (
    MemoryConflictError,
    MemoryNotFoundError,
    MemorywallError,
    ResourceConflictError,
    ValidationError,
)
from memorywall.sdk.effects import Request, RequestGenerator, Response
from memorywall.sdk.errors import MemoryTransportError, decode, raise_for
from memorywall.sdk.models import MemoryEntry

ATTEMPTS = 3
Shape = TypeVar("Shape")
_AGAIN = frozenset(
    {
        "renew_lease",
        "renew_task_lease",
        "renew_claim",
        "send_heartbeat",
        "run_job",
        "pause_job",
        "resume_job",
    }
)
"""What changes something and may be asked for any number of times."""


def again(request: Request) -> RequestGenerator[Response]:
    """For what may be carried out any number of times."""
    response, _ = yield from _until_answered(request)
    return response


def once(request: Request) -> RequestGenerator[Response]:
    """For a POST that the server must carry out once."""
    return (yield from again(replace(request, idempotency_key=os.urandom(16).hex())))


def if_unsent(request: Request) -> RequestGenerator[Response]:
    """For what must not be carried out twice: sent again only if it cannot have arrived."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return (yield request)  # type: ignore[no-any-return]
        except MemoryTransportError as error:
            if error.sent or attempt == ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def send(request: Request) -> RequestGenerator[Response]:
    """Sends a request as often as its operation allows."""
    record = request.record
    if record.accepts_idempotency_key:
        return (yield from once(request))
    if not record.changes or request.operation in _AGAIN:
        return (yield from again(request))
    return (yield from if_unsent(request))


def call(
    operation: str,
    shape: type[Shape],
    *,
    body: Any = None,
    query: Mapping[str, Any] | None = None,
    fencing_token: int | None = None,
    if_match: int | None = None,
    **path: str,
) -> RequestGenerator[Shape]:
    """The result of an operation of the table.

    shape: the type it is returned as
    query: its query parameters; one that is None is left out
    path: the parameters of its path
    """
    request = Request(
        operation=operation,
        path=path,
        query=texts(query or {}),
        body=body,
        if_match=if_match,
        fencing_token=fencing_token,
    )
    return decode((yield from send(request)), shape)


def texts(query: Mapping[str, Any]) -> dict[str, str]:
    """Query parameters as text, those that are None left out."""
    return {name: _text(value) for name, value in query.items() if value is not None}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def update(
    entry_id: str,
    version: int,
    fields: Mapping[str, Any],
    agent: str | None = None,
    fencing_token: int | None = None,
) -> RequestGenerator[MemoryEntry]:
    """Replaces fields of an entry at `version`.

    agent: who is writing, as far as that is known
    After a lost reply, a conflict may be with ourselves. It is taken for that if the entry stands
    at the next version, holds exactly what was sent, and was not written by anyone else. Two
    writers of one agent that send the very same from the same version cannot be told apart so.
    """
    request = Request(
        operation="update_entry",
        path={"entry_id": entry_id},
        if_match=version,
        fencing_token=fencing_token,
        body=fields,
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
    request: Request,
    shape: type[Shape],
    read: RequestGenerator[Shape],
    is_done: Callable[[Shape], bool],
) -> RequestGenerator[Shape]:
    """Changes an intent, a task or an attachment, on a condition that a second time does not hold.

    read: reads the thing as it is
    is_done: whether it is as it would be after this change
    After a lost reply, a conflict may be with ourselves, and the thing tells.
    Raises what the reply stands for: ResourceConflictError where another came first.
    """
    response, lost = yield from _until_answered(request)
    try:
        return decode(response, shape, conflict=ResourceConflictError)
    except ResourceConflictError:
        if lost:
            current = yield from read
            if is_done(current):
                return current
        raise


def remove(
    operation: str,
    *,
    gone: tuple[type[MemorywallError], ...] = (MemoryNotFoundError,),
    fencing_token: int | None = None,
    if_match: int | None = None,
    **path: str,
) -> RequestGenerator[None]:
    """Deletes or gives something back. After a lost reply, to be told that there is nothing to
    delete is what was wanted.

    gone: what such an answer raises
    path: the parameters of the operation's path
    """
    response, lost = yield from _until_answered(
        Request(operation=operation, path=path, fencing_token=fencing_token, if_match=if_match)
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


def _until_answered(request: Request) -> RequestGenerator[tuple[Response, bool]]:
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
