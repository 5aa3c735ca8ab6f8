"""The table of tiers and their properties (memory wall 11.1.3)."""

from __future__ import annotations

from memorywall.records.tier import (
    Admission,
    CapacityScope,
    Durability,
    Eviction,
    Isolation,
    Lifetime,
    ReadAccess,
    Tier,
    TierSpec,
)
from memorywall.settings import EPISODIC_CAPACITY, WORKING_CAPACITY_PER_TASK

SHARED_CAPACITY = 1_000

WORKING = TierSpec(
    tier=Tier.WORKING,
    capacity=WORKING_CAPACITY_PER_TASK,
    capacity_scope=CapacityScope.TASK,
    admission=Admission.ASSIGNEE,
    access=ReadAccess.WORK,
    durability=Durability(lifetime=Lifetime.TASK),
    isolation=Isolation.AGENT,
)
"""Mutable state of work in progress, bound to a task (RFC-0015 section 2.1)."""

SESSION = TierSpec(
    tier=Tier.SESSION,
    capacity_scope=CapacityScope.AGENT,
    admission=Admission.OWNER,
    access=ReadAccess.OWNER,
    durability=Durability(lifetime=Lifetime.SESSION),
    isolation=Isolation.AGENT,
)
"""Turns and checkpoints of one conversation (memory wall, 11.3)."""

EPISODIC = TierSpec(
    tier=Tier.EPISODIC,
    capacity=EPISODIC_CAPACITY,
    capacity_scope=CapacityScope.AGENT,
    admission=Admission.OWNER,
    eviction=Eviction.LEAST_RECENTLY_USED,
    access=ReadAccess.COORDINATOR,
    durability=Durability(lifetime=Lifetime.PERSISTENT),
    isolation=Isolation.AGENT,
)
"""The experience of an agent (RFC-0015 section 2.2)."""

SEMANTIC = TierSpec(
    tier=Tier.SEMANTIC,
    capacity_scope=CapacityScope.NAMESPACE,
    admission=Admission.NAMESPACE_WRITER,
    access=ReadAccess.NAMESPACE_READER,
    durability=Durability(lifetime=Lifetime.PERSISTENT, versioned=True),
    isolation=Isolation.NAMESPACE,
)
"""Shared facts, policies and rules (RFC-0015 section 2.3)."""

PROCEDURAL = TierSpec(
    tier=Tier.PROCEDURAL,
    capacity_scope=CapacityScope.NAMESPACE,
    admission=Admission.NAMESPACE_WRITER,
    access=ReadAccess.NAMESPACE_READER,
    durability=Durability(lifetime=Lifetime.PERSISTENT, versioned=True),
    isolation=Isolation.NAMESPACE,
)
"""Tested procedures, shared like facts (memory wall, 11.6)."""

SHARED = TierSpec(
    tier=Tier.SHARED,
    capacity=SHARED_CAPACITY,
    capacity_scope=CapacityScope.NAMESPACE,
    admission=Admission.CLAIM_HOLDER,
    access=ReadAccess.NAMESPACE_READER,
    durability=Durability(lifetime=Lifetime.PERSISTENT),
    isolation=Isolation.NAMESPACE,
)
"""State that agents share while they work; see `tiers/shared.py`."""

TIERS: dict[Tier, TierSpec] = {
    spec.tier: spec for spec in (WORKING, SESSION, EPISODIC, SEMANTIC, PROCEDURAL, SHARED)
}

NAMESPACE_TIERS = tuple(tier for tier in Tier if TIERS[tier].isolation is Isolation.NAMESPACE)
"""The tiers that are isolated by namespace; the other tiers are isolated by agent."""

PROMOTED_TIERS = (Tier.EPISODIC, Tier.SEMANTIC, Tier.PROCEDURAL)
"""The tiers that a tenant may close, so that memory gets there by promotion only."""

CAPACITY_SETTINGS = {
    Tier.WORKING: "working_capacity_per_task",
    Tier.EPISODIC: "episodic_capacity",
}
"""The settings that replace the capacity of a tier."""

TIERS_WITH_AGENT_LIMITS = frozenset({Tier.EPISODIC})
"""The tiers that the limits of an agent apply to, see `AgentLimits` and `Guardrails`."""

TASK_TIERS = frozenset(tier for tier in Tier if TIERS[tier].durability.lifetime is Lifetime.TASK)
"""The tiers whose entries live as long as the task that they are bound to."""

VERSIONED_TIERS = frozenset(tier for tier in Tier if TIERS[tier].durability.versioned)
"""The tiers that keep earlier versions of entries."""
