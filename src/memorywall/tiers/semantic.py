"""Shared facts, policies and rules (RFC-0015 section 2.3)."""

from __future__ import annotations

from memorywall.records.tier import Eviction, Isolation, Tier, TierSpec

SEMANTIC = TierSpec(
    tier=Tier.SEMANTIC,
    capacity=None,
    counted_by="",
    default_ttl=None,
    admission="those the namespace lets write: its curators",
    eviction=Eviction.REFUSE,
    access="those the namespace lets read",
    durability="persistent",
    isolation=Isolation.NAMESPACE,
)
