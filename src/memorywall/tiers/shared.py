"""State that agents share while they work: decisions, not deliberations (scoped state store).

The namespace of such an entry is its scope: `shared/global`, `shared/team/<team>` or
`shared/agent/<agent>`. It is governed like any namespace; what differs is how a scope begins.
"""

from __future__ import annotations

from memorywall.records.namespace import Access
from memorywall.records.tier import Eviction, Isolation, Tier, TierSpec

SHARED = TierSpec(
    tier=Tier.SHARED,
    capacity=1_000,
    counted_by="scope",
    default_ttl=None,
    admission="those the scope lets write; under a claim, its holder",
    eviction=Eviction.REFUSE,
    access="those the scope lets read",
    durability="persistent",
    isolation=Isolation.NAMESPACE,
)

PREFIX = "shared/"
GLOBAL = "shared/global"
TEAM = "shared/team/"
AGENT = "shared/agent/"


def is_scope(namespace: str) -> bool:
    """Whether a namespace is a scope of shared state: the whole tenant, a team or an agent."""
    if namespace == GLOBAL:
        return True
    for prefix in (TEAM, AGENT):
        if namespace.startswith(prefix):
            rest = namespace.removeprefix(prefix)
            return bool(rest) and "/" not in rest
    return False


def first_access(namespace: str) -> tuple[Access, Access]:
    """What a new scope allows everyone, and what its founder has besides.

    A team is closed until its founder lets others in. The global scope belongs to nobody: only an
    administrator of the tenant can narrow it.
    """
    if namespace == GLOBAL:
        return Access.WRITE, Access.NONE
    if namespace.startswith(TEAM):
        return Access.NONE, Access.ADMIN
    return Access.NONE, Access.WRITE
