"""Converts problem documents to the errors of `memorywall.records.errors`."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from memorywall.records import errors, feature_errors
from memorywall.records.entry import Entry
from memorywall.records.errors import (
    EntryExistsError,
    LeaseHeldError,
    MemoryCapacityError,
    MemoryConflictError,
    MemoryNotFoundError,
    MemorywallError,
    RateLimitedError,
    ResourceConflictError,
    UnavailableError,
)
from memorywall.records.feature_errors import (
    ContextBudgetError,
    DecompositionRequiredError,
    ExpressionError,
    RuleError,
    SchemaViolationError,
)
from memorywall.records.lease import Lease
from memorywall.sdk.effects import Response
from memorywall.sdk.models import MemoryEntry, from_wire, to_plain
from memorywall.wire.entries import EntryResponse, view
from memorywall.wire.keys import NO_KEY
from memorywall.wire.leases import held_lease_view

Shape = TypeVar("Shape")
_EXISTS = (
    "an entry with this namespace and key exists; `memory.put` replaces it, and `memory.set`"
    " changes it at the `version` that `memory.get` returned"
)
"""The server's text names the headers of HTTP."""
_NO_KEY = "set MEMORYWALL_API_KEY or pass `api_key`"
_RETRY_AFTER = 1.0
"""Seconds, for a refusal that tells none."""


class MemoryTransportError(MemorywallError):
    """The server could not be reached, or its response did not arrive or cannot be decoded.

    sent: whether the server may have received the request; a write may then have happened
    """

    code = "TRANSPORT_ERROR"
    title = "The server could not be reached"

    def __init__(self, detail: str = "", *, sent: bool = True) -> None:
        super().__init__(detail)
        self.sent = sent


class _Problem(msgspec.Struct):
    """The decoded members of a problem document; other members are ignored."""

    error: str = ""
    detail: str = ""
    message: str = ""
    index: int | None = None
    current_version: int | None = None
    current: Any = None
    current_count: int | None = None
    max_capacity: int | None = None
    existing_lease: Any = None
    retry_after: Any = None
    needed: int | None = None
    request_id: str | None = None
    schema: str | None = None
    schema_version: str | None = None
    pointer: str | None = None
    budget: int | None = None
    need: int | None = None
    line: int = 1
    column: int = 1
    rule: str = ""


_OWN_MEMBERS: tuple[tuple[type[MemorywallError], tuple[str, ...]], ...] = (
    (RuleError, ("rule",)),
    (ResourceConflictError, ("current_version",)),
    (ContextBudgetError, ("needed",)),
    (MemoryCapacityError, ("current_count", "max_capacity")),
    (DecompositionRequiredError, ("budget", "need")),
    (SchemaViolationError, ("schema", "schema_version", "pointer")),
    (ExpressionError, ("line", "column")),
)
"""The arguments of errors that their problem documents have as members."""

_CLASSES: list[type[MemorywallError]] = [
    kind
    for module in (
        errors,
        feature_errors,
    )
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, MemorywallError)
]
_BY_CODE_AND_STATUS = {(kind.code, kind.status): kind for kind in reversed(_CLASSES)}
_BY_CODE = {kind.code: kind for kind in reversed(_CLASSES)}
# A subclass follows its parent in the file. A status alone selects the parent.
_BY_STATUS: dict[int, type[MemorywallError]] = {
    502: UnavailableError,
    504: UnavailableError,
    **{kind.status: kind for kind in reversed(_CLASSES) if kind.status != 500},
    404: MemoryNotFoundError,
}


def raise_for(response: Response, *, conflict: type[MemorywallError] = MemoryConflictError) -> None:
    """Raises the error of a response; returns if the response is no error.

    conflict: the error for a version mismatch; entries and other records have different errors that
        the wire does not distinguish
    """
    if response.status < 300:
        return
    if response.error is not None:
        raise _translated(response.error, conflict)
    try:
        problem = msgspec.json.decode(response.body, type=_Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        problem = _Problem()
    # The codes of OpenWOP are those of memorywall in small letters.
    kind = _kind(problem.error.upper(), response.status, conflict)
    detail = problem.detail or problem.message
    if kind is MemorywallError and not detail:
        detail = f"the server answered with status {response.status}"
    raise _make(kind, detail, problem)


def decode(
    response: Response,
    shape: type[Shape],
    *,
    conflict: type[MemorywallError] = MemoryConflictError,
) -> Shape:
    """Returns a response decoded as `shape`. Raises the errors of `raise_for`, and
    MemoryTransportError."""
    if response.status >= 300:
        raise_for(response, conflict=conflict)
    if response.result is not None:
        return from_wire(response.result, shape)
    return decode_json(response.body, shape)


def decode_json(text: bytes, shape: type[Shape]) -> Shape:
    """Returns JSON text decoded as `shape`. Raises MemoryTransportError."""
    try:
        return msgspec.json.decode(text, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MemoryTransportError("the reply is not what a memorywall server sends") from error


def _kind(code: str, status: int, conflict: type[MemorywallError]) -> type[MemorywallError]:
    kind = (
        _BY_CODE_AND_STATUS.get((code, status))
        or _BY_CODE.get(code)
        or _BY_STATUS.get(status)
        or MemorywallError
    )
    return conflict if kind is MemoryConflictError else kind


def _translated(error: MemorywallError, conflict: type[MemorywallError]) -> MemorywallError:
    """Returns the error that results from this one's problem document."""
    members = error.fields()
    current, lease = members.get("current"), members.get("existing_lease")
    problem = _Problem(
        index=members.get("index"),
        current_version=members.get("current_version"),
        current=view(current) if isinstance(current, Entry) else current,
        current_count=members.get("current_count"),
        max_capacity=members.get("max_capacity"),
        existing_lease=to_plain(held_lease_view(lease)) if isinstance(lease, Lease) else lease,
        schema=members.get("schema"),
        schema_version=members.get("schema_version"),
        pointer=members.get("pointer"),
        budget=members.get("budget"),
        need=members.get("need"),
        line=members.get("line", 1),
        column=members.get("column", 1),
        needed=members.get("needed"),
        rule=members.get("rule", ""),
    )
    return _make(_kind(error.code, error.status, conflict), error.detail, problem)


def _make(kind: type[MemorywallError], detail: str, problem: _Problem) -> MemorywallError:
    members: dict[str, Any] = {"index": problem.index}
    if kind is EntryExistsError:
        detail = _EXISTS
    if detail == NO_KEY:
        detail = _NO_KEY
    if issubclass(kind, MemoryConflictError):
        members["current"] = _entry(problem.current)
        members["current_version"] = problem.current_version
    elif issubclass(kind, LeaseHeldError):
        lease = problem.existing_lease
        members["existing_lease"] = lease if isinstance(lease, dict) else None
    elif issubclass(kind, RateLimitedError):
        members["retry_after"] = _seconds(problem.retry_after)
    else:
        names = next((own for parent, own in _OWN_MEMBERS if issubclass(kind, parent)), ())
        members |= {name: getattr(problem, name) for name in names}
    error = kind(detail, **members)
    error.request_id = problem.request_id
    return error


def retry_after(response: Response) -> float | None:
    """Returns the seconds after which a rate limit admits the request; None if the response is not
    the refusal of a rate limit."""
    if response.status != RateLimitedError.status:
        return None
    try:
        raise_for(response)
    except RateLimitedError as error:
        return error.retry_after or _RETRY_AFTER
    except MemorywallError:
        return None
    return None


def _seconds(given: Any) -> float | None:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return float(given) if is_number and given >= 0 else None


def _entry(text: Any) -> MemoryEntry | None:
    if text is None:
        return None
    if isinstance(text, EntryResponse):
        return from_wire(text, MemoryEntry)
    try:
        return msgspec.convert(text, MemoryEntry)
    except msgspec.ValidationError:
        return None
