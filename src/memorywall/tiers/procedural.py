"""Tested ways of doing things, shared like facts (memory wall, 11.6)."""

from __future__ import annotations

from memorywall.records.tier import Eviction, Isolation, Tier, TierSpec

PROCEDURAL = TierSpec(
    tier=Tier.PROCEDURAL,
    capacity=None,
    counted_by="",
    default_ttl=None,
    admission="those the namespace lets write: its curators",
    eviction=Eviction.REFUSE,
    access="those the namespace lets read",
    durability="persistent",
    isolation=Isolation.NAMESPACE,
)
