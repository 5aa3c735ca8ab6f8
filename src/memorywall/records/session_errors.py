"""The errors of sessions."""

from __future__ import annotations

from memorywall.records.errors import ResourceConflictError


class SessionClosedError(ResourceConflictError):
    """The session is closed, archived or has ended; it accepts no more turns."""

    code = "SESSION_CLOSED"
    title = "The session is closed"


class SessionQuarantinedError(ResourceConflictError):
    """The partition of the session contains entries of others; it can only be exported and
    deleted."""

    code = "SESSION_QUARANTINED"
    title = "The session is quarantined"
