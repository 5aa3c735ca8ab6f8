"""Turns and checkpoints of one conversation (memory wall, 11.3)."""

from __future__ import annotations

from memorywall.records.tier import Eviction, Isolation, Tier, TierSpec

SESSION = TierSpec(
    tier=Tier.SESSION,
    capacity=None,
    counted_by="",
    default_ttl=None,
    admission="the owning agent",
    eviction=Eviction.REFUSE,
    access="the owning agent",
    durability="session",
    isolation=Isolation.AGENT,
)
