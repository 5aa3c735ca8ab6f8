"""The level of a principal in an intent (RFC-0011), as a pure function."""

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
    """The highest level of a principal in an intent, by its own grants and those of its groups.

    The creator and the coordinator administer the intent. An agent with an open task may write, and
    may read after the task has ended.

    grants: the intent's access list, or at least the grants of the principal and its groups
    coordinates: whether the principal coordinates the intent now
    works: whether an open task of the intent is assigned to the principal
    worked: whether an ended task of the intent was assigned to the principal; default: false
    now: an instant in the stored form
    """
    if principal.tenant != intent.tenant:
        return Access.NONE
    if coordinates or intent.created_by == principal.id:
        return Access.ADMIN
    level = Access.READ if worked else Access.NONE
    if works or intent.default_policy is DefaultPolicy.OPEN:
        level = Access.WRITE
    for grant in grants:
        if applies_to(grant, principal) and grant.is_active(now):
            level = grant.access if grant.access.covers(level) else level
    return level


def applies_to(grant: IntentGrant, principal: Principal) -> bool:
    """Whether an entry of an access list is for the principal or for one of its groups."""
    return grant.principal_id == principal.id or principal.is_in(grant.principal_id)
