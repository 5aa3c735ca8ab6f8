"""Sends requests, and repeats them where that is safe.

After a lost response the client does not know whether the request ran. Reads can always be
repeated. A POST that creates has an Idempotency-Key, so the server runs it once. A write that names
a version and a DELETE of an id have no effect the second time, and the response shows the outcome
of the first. Other requests are repeated only if they cannot have arrived. Above all this applies
to the acquisition of claims, leases and tasks: the lease of the first request would refuse the
second.

A request that a rate limit refuses has had no effect. Each request is repeated after the pause that
the server asks for, a few times and up to a total of pauses.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping
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
from memorywall.sdk.effects import Open, Pause, Request, RequestGenerator, Response
from memorywall.sdk.errors import MemoryTransportError, decode, raise_for, retry_after
from memorywall.sdk.models import MemoryEntry

ATTEMPTS = 3
MOST_PAUSES = 5
LONGEST_WAIT = 30.0
"""The most pauses of a request for rate limits, and the most seconds of all of them."""
Shape = TypeVar("Shape")
_OF_PROVENANCE = {"derived_from": "derived_from", "source": "source", "context_id": "context"}
"""The fields of a write that a reply has in its provenance, and their names there."""
_REPEATABLE = frozenset(
    {
        "renew_lease",
        "renew_task_lease",
        "renew_claim",
        "keep_working_item",
        "mark_working_item",
        "send_heartbeat",
        "run_job",
        "pause_job",
        "resume_job",
        "put_value_schema",
        "create_group",
        "add_group_member",
        "set_session_participant",
        "resume_session",
        "close_session",
        "archive_session",
    }
)
"""Operations with an effect that may be repeated any number of times."""


def backoff(first: float, longest: float, jitter: Callable[[], float]) -> Iterator[float]:
    """Yields pauses in seconds without end. Each is twice the one before, up to `longest`, of which
    jitter takes up to a half, so that clients that collided separate.

    jitter: returns a random number from 0 to 1
    """
    pause = first
    while True:
        yield pause * (0.5 + jitter() / 2)
        pause = min(2 * pause, longest)


def send_repeatable(request: Request) -> RequestGenerator[Response]:
    """For requests that may run any number of times."""
    response, _ = yield from _until_answered(request)
    return response


def send_idempotent(request: Request) -> RequestGenerator[Response]:
    """For a POST that the server must run once."""
    return (yield from send_repeatable(replace(request, idempotency_key=os.urandom(16).hex())))


def send_if_unsent(request: Request) -> RequestGenerator[Response]:
    """For requests that must not run twice: repeated only if they cannot have arrived."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return (yield from admitted(request))
        except MemoryTransportError as error:
            if error.sent or attempt == ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def send(request: Request) -> RequestGenerator[Response]:
    """Sends a request, repeated as often as its operation allows."""
    record = request.record
    if record.accepts_idempotency_key:
        return (yield from send_idempotent(request))
    if not record.changes or request.operation in _REPEATABLE:
        return (yield from send_repeatable(request))
    return (yield from send_if_unsent(request))


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
    """Returns the result of an operation of the table.

    shape: the type of the result
    query: the query parameters; None values are omitted
    path: the path parameters
    """
    request = Request(
        operation=operation,
        path=path,
        query=texts(query or {}),
        body=body,
        if_match=if_match,
        fencing_token=fencing_token,
    )
    return (yield from ask(request, shape))


def ask(request: Request, shape: type[Shape]) -> RequestGenerator[Shape]:
    """The result of a request, sent as often as its operation allows.

    shape: the type it is returned as
    """
    return decode((yield from send(request)), shape)


def texts(query: Mapping[str, Any]) -> dict[str, str]:
    """Returns query parameters as text, without those that are None."""
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

    agent: the writing agent, if known

    After a lost response, a conflict may result from this client's own write. This is presumed if
    the entry has the next version, contains exactly the sent values, and has no other writer. Two
    clients of one agent that send identical values for the same version cannot be distinguished.
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
            if not foreign and _is_written(current, version + 1, fields):
                return current
        raise


def change(
    request: Request,
    shape: type[Shape],
    read: RequestGenerator[Shape],
    is_done: Callable[[Shape], bool],
) -> RequestGenerator[Shape]:
    """Changes an intent, a task or an attachment under a condition that fails the second time.

    read: reads the current record
    is_done: returns whether a record has the state that this change produces

    After a lost response, a conflict may result from this client's own change; the record shows it.
    Raises the error of the response: ResourceConflictError if another change came first.
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
    """Deletes or releases something. After a lost response, a "not found" response counts as
    success.

    gone: the error of such a response
    path: the parameters of the operation's path
    """
    request = Request(
        operation=operation, path=path, fencing_token=fencing_token, if_match=if_match
    )
    yield from remove_by(request, gone)


def remove_by(
    request: Request, gone: tuple[type[MemorywallError], ...] = (MemoryNotFoundError,)
) -> RequestGenerator[None]:
    """The same by a request that is made already."""
    response, lost = yield from _until_answered(request)
    try:
        raise_for(response)
    except gone:
        if not lost:
            raise


def encode(content: Any) -> bytes:
    """Encodes a body as JSON. Raises ValidationError for values that JSON would change or does not
    have."""
    try:
        text = json.dumps(
            content,
            allow_nan=False,
            ensure_ascii=False,
            separators=(",", ":"),
            default=_plain,
        )
        return text.encode()
    except TypeError:
        path, found = next(_foreign(content, ""), ("", content))
        place = f"`{path}` is" if path else "this is"
        name = type(found).__name__
        article = "an" if name[0] in "aeiouAEIOU" else "a"
        raise ValidationError(f"{place} {article} {name}, which cannot be sent as JSON") from None
    except (ValueError, RecursionError) as error:
        raise ValidationError(
            "a NaN, an infinity, a lone surrogate or endless nesting cannot be sent as JSON"
        ) from error


def _plain(part_of_body: object) -> Any:
    if isinstance(part_of_body, msgspec.Struct):
        return msgspec.to_builtins(part_of_body)
    raise TypeError


def _foreign(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yields what JSON does not have, with its path."""
    if isinstance(node, Mapping):
        for name, one in node.items():
            yield from _foreign(one, f"{path}.{name}" if path else str(name))
    elif isinstance(node, list | tuple):
        for place, one in enumerate(node):
            yield from _foreign(one, f"{path}[{place}]")
    elif not (node is None or isinstance(node, str | int | float | msgspec.Struct)):
        yield path, node


def admitted(effect: Request | Open) -> Generator[Any, Any, Response]:
    """Returns the response of a request that no rate limit refuses, or the last refusal."""
    waited = 0.0
    for _ in range(MOST_PAUSES):
        response: Response = yield effect
        pause = retry_after(response)
        if pause is None or waited + pause > LONGEST_WAIT:
            return response
        waited += pause
        yield Pause(pause)
    return (yield effect)  # type: ignore[no-any-return]


def _until_answered(request: Request) -> RequestGenerator[tuple[Response, bool]]:
    """Returns the response, and whether an earlier attempt may have run without a response."""
    lost = False
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return (yield from admitted(request)), lost
        except MemoryTransportError as error:
            if attempt == ATTEMPTS:
                raise
            lost = lost or error.sent
    raise AssertionError("the last attempt returns or raises")


def _is_written(entry: MemoryEntry, version: int, fields: Mapping[str, Any]) -> bool:
    return entry.version == version and all(
        _same(name, sent, _field_of(entry, name)) for name, sent in fields.items()
    )


def _field_of(entry: MemoryEntry, name: str) -> Any:
    if name in _OF_PROVENANCE:
        return getattr(entry.provenance, _OF_PROVENANCE[name], None)
    return getattr(entry, name, None)


def _same(name: str, sent: Any, held: Any) -> bool:
    if name == "tags":
        return bool(tuple(dict.fromkeys(sent)) == held)
    if name == "scope":
        return bool(msgspec.convert(msgspec.to_builtins(sent), Scope) == held)
    if name == "expires_at":
        # An entry without an explicit expiry gets it from its ttl.
        return sent is None or bool(parse_instant(sent) == held)
    if name == "origin":
        # The server may have stored a lower one.
        return True
    if name == "derived_from":
        sources = msgspec.convert(sent, tuple[Source, ...])
        return bool(tuple(dict.fromkeys(sources)) == held)
    return is_same(sent, held)


def is_same(one: Any, other: Any) -> bool:
    """Returns whether two values are the same JSON, where 1, 1.0 and true differ."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
