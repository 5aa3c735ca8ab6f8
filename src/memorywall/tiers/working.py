"""Mutable state of work in progress, bound to a task (RFC-0015 section 2.1)."""

from __future__ import annotations

from memorywall.records.tier import Eviction, Isolation, Tier, TierSpec
from memorywall.settings import WORKING_CAPACITY_PER_TASK

WORKING = TierSpec(
    tier=Tier.WORKING,
    capacity=WORKING_CAPACITY_PER_TASK,
    counted_by="task",
    default_ttl=None,
    admission="the owning agent, while the task is its own",
    eviction=Eviction.REFUSE,
    access="the owning agent; to read, those the task opens it to",
    durability="task",
    isolation=Isolation.AGENT,
)
