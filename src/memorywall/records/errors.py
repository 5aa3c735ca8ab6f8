"""Every error memorywall raises, in one tree.

    MemorywallError
      RequestError                 400  VALIDATION_ERROR       the request cannot be read
      AuthenticationError          401  UNAUTHENTICATED
      MemoryAccessError            403  ACCESS_DENIED
      MemoryNotFoundError          404  ENTRY_NOT_FOUND
        ResourceNotFoundError      404  NOT_FOUND              no such intent, task, claim ...
      MemoryConflictError          409  VERSION_MISMATCH
        EntryExistsError           409  ENTRY_EXISTS
      ResourceConflictError        409  VERSION_MISMATCH       an intent or task has changed
        TransitionError            409  INVALID_TRANSITION
      HeldError                    409  LEASE_HELD             somebody else holds it
      FencedError                  409  FENCED                 what was held is held no more
      ReplyErasedError             410  REPLY_ERASED
      ValueTooLargeError           413  VALUE_TOO_LARGE
      ValidationError              422  VALIDATION_ERROR       a field in it is not acceptable
      IdempotencyConflictError     422  IDEMPOTENCY_KEY_REUSED
      PreconditionError            428  PRECONDITION_REQUIRED
      MemoryCapacityError          429  CAPACITY_EXCEEDED
      UnavailableError             503  UNAVAILABLE
        KeyUnavailableError        503  KEY_UNAVAILABLE
      StorageFullError             507  STORAGE_FULL
      ConfigurationError                                       the server cannot start so
        StoreLockedError                                       another server holds the file

The server renders them as problem documents, the SDK raises them again on the other side: the
classes of RFC-0015 ("Error Handling") are the same objects at both ends. A message tells what to
do next and never repeats a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class MemorywallError(Exception):
    """The root. `detail` is safe to show to the caller; `index` names the failing batch element."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "INTERNAL_ERROR"
    title: ClassVar[str] = "Internal error"

    def __init__(self, detail: str = "", *, index: int | None = None) -> None:
        self.detail = detail or self.title
        self.index = index
        super().__init__(self.detail)

    def fields(self) -> dict[str, Any]:
        """The members this error adds to its problem document."""
        return {} if self.index is None else {"index": self.index}


class RequestError(MemorywallError):
    """The request cannot be read: malformed JSON, an unknown query parameter."""

    status = 400
    code = "VALIDATION_ERROR"
    title = "The request cannot be read"


class AuthenticationError(MemorywallError):
    """No key, or one that is unknown or revoked; the reply does not say which."""

    status = 401
    code = "UNAUTHENTICATED"
    title = "A valid API key is required"


class MemoryAccessError(MemorywallError):
    """The principal may not do this (RFC-0015 sections 6.4 and 9.1)."""

    status = 403
    code = "ACCESS_DENIED"
    title = "Access denied"


class MemoryNotFoundError(MemorywallError):
    """No such entry, or one of another tenant; the two are not told apart."""

    status = 404
    code = "ENTRY_NOT_FOUND"
    title = "No such memory entry"


class ResourceNotFoundError(MemoryNotFoundError):
    """No such intent, task, claim, coordinator or attachment, or one of another tenant."""

    code = "NOT_FOUND"
    title = "There is no such thing"


class MemoryConflictError(MemorywallError):
    """The version sent is not the current one (RFC-0015 section 3.2).

    `current` is the entry as the server has it, in wire form, when the caller may read it.
    """

    status = 409
    code = "VERSION_MISMATCH"
    title = "The entry has changed"

    def __init__(
        self,
        detail: str = "",
        *,
        current: Any = None,
        current_version: int | None = None,
        index: int | None = None,
    ) -> None:
        super().__init__(detail, index=index)
        self.current = current
        self._current_version = current_version

    @property
    def current_version(self) -> int | None:
        """The version to send as If-Match, or None when the caller may not know it."""
        return self._current_version

    @property
    def current_value(self) -> Any:
        """The value the server holds now, or None when the caller may not read it."""
        if isinstance(self.current, Mapping):
            return self.current.get("value")
        return None if self.current is None else self.current.value

    def fields(self) -> dict[str, Any]:
        members = super().fields()
        if self.current_version is not None:
            members["current_version"] = self.current_version
        if self.current is not None:
            members["current"] = self.current
        return members


class EntryExistsError(MemoryConflictError):
    """A create met an entry that already has its key (RFC-0015 section 1.2)."""

    code = "ENTRY_EXISTS"
    title = "An entry with this key exists"


class ResourceConflictError(MemorywallError):
    """The version sent is not that of the intent, task or attachment (RFC-0001)."""

    status = 409
    code = "VERSION_MISMATCH"
    title = "It has changed"

    def __init__(
        self, detail: str = "", *, current_version: int | None = None, index: int | None = None
    ) -> None:
        super().__init__(detail, index=index)
        self.current_version = current_version

    def fields(self) -> dict[str, Any]:
        members = super().fields()
        if self.current_version is not None:
            members["current_version"] = self.current_version
        return members


class TransitionError(ResourceConflictError):
    """A task or intent cannot go from its present state to that one (RFC-0012)."""

    code = "INVALID_TRANSITION"
    title = "That state cannot follow the present one"


class HeldError(MemorywallError):
    """Somebody holds it: a claim, a lease, a task, the coordination of an intent (RFC-0003).

    `existing_lease` is what is held, in wire form, where the caller may see it.
    """

    status = 409
    code = "LEASE_HELD"
    title = "It is held"

    def __init__(
        self, detail: str = "", *, existing_lease: Any = None, index: int | None = None
    ) -> None:
        super().__init__(detail, index=index)
        self.existing_lease = existing_lease

    def fields(self) -> dict[str, Any]:
        members = super().fields()
        if self.existing_lease is not None:
            members["existing_lease"] = self.existing_lease
        return members


class FencedError(MemorywallError):
    """The fencing token is missing, or is not the one of a hold that still lasts."""

    status = 409
    code = "FENCED"
    title = "The write is fenced off"


class ReplyErasedError(MemorywallError):
    """The first reply to this Idempotency-Key held an entry that has been deleted since."""

    status = 410
    code = "REPLY_ERASED"
    title = "The reply was erased with its entry"


class ValueTooLargeError(MemorywallError):
    """A value over 64 KB, or a body over its limit (RFC-0015 section 1.3)."""

    status = 413
    code = "VALUE_TOO_LARGE"
    title = "The value is too large"


class ValidationError(MemorywallError):
    """The request can be read but a field in it is not acceptable."""

    status = 422
    code = "VALIDATION_ERROR"
    title = "A field is not acceptable"


class IdempotencyConflictError(MemorywallError):
    """An Idempotency-Key came again with a different request."""

    status = 422
    code = "IDEMPOTENCY_KEY_REUSED"
    title = "The Idempotency-Key was used for another request"


class PreconditionError(MemorywallError):
    """If-Match is missing or is not a version number (RFC-0015 section 3.2)."""

    status = 428
    code = "PRECONDITION_REQUIRED"
    title = "If-Match is required"


class MemoryCapacityError(MemorywallError):
    """A capacity is reached and nothing may be evicted (RFC-0015 section 9.4)."""

    status = 429
    code = "CAPACITY_EXCEEDED"
    title = "Memory capacity exceeded"

    def __init__(
        self,
        detail: str = "",
        *,
        current_count: int | None = None,
        max_capacity: int | None = None,
        index: int | None = None,
    ) -> None:
        super().__init__(detail, index=index)
        self.current_count = current_count
        self.max_capacity = max_capacity

    def fields(self) -> dict[str, Any]:
        members = super().fields()
        if self.current_count is not None:
            members["current_count"] = self.current_count
        if self.max_capacity is not None:
            members["max_capacity"] = self.max_capacity
        return members


class UnavailableError(MemorywallError):
    """The server cannot take this now; the same request may succeed later."""

    status = 503
    code = "UNAVAILABLE"
    title = "Temporarily unavailable"


class KeyUnavailableError(UnavailableError):
    """A sealed value cannot be opened: its key is missing or does not fit."""

    code = "KEY_UNAVAILABLE"
    title = "The encryption key is unavailable"


class StorageFullError(MemorywallError):
    """The disk is full; nothing of the request was stored, reads go on."""

    status = 507
    code = "STORAGE_FULL"
    title = "The disk is full"


class ConfigurationError(MemorywallError):
    """The server or a command cannot start with these settings."""

    code = "CONFIGURATION_ERROR"
    title = "The settings do not work"


class StoreLockedError(ConfigurationError):
    """Another server holds this database."""

    code = "STORE_LOCKED"
    title = "The database is in use"
