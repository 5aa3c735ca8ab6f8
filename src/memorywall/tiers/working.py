"""Mutable state of work in progress, bound to a task (RFC-0015 section 2.1)."""

from __future__ import annotations

from memorywall.records.tier import Eviction, Isolation, Tier, TierSpec

WORKING = TierSpec(
    tier=Tier.WORKING,
    capacity=1_000,
    counted_by="task",
    default_ttl=None,
    admission="the owning agent",
    eviction=Eviction.REFUSE,
    access="the owning agent",
    durability="task",
    isolation=Isolation.AGENT,
)
