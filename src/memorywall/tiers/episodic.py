"""What an agent has lived through and learned (RFC-0015 section 2.2)."""

from __future__ import annotations

from memorywall.records.tier import Eviction, Isolation, Tier, TierSpec
from memorywall.settings import EPISODIC_CAPACITY

EPISODIC = TierSpec(
    tier=Tier.EPISODIC,
    capacity=EPISODIC_CAPACITY,
    counted_by="agent",
    default_ttl=None,
    admission="the owning agent",
    eviction=Eviction.LEAST_RECENTLY_USED,
    access="the owning agent",
    durability="persistent",
    isolation=Isolation.AGENT,
)
