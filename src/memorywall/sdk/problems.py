"""From problem documents back to the errors of `memorywall.records.errors`."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from memorywall.records import errors
from memorywall.records.errors import (
    HeldError,
    MemoryCapacityError,
    MemoryConflictError,
    MemoryNotFoundError,
    MemorywallError,
    ResourceConflictError,
    UnavailableError,
)
from memorywall.sdk.shapes import MemoryEntry
from memorywall.sdk.steps import Response

Shape = TypeVar("Shape")


class MemoryTransportError(MemorywallError):
    """The server could not be reached, or its reply did not arrive or cannot be read.

    sent: whether the server may have received the request; if so a write may have happened
    """

    code = "TRANSPORT_ERROR"
    title = "The server could not be reached"

    def __init__(self, detail: str = "", *, sent: bool = True) -> None:
        super().__init__(detail)
        self.sent = sent


class _Problem(msgspec.Struct):
    """What is read of a problem document; other members are passed over."""

    error: str = ""
    detail: str = ""
    message: str = ""
    index: int | None = None
    current_version: int | None = None
    current: msgspec.Raw = msgspec.Raw()
    current_count: int | None = None
    max_capacity: int | None = None
    existing_lease: Any = None


_CLASSES: list[type[MemorywallError]] = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, MemorywallError)
]
_BY_CODE_AND_STATUS = {(kind.code, kind.status): kind for kind in reversed(_CLASSES)}
_BY_CODE = {kind.code: kind for kind in reversed(_CLASSES)}
# A subclass stands after its parent in the file; by status alone the parent is meant.
_BY_STATUS: dict[int, type[MemorywallError]] = {
    502: UnavailableError,
    504: UnavailableError,
    **{kind.status: kind for kind in reversed(_CLASSES) if kind.status != 500},
    404: MemoryNotFoundError,
}


def raise_for(response: Response, *, conflict: type[MemorywallError] = MemoryConflictError) -> None:
    """Raises the error a reply stands for; returns when it is none.

    conflict: what a version that is not the current one is; entries and everything else have
        their own errors for it, which the wire does not tell apart
    """
    if response.status < 300:
        return
    try:
        problem = msgspec.json.decode(response.body, type=_Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        problem = _Problem()
    kind = (
        _BY_CODE_AND_STATUS.get((problem.error, response.status))
        or _BY_CODE.get(problem.error)
        or _BY_STATUS.get(response.status)
        or MemorywallError
    )
    if kind is MemoryConflictError:
        kind = conflict
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
    """A reply's body as `shape`. Raises what `raise_for` does, and MemoryTransportError."""
    raise_for(response, conflict=conflict)
    return decode_json(response.body, shape)


def decode_json(text: bytes, shape: type[Shape]) -> Shape:
    """JSON text as `shape`. Raises MemoryTransportError."""
    try:
        return msgspec.json.decode(text, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MemoryTransportError("the reply is not what a memorywall server sends") from error


def _make(kind: type[MemorywallError], detail: str, problem: _Problem) -> MemorywallError:
    members: dict[str, Any] = {"index": problem.index}
    if issubclass(kind, MemoryConflictError):
        members["current"] = _entry(problem.current)
        members["current_version"] = problem.current_version
    elif issubclass(kind, ResourceConflictError):
        members["current_version"] = problem.current_version
    elif issubclass(kind, HeldError):
        lease = problem.existing_lease
        members["existing_lease"] = lease if isinstance(lease, dict) else None
    elif issubclass(kind, MemoryCapacityError):
        members["current_count"] = problem.current_count
        members["max_capacity"] = problem.max_capacity
    return kind(detail, **members)


def _entry(text: msgspec.Raw) -> MemoryEntry | None:
    try:
        return msgspec.json.decode(text, type=MemoryEntry)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
