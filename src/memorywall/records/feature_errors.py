"""The errors of single features: schemas, conditions, sessions, contexts, working memory, and
damaged files. `errors.py` shows the tree of all errors."""

from __future__ import annotations

from typing import Any, ClassVar

from memorywall.records.errors import (
    ConfigurationError,
    MemorywallError,
    RequestError,
    ResourceConflictError,
    ValidationError,
)


class SchemaVersionError(MemorywallError):
    """The entry does not fit the schemas of its namespace at the major version of the request."""

    status = 406
    code = "SCHEMA_VERSION_MISMATCH"
    title = "The entry does not fit this version of its schemas"


class SchemaViolationError(ValidationError):
    """The value does not fit a schema of its namespace.

    schema, schema_version: the name and the version of the schema
    pointer: a JSON Pointer into the value, "" for the whole value
    """

    code = "SCHEMA_VIOLATION"
    title = "The value does not fit a schema of its namespace"

    def __init__(
        self,
        detail: str = "",
        *,
        schema: str | None = None,
        schema_version: str | None = None,
        pointer: str | None = None,
        index: int | None = None,
    ) -> None:
        super().__init__(detail, index=index)
        self.schema = schema
        self.schema_version = schema_version
        self.pointer = pointer

    def fields(self) -> dict[str, Any]:
        members = super().fields()
        for name in ("schema", "schema_version", "pointer"):
            if getattr(self, name) is not None:
                members[name] = getattr(self, name)
        return members


class BreakingSchemaError(ValidationError):
    """A new version of a schema may refuse values that the version before it accepted."""

    code = "BREAKING_SCHEMA_CHANGE"
    title = "A breaking change of a schema needs a new major version"


class RuleError(ResourceConflictError):
    """A rule of long-term memory refuses the entry; nothing was stored.

    rule: the name of the rule
    """

    code = "REFUSED_BY_RULE"
    title = "A rule of long-term memory refuses the entry"

    def __init__(self, detail: str = "", *, rule: str = "", index: int | None = None) -> None:
        super().__init__(detail, index=index)
        self.rule = rule

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "rule": self.rule}


class ExpressionError(RequestError):
    """A condition is not valid in the language of conditions; nothing was read.

    line, column: the position of the problem, from 1; the column counts characters
    """

    code = "INVALID_EXPRESSION"
    title = "Invalid condition"

    def __init__(
        self, detail: str = "", *, line: int = 1, column: int = 1, index: int | None = None
    ) -> None:
        super().__init__(detail, index=index)
        self.line = line
        self.column = column

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "line": self.line, "column": self.column}


class ScanLimitError(RequestError):
    """The condition reads too many entries or compares too much; the message says what to do."""

    code = "SCAN_LIMIT"
    title = "The condition reads too much"


class SessionClosedError(ResourceConflictError):
    """The session is closed, archived or has ended; it accepts no more turns."""

    code = "SESSION_CLOSED"
    title = "The session is closed"


class SessionQuarantinedError(ResourceConflictError):
    """The partition of the session contains entries of others; it can only be exported and
    deleted."""

    code = "SESSION_QUARANTINED"
    title = "The session is quarantined"


class SubjectForgottenError(MemorywallError):
    """A person was forgotten after the instant at which what the request stores was said; nothing
    was stored."""

    status: ClassVar[int] = 409
    code = "SUBJECT_FORGOTTEN"
    title = "The person was forgotten after this was said"


class ContextBudgetError(MemorywallError):
    """The window or a budget is smaller than what the context must contain.

    needed: the least number of tokens that is enough; None if it is not known
    """

    status: ClassVar[int] = 409
    code = "CONTEXT_BUDGET"
    title = "The budget is too small"

    def __init__(
        self, detail: str = "", *, index: int | None = None, needed: int | None = None
    ) -> None:
        super().__init__(detail, index=index)
        self.needed = needed

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "needed": self.needed}


class DecompositionRequiredError(MemorywallError):
    """A step needs more working memory than its budget; divide it into smaller steps (memory wall
    11.2.1).

    budget: tokens
    need: the tokens that remain after everything was pruned, compressed and externalized
    """

    status = 409
    code = "DECOMPOSITION_REQUIRED"
    title = "The step needs more working memory than its budget"

    def __init__(
        self,
        detail: str = "",
        *,
        budget: int | None = None,
        need: int | None = None,
        index: int | None = None,
    ) -> None:
        super().__init__(detail, index=index)
        self.budget = budget
        self.need = need

    def fields(self) -> dict[str, Any]:
        members = super().fields()
        if self.budget is not None:
            members["budget"] = self.budget
        if self.need is not None:
            members["need"] = self.need
        return members


class StoreDamagedError(ConfigurationError):
    """Rows of a database cannot be read, or are not rows that memorywall writes."""

    code = "STORE_DAMAGED"
    title = "The database is damaged"


class BackupDamagedError(ConfigurationError):
    """The checksums of a backup show that bytes are changed, missing or added."""

    code = "BACKUP_DAMAGED"
    title = "The backup is damaged"


class LedgerDamagedError(ConfigurationError):
    """Lines of a suppression ledger are changed or missing, or it belongs to another store."""

    code = "LEDGER_DAMAGED"
    title = "The suppression ledger is damaged"


class OpenWopError(MemorywallError):
    """A refusal of OpenWOP with details of its own; `details` contain no content of entries."""

    def __init__(
        self, detail: str = "", *, index: int | None = None, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(detail, index=index)
        self.details = details or {}


class InvalidSequenceError(OpenWopError):
    """The log of the run has no event with this sequence."""

    status = 422
    code = "INVALID_FROM_SEQ"
    title = "The run has no such event"


class ReplayUnavailableError(OpenWopError):
    """What the run has read is not there any more, so it cannot be replayed."""

    status = 422
    code = "REPLAY_MEMORY_SNAPSHOT_UNAVAILABLE"
    title = "The memory snapshot of the run is not available"


class CapabilityError(OpenWopError):
    """The family of OpenWOP that serves this is switched off."""

    status = 501
    code = "CAPABILITY_NOT_PROVIDED"
    title = "This capability is not offered"


class WorkspaceConflictError(OpenWopError):
    """If-Match is not the current version of the file."""

    status = 409
    code = "WORKSPACE_CONFLICT"
    title = "The file has changed"


class WorkspaceSizeError(OpenWopError):
    """The content of the file is too large."""

    status = 413
    code = "WORKSPACE_TOO_LARGE"
    title = "The file is too large"


class SecretsUnavailableError(OpenWopError):
    """The secrets that the run has resolved are not registered in this process, so that what it
    writes could not be redacted."""

    status = 409
    code = "SECRETS_NOT_REGISTERED"
    title = "The secrets of the run are not registered here"


class MediaTypeError(OpenWopError):
    """The body is not sent as JSON."""

    status = 415
    code = "UNSUPPORTED_MEDIA_TYPE"
    title = "Send the body as application/json"
