"""Every error memorywall raises, in one tree.

The errors of single features are in `feature_errors.py`.

    MemorywallError
      UndecidedOperationError      500  INTERNAL_ERROR         a defect of the server
      RequestError                 400  VALIDATION_ERROR       the request cannot be read
        ExpressionError            400  INVALID_EXPRESSION     a condition cannot be read
        ScanLimitError             400  SCAN_LIMIT             a condition reads too much
      AuthenticationError          401  UNAUTHENTICATED
      MemoryAccessError            403  ACCESS_DENIED
      MemoryNotFoundError          404  ENTRY_NOT_FOUND
        ResourceNotFoundError      404  NOT_FOUND              no such intent, tier, version ...
      MemoryConflictError          409  VERSION_MISMATCH
        EntryExistsError           409  ENTRY_EXISTS
      ResourceConflictError        409  VERSION_MISMATCH       an intent or task has changed
        TransitionError            409  INVALID_TRANSITION
        RuleError                  409  REFUSED_BY_RULE        of long-term memory
        SessionClosedError         409  SESSION_CLOSED
        SessionQuarantinedError    409  SESSION_QUARANTINED
      SubjectForgottenError        409  SUBJECT_FORGOTTEN      since it was said
      ContextBudgetError           409  CONTEXT_BUDGET         the window is too small
      LeaseHeldError               409  LEASE_HELD             another client has the lease
      FencedError                  409  FENCED                 the token is missing or stale
      SchemaVersionError           406  SCHEMA_VERSION_MISMATCH  for a reader of another version
      ReplyErasedError             410  REPLY_ERASED
      CursorLostError              410  CURSOR_LOST            the log does not have the position
      ValueTooLargeError           413  VALUE_TOO_LARGE
      ValidationError              422  VALIDATION_ERROR       a field is invalid
        SchemaViolationError       422  SCHEMA_VIOLATION       of a schema of the namespace
        BreakingSchemaError        422  BREAKING_SCHEMA_CHANGE
      IdempotencyConflictError     422  IDEMPOTENCY_KEY_REUSED
      PreconditionError            428  PRECONDITION_REQUIRED
      MemoryCapacityError          429  CAPACITY_EXCEEDED
      RateLimitedError             429  RATE_LIMITED           too many requests; retry later
      UnavailableError             503  UNAVAILABLE
        KeyUnavailableError        503  KEY_UNAVAILABLE
        EntryNotIndexedError       503  ENTRY_NOT_INDEXED
      StorageFullError             507  STORAGE_FULL
      ConfigurationError                                       invalid configuration
        StoreLockedError                                       another server uses the store
        StoreDamagedError                                      rows of a database cannot be read
        BackupDamagedError                                     a backup is not as it was written
        LedgerDamagedError                                     a suppression ledger is not

The server renders errors as problem documents, and the SDK raises them again: server and client
share the classes of RFC-0015 ("Error Handling"). A message says what failed and what to do, and
never repeats a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class MemorywallError(Exception):
    """The root of the tree.

    detail: a message for the caller; the title of the error by default
    index: the position of the failed element in a batch, from 0; None without a batch
    request_id: the id of the request that a server refused; None outside the SDK
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "INTERNAL_ERROR"
    title: ClassVar[str] = "Internal error"
    request_id: str | None = None

    def __init__(self, detail: str = "", *, index: int | None = None) -> None:
        self.detail = detail or self.title
        self.index = index
        super().__init__(self.detail)

    def fields(self) -> dict[str, Any]:
        """The members that this error adds to its problem document."""
        return {} if self.index is None else {"index": self.index}


class UndecidedOperationError(MemorywallError):
    """An operation took no access decision, and nothing was committed; a defect of the server."""

    title = "No access decision was taken"


class RequestError(MemorywallError):
    """The request is malformed: invalid JSON, an unknown query parameter."""

    status = 400
    code = "VALIDATION_ERROR"
    title = "Malformed request"


class AuthenticationError(MemorywallError):
    """The API key is missing, unknown or revoked; the response does not say which."""

    status = 401
    code = "UNAUTHENTICATED"
    title = "A valid API key is required"


class MemoryAccessError(MemorywallError):
    """The principal lacks access (RFC-0015 sections 6.4 and 9.1)."""

    status = 403
    code = "ACCESS_DENIED"
    title = "Access denied"


class MemoryNotFoundError(MemorywallError):
    """The entry does not exist or belongs to another tenant; the response does not say which.

    hides_refusal: whether the entry exists and access to it is refused; for counts of refusals, and
        never shown
    """

    status = 404
    code = "ENTRY_NOT_FOUND"
    title = "Memory entry not found"
    hides_refusal = False


class ResourceNotFoundError(MemoryNotFoundError):
    """The intent, task, claim, attachment, namespace, tier, kind or version of an entry does not
    exist or is of another tenant."""

    code = "NOT_FOUND"
    title = "Resource not found"


class MemoryConflictError(MemorywallError):
    """If-Match is not the current version of the entry (RFC-0015 section 3.2).

    current: the current entry in wire form, None if the caller may not read it
    current_version: the current version, None if the caller may not read the entry
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
        """The version to send as If-Match, None if the caller may not read the entry."""
        return self._current_version

    @property
    def current_value(self) -> Any:
        """The current value, None if the caller may not read the entry."""
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
    """An entry with this name exists already (RFC-0015 section 1.2)."""

    code = "ENTRY_EXISTS"
    title = "An entry with this key exists"


class ResourceConflictError(MemorywallError):
    """If-Match is not the current version of the intent, task or attachment (RFC-0001)."""

    status = 409
    code = "VERSION_MISMATCH"
    title = "The resource has changed"

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
    """The status of the task or intent does not allow this transition (RFC-0012)."""

    code = "INVALID_TRANSITION"
    title = "Invalid status transition"


class LeaseHeldError(MemorywallError):
    """Another client holds the claim, the lease, the task or the coordination of the intent
    (RFC-0003).

    existing_lease: the live lease in wire form, None if the caller may not see it
    """

    status = 409
    code = "LEASE_HELD"
    title = "The lease is held by another client"

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
    """The fencing token is missing or does not belong to a live lease."""

    status = 409
    code = "FENCED"
    title = "The fencing token is missing or stale"


class ReplyErasedError(MemorywallError):
    """The stored response for this Idempotency-Key was erased with one of its entries."""

    status = 410
    code = "REPLY_ERASED"
    title = "The stored response was erased"


class CursorLostError(MemorywallError):
    """The log does not contain the event that a follower names as its last one."""

    status = 410
    code = "CURSOR_LOST"
    title = "The log does not contain this position"


class ValueTooLargeError(MemorywallError):
    """The value exceeds 64 KB, or the body exceeds its limit (RFC-0015 section 1.3)."""

    status = 413
    code = "VALUE_TOO_LARGE"
    title = "The value is too large"


class ValidationError(MemorywallError):
    """A field of the request is invalid."""

    status = 422
    code = "VALIDATION_ERROR"
    title = "A field is invalid"


class IdempotencyConflictError(MemorywallError):
    """The Idempotency-Key was used for a different request."""

    status = 422
    code = "IDEMPOTENCY_KEY_REUSED"
    title = "The Idempotency-Key was used for another request"


class PreconditionError(MemorywallError):
    """If-Match is missing or is not a version number (RFC-0015 section 3.2)."""

    status = 428
    code = "PRECONDITION_REQUIRED"
    title = "If-Match is required"


class MemoryCapacityError(MemorywallError):
    """A capacity is reached, and no entry may be evicted (RFC-0015 section 9.4).

    current_count: the present number of entries
    max_capacity: the capacity in entries
    """

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


class RateLimitedError(MemorywallError):
    """The principal or the tenant sends too many requests. The request had no effect.

    retry_after: seconds until the same request is admitted
    """

    status = 429
    code = "RATE_LIMITED"
    title = "Too many requests"

    def __init__(
        self, detail: str = "", *, retry_after: float | None = None, index: int | None = None
    ) -> None:
        super().__init__(detail, index=index)
        self.retry_after = retry_after

    def fields(self) -> dict[str, Any]:
        members = super().fields()
        if self.retry_after is not None:
            members["retry_after"] = self.retry_after
        return members


class UnavailableError(MemorywallError):
    """The server cannot process the request now; the same request may succeed later."""

    status = 503
    code = "UNAVAILABLE"
    title = "Temporarily unavailable"


class KeyUnavailableError(UnavailableError):
    """A sealed value cannot be opened: its data key is missing, or the row was altered."""

    code = "KEY_UNAVAILABLE"
    title = "The encryption key is unavailable"


class EntryNotIndexedError(UnavailableError):
    """The write with `wait_for=indexed` is stored, but its vectors were not computed in time.

    backlog: the number of changes of the tenant that are not embedded yet
    """

    code = "ENTRY_NOT_INDEXED"
    title = "The entry is stored and not yet found by meaning"

    def __init__(self, detail: str = "", *, backlog: int | None = None) -> None:
        super().__init__(detail)
        self.backlog = backlog

    def fields(self) -> dict[str, Any]:
        """The members that this error adds to its problem document."""
        return {**super().fields(), "backlog": self.backlog}


class StorageFullError(MemorywallError):
    """The disk is full. The request stored nothing; reads work."""

    status = 507
    code = "STORAGE_FULL"
    title = "The disk is full"


class ConfigurationError(MemorywallError):
    """The server or a command cannot start with this configuration."""

    code = "CONFIGURATION_ERROR"
    title = "Invalid configuration"


class StoreLockedError(ConfigurationError):
    """Another server uses the database."""

    code = "STORE_LOCKED"
    title = "The database is in use"
