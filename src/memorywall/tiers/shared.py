"""State that agents share while they work (scoped state store).

The namespace of such an entry is its scope: `shared/global`, `shared/team/<team>` or
`shared/agent/<agent>`. A scope has permissions like any namespace; only its initial permissions
differ.
"""

from __future__ import annotations

from memorywall.records.namespace import Access
from memorywall.records.tier import Isolation, Tier
from memorywall.tiers.table import TIERS

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
    """The initial level of everyone in a scope, and the initial level of its creator.

    Only the creator has access to a new team scope until it grants access to others. The global
    scope has no administrator: only an administrator of the tenant can change its permissions.

    namespace: a scope, see `is_scope`
    """
    if namespace == GLOBAL:
        return Access.WRITE, Access.NONE
    if namespace.startswith(TEAM):
        return Access.NONE, Access.ADMIN
    return Access.NONE, Access.WRITE


def namespace_problem(tier: Tier, namespace: str) -> str | None:
    """The message for a namespace that a tier does not allow; None if the tier allows it."""
    if tier is Tier.SHARED:
        if not is_scope(namespace):
            return (
                "`namespace` of shared state must be `shared/global`, `shared/team/` and a team,"
                " or `shared/agent/` and an agent"
            )
    elif TIERS[tier].isolation is Isolation.NAMESPACE and namespace.startswith(PREFIX):
        return "`namespace` must not begin with `shared/` in this memory_type"
    return None
