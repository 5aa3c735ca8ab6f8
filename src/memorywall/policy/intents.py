"""What part somebody has in an intent (RFC-0011). Pure."""

from __future__ import annotations

from collections.abc import Iterable

from memorywall.records.intent import DefaultPolicy, Intent, IntentGrant
from memorywall.records.namespace import Access
from memorywall.records.principal import Principal


def access_to_intent(
    principal: Principal,
    intent: Intent,
    grants: Iterable[IntentGrant],
    *,
    coordinates: bool,
    works: bool,
    worked: bool = False,
    now: str,
) -> Access:
    """The level a principal has in an intent; the highest it has a reason for.

    grants: the intent's access list, or at least those of its lines that name the principal
    coordinates: whether the principal coordinates the intent now
    works, worked: whether an open task of the intent, or one that is over, is assigned to the
        principal
    Whoever made the intent and whoever coordinates it administer it. Who works for it takes part,
    and may read what came of it afterwards.
    """
    if principal.tenant != intent.tenant:
        return Access.NONE
    if coordinates or intent.created_by == principal.id:
        return Access.ADMIN
    level = Access.READ if worked else Access.NONE
    if works or intent.default_policy is DefaultPolicy.OPEN:
        level = Access.WRITE
    for grant in grants:
        if grant.principal_id == principal.id and grant.counts(now):
            level = grant.access if grant.access.covers(level) else level
    return level
