"""The tiers' names and the seven properties that tell them apart (memory wall, 11.1.3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Tier(StrEnum):
    """The wire's `memory_type`: five tiers, of which RFC-0015 section 1.1 names three, and the
    state that agents share while they work.

    The order is from the narrowest to the widest: the order in which a lookup that names no tier
    goes through them.
    """

    WORKING = "working"
    SESSION = "session"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    SHARED = "shared"


class Isolation(StrEnum):
    """Who stands inside a wall: a tier's, or the one around an intent and its tasks."""

    AGENT = "agent"
    NAMESPACE = "namespace"
    INTENT = "intent"


class Eviction(StrEnum):
    """What happens when the tier is full."""

    REFUSE = "refuse"
    LEAST_RECENTLY_USED = "lru"


@dataclass(frozen=True, kw_only=True, slots=True)
class TierSpec:
    """What a tier *is*.

    capacity: entries per `counted_by`, or None for no limit
    counted_by: what a capacity is counted over: "agent", "task", "scope" (a namespace of shared
        state) or "" where there is none
    default_ttl: the `ttl` an entry gets that names none
    admission: who may write, in words
    eviction: what happens at capacity
    access: who may read, in words
    durability: "task", "session" or "persistent"
    isolation: who stands inside the wall; decides uniqueness and access
    """

    tier: Tier
    capacity: int | None
    counted_by: str
    default_ttl: str | None
    admission: str
    eviction: Eviction
    access: str
    durability: str
    isolation: Isolation
