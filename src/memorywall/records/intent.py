"""An intent, what work is for, and who may take part in it (RFC-0001 and RFC-0011)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from memorywall.records.coordinator import Guardrails
from memorywall.records.namespace import Access


class IntentStatus(StrEnum):
    """The life of an intent."""

    DRAFT = "draft"
    ACTIVE = "active"
    BLOCKED = "blocked"
    SUSPENDED = "suspended_awaiting_input"
    COMPLETED = "completed"
    ABANDONED = "abandoned"


class DefaultPolicy(StrEnum):
    """What holds for who is not named: nothing, or to take part."""

    CLOSED = "closed"
    OPEN = "open"


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A goal, its free-form state, and the guardrails its last coordinator set."""

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


class IntentGrant(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an intent's access list.

    access: read, write or admin
    expires_at: from when it does not count any more, None for never
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

    def counts(self, now: str) -> bool:
        """Whether it still counts at `now`."""
        return self.expires_at is None or now < self.expires_at
