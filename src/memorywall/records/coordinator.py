"""Who coordinates an intent, and the bounds set on those who work for it (RFC-0013)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0, le=1_000_000)]


class Guardrails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The memory-related bounds of RFC-0015 section 6.6. A namespace may end in `*`.

    others: the bounds of RFC-0013 that do not concern memory; kept and given back, not enforced
    """

    max_working_memory_per_task: Count | None = None
    max_episodic_memory_per_agent: Count | None = None
    allowed_semantic_namespaces: tuple[str, ...] | None = None
    denied_semantic_namespaces: tuple[str, ...] | None = None
    memory_archive_required: bool = True
    others: dict[str, Any] = {}

    def admits(self, namespace: str) -> bool:
        """Whether shared knowledge of this namespace may be used; a denial wins."""
        if any(_matches(namespace, one) for one in self.denied_semantic_namespaces or ()):
            return False
        allowed = self.allowed_semantic_namespaces
        return allowed is None or any(_matches(namespace, one) for one in allowed)


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


class Coordinator(msgspec.Struct, frozen=True, kw_only=True):
    """A coordinator of an intent. Its authority is the lease with the fencing token `token`.

    ends_at: the instant its authority ends however often it gives a sign of life, None for none
    resigned_at: when it gave its authority back
    is_accepted: whether it has acted as coordinator itself: being appointed is nobody's own doing
    """

    tenant: str
    id: str
    intent_id: str
    agent_id: str
    token: int
    role: str = "coordinator"
    coordinator_type: str = "llm"
    supervisor_id: str | None = None
    guardrails: Guardrails | None = None
    heartbeat_interval_seconds: int = 60
    last_heartbeat: str
    granted_at: str
    expires_at: str
    ends_at: str | None = None
    resigned_at: str | None = None
    is_accepted: bool = False
    metadata: dict[str, Any] = {}
    version: int = 1
