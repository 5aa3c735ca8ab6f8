"""What an operation is: one method on one path, and everything that is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from memorywall.records.errors import (
    AuthenticationError,
    FencedError,
    IdempotencyConflictError,
    KeyUnavailableError,
    MemoryAccessError,
    MemorywallError,
    PreconditionError,
    ReplyErasedError,
    RequestError,
    StorageFullError,
    UnavailableError,
    ValidationError,
    ValueTooLargeError,
)
from memorywall.records.principal import Permission

Media = Literal["json", "lines", "events", "bytes", "text"]
_ALWAYS = (RequestError, UnavailableError, KeyUnavailableError)
_AUTHENTICATED = (AuthenticationError, MemoryAccessError, ValidationError)
_WRITES = (ValidationError, ValueTooLargeError)
_CHANGING = ("POST", "PUT", "PATCH", "DELETE")
_REPEATABLE = (IdempotencyConflictError, ReplyErasedError)


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One method on one path.

    name: names its handler, its OpenAPI operationId and its client method
    permission: what the key must have besides the tier's rule, where one is asked for
    public: whether it is answered without a key
    content: what its body is, where it has one
    empty: whether it answers 204 in place of the reply where there is nothing to give
    media: also the first thing offered; "events" can be had as JSON too
    if_match: whether the version in If-Match is required, may be sent, or means nothing here
    reads: whether it changes nothing, though its method is one of those that do: what it asks does
        not fit into a query string
    repeatable: whether an Idempotency-Key is heeded
    source: where the contract comes from
    """

    name: str
    method: str
    path: str
    group: str
    summary: str
    source: str
    permission: Permission | None = None
    public: bool = False
    query: type | None = None
    body: type | None = None
    content: Literal["json", "bytes"] = "json"
    reply: Any = None
    status: int = 200
    empty: bool = False
    media: Media = "json"
    if_match: Literal["required", "optional", "none"] = "none"
    reads: bool = False
    repeatable: bool = False
    raises: tuple[type[MemorywallError], ...] = ()

    @property
    def changes(self) -> bool:
        """Whether it may change something."""
        return self.method in _CHANGING and not self.reads

    @property
    def fenced(self) -> bool:
        """Whether a Fencing-Token is heeded: in every request that may change something."""
        return not self.public and self.changes

    @property
    def errors(self) -> tuple[type[MemorywallError], ...]:
        """Every error it can answer with."""
        every: list[type[MemorywallError]] = [*_ALWAYS, *self.raises]
        if not self.public:
            every.extend(_AUTHENTICATED)
        if self.changes:
            every.append(StorageFullError)
        if self.body is not None:
            every.extend(_WRITES)
        if self.repeatable:
            every.extend(_REPEATABLE)
        if self.if_match != "none":
            every.append(PreconditionError)
        if self.fenced:
            every.append(FencedError)
        return tuple(dict.fromkeys(every))
