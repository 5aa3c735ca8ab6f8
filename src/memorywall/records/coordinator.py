"""Coordinators of intents, and the guardrails for agents that work on an intent (RFC-0013)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0, le=1_000_000)]


class Guardrails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The guardrails of memory in RFC-0015 section 6.6. A namespace may end in `*`.

    max_working_memory_per_task, max_episodic_memory_per_agent: entries, None for no limit
    allowed_semantic_namespaces: None for all
    others: the guardrails of RFC-0013 that do not concern memory; stored and not enforced
    """

    max_working_memory_per_task: Count | None = None
    max_episodic_memory_per_agent: Count | None = None
    allowed_semantic_namespaces: tuple[str, ...] | None = None
    denied_semantic_namespaces: tuple[str, ...] | None = None
    memory_archive_required: bool = True
    others: dict[str, Any] = {}

    def admits(self, namespace: str) -> bool:
        """Whether agents may use this shared namespace; a denial wins."""
        if any(_matches(namespace, one) for one in self.denied_semantic_namespaces or ()):
            return False
        allowed = self.allowed_semantic_namespaces
        return allowed is None or any(_matches(namespace, one) for one in allowed)


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


class Coordinator(msgspec.Struct, frozen=True, kw_only=True):
    """A coordinator of an intent, which has the lease with the fencing token `token`.

    ends_at: the instant at which its lease ends in spite of heartbeats, None for none
    resigned_at: the instant of its resignation, None before
    is_accepted: whether the agent has acted as coordinator; any principal can appoint any agent
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
