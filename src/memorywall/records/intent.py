"""Intents and their access lists (RFC-0001 and RFC-0011)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from memorywall.records.coordinator import Guardrails
from memorywall.records.namespace import Access
from memorywall.records.sealed import SealedPart


class IntentStatus(StrEnum):
    """The states of an intent."""

    DRAFT = "draft"
    ACTIVE = "active"
    BLOCKED = "blocked"
    SUSPENDED = "suspended_awaiting_input"
    COMPLETED = "completed"
    ABANDONED = "abandoned"


class DefaultPolicy(StrEnum):
    """The access of principals without a grant: none, or `write`."""

    CLOSED = "closed"
    OPEN = "open"


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A goal, its free-form state, and the guardrails of its last coordinator.

    sealed: the state, sealed, until it is opened
    """

    tenant: str
    id: str
    title: str
    description: str = ""
    status: IntentStatus = IntentStatus.ACTIVE
    state: dict[str, Any] = {}
    constraints: dict[str, Any] = {}
    parent_intent_id: str | None = None
    depends_on: tuple[str, ...] = ()
    default_policy: DefaultPolicy = DefaultPolicy.CLOSED
    guardrails: Guardrails | None = None
    version: int = 1
    created_by: str
    created_at: str
    updated_at: str
    sealed: SealedPart | None = None


class IntentGrant(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of an intent's access list.

    access: read, write or admin
    expires_at: the instant of expiry in the stored form, None for no expiry
    """

    tenant: str
    intent_id: str
    id: str
    principal_id: str
    principal_type: str = "agent"
    access: Access
    granted_by: str
    granted_at: str
    expires_at: str | None = None
    reason: str | None = None

    def is_active(self, now: str) -> bool:
        """Whether the grant has not expired at `now`, an instant in the stored form."""
        return self.expires_at is None or now < self.expires_at
