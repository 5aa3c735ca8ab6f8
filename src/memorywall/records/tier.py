"""The names of the tiers and their seven properties (memory wall, 11.1.3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec


class Tier(StrEnum):
    """`memory_type` on the wire: five tiers, of which RFC-0015 section 1.1 names three, and as a
    sixth value the state that agents share while they work.

    The order is from the narrowest to the widest tier. A lookup without a tier uses this order.
    """

    WORKING = "working"
    SESSION = "session"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    SHARED = "shared"


class Isolation(StrEnum):
    """The isolation boundary of a tier, or of an intent with its tasks."""

    AGENT = "agent"
    NAMESPACE = "namespace"
    INTENT = "intent"


class CapacityScope(StrEnum):
    """The group of entries that a capacity applies to.

    AGENT: the entries of the tier that an agent owns
    TASK: the entries that are bound to a task; an entry without a task counts toward no capacity
    NAMESPACE: the entries of a namespace
    """

    AGENT = "agent"
    TASK = "task"
    NAMESPACE = "namespace"


class Admission(StrEnum):
    """The rule for writes, in addition to the permissions of the key.

    OWNER: the agent that owns the entry
    ASSIGNEE: the owner, and for an entry bound to a task only while the task is the owner's
    NAMESPACE_WRITER: principals with write access to the namespace: its curators
    CLAIM_HOLDER: the same, and while the name is claimed only the holder of the claim
    PROMOTED: the same as by default, but what an agent writes itself waits as a proposal; only a
        promotion or a person stores an entry at once. A tenant may set it.
    """

    OWNER = "owner"
    ASSIGNEE = "assignee"
    NAMESPACE_WRITER = "namespace_writer"
    CLAIM_HOLDER = "claim_holder"
    PROMOTED = "promoted"


class ReadAccess(StrEnum):
    """The rule for reads, in addition to the permissions of the key.

    OWNER: the agent that owns the entry
    WORK: the owner, and principals with access through the task or intent of the entry
    COORDINATOR: the owner, and the coordinator of a task that the owner has accepted
    NAMESPACE_READER: principals with read access to the namespace
    """

    OWNER = "owner"
    WORK = "work"
    COORDINATOR = "coordinator"
    NAMESPACE_READER = "namespace_reader"


class Eviction(StrEnum):
    """The policy of a full tier. Pinned entries are never evicted. Other entries are evicted in the
    order of priority, lowest first; within a priority the policy decides.

    REFUSE: no eviction; the write is refused
    LEAST_RECENTLY_USED: the earliest last access
    LEAST_FREQUENTLY_USED: the fewest uses, then the earliest last access
    OLDEST: the earliest creation
    UTILITY: the lowest sum of the last access and one day for each use, at most 32 uses

    A get by id and a hit of a search are uses. A use counts once it is stored, which takes up to a
    minute.
    """

    REFUSE = "refuse"
    LEAST_RECENTLY_USED = "lru"
    LEAST_FREQUENTLY_USED = "lfu"
    OLDEST = "oldest"
    UTILITY = "utility"

    @property
    def reads_accesses(self) -> bool:
        """Whether the last access to an entry can decide about its eviction."""
        return self not in (Eviction.REFUSE, Eviction.OLDEST)


class Lifetime(StrEnum):
    """The lifetime of the entries of a tier without a `ttl`."""

    TASK = "task"
    SESSION = "session"
    PERSISTENT = "persistent"


@dataclass(frozen=True, kw_only=True, slots=True)
class Durability:
    """The lifetime of entries, and whether earlier versions remain readable."""

    lifetime: Lifetime
    versioned: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TierSpec:
    """The properties of a tier; code obeys every field.

    A tenant may narrow the capacity, the default `ttl` and the eviction, see `TierLimits`.

    capacity: entries per `capacity_scope`, None for no limit
    capacity_scope: the group of entries that the capacity applies to
    default_ttl: the `ttl` of an entry without one: `duration:` with an ISO 8601 duration
    admission: the rule for writes
    eviction: the policy at capacity
    access: the rule for reads
    isolation: the isolation boundary, which defines uniqueness and access
    """

    tier: Tier
    capacity: int | None = None
    capacity_scope: CapacityScope
    default_ttl: str | None = None
    admission: Admission
    eviction: Eviction = Eviction.REFUSE
    access: ReadAccess
    durability: Durability
    isolation: Isolation


class TierLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits that narrow a tier for a tenant, or the quota of the tenant. None changes nothing.

    tier: the name of the tier, or that of a `QuotaSource`
    capacity: entries; at most the capacity of the tier
    default_ttl: `duration:` with an ISO 8601 duration; at most that of the tier
    eviction: the policy at capacity
    bytes: the bytes of a quota, None for a tier
    admission: `promoted` for a tier that is closed to direct writes of agents
    """

    tenant: str
    tier: str
    capacity: int | None = None
    default_ttl: str | None = None
    eviction: Eviction | None = None
    bytes: int | None = None
    admission: Admission | None = None
