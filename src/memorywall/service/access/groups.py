"""Loads the groups that an access decision needs, and removes members.

Memberships are read in the transaction of the decision, and only if a grant names a group. So a
principal that has left a group loses its access with its next request, on every server.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from msgspec import structs

from memorywall.records.decision import Target
from memorywall.records.errors import ValidationError
from memorywall.records.event import WorkEventType
from memorywall.records.group import GROUP_PREFIX, grantee_of, is_group
from memorywall.records.intent import IntentGrant
from memorywall.records.namespace import Namespace
from memorywall.records.tier import Isolation
from memorywall.service.requests.event_log import append_work_event
from memorywall.service.requests.operation_context import OperationContext


async def load_groups(context: OperationContext, grantees: Iterable[str]) -> None:
    """Loads the groups of the principal if one of the grantees is a group."""
    if context.principal.groups is None and any(map(is_group, grantees)):
        groups = await load_groups_of(context, context.principal.id)
        context.principal = replace(context.principal, groups=groups)


async def load_groups_of(context: OperationContext, principal: str) -> frozenset[str]:
    """The groups of a principal, as grants name them."""
    return frozenset(map(grantee_of, await context.transaction.groups.of(principal)))


async def list_namespaces(context: OperationContext) -> list[Namespace]:
    """Every namespace of the tenant with at least the grants of the principal and its groups, which
    its token may name in place of the stored ones."""
    repository, principal = context.transaction.namespaces, context.principal
    listed = await repository.list_for(principal.id)
    granted = {grant.agent for one in listed for grant in one.grants}
    for group in sorted((principal.groups or frozenset()) - granted):
        with_group = {one.name: one.grants for one in await repository.list_for(group)}
        listed = [
            structs.replace(one, grants=(*one.grants, *with_group.get(one.name, ())))
            for one in listed
        ]
    return listed


async def list_intent_grants(context: OperationContext) -> list[IntentGrant]:
    """The active grants of intents to the principal and to its groups, likewise."""
    repository, principal = context.transaction.intents, context.principal
    grants = await repository.grants_to(principal.id, context.now)
    if principal.groups is None:
        return grants
    grants = [one for one in grants if not is_group(one.principal_id)]
    for group in sorted(principal.groups):
        grants += await repository.grants_to(group, context.now)
    return grants


async def check_groups(context: OperationContext, grantees: Iterable[str]) -> None:
    """Raises ValidationError for a new grant of a group that does not exist: who creates a group of
    this name later would get the access."""
    for grantee in filter(is_group, grantees):
        if await context.transaction.groups.get(grantee.removeprefix(GROUP_PREFIX)) is None:
            raise ValidationError(
                "a grant names a group that does not exist; create it first (`PUT"
                " /api/v1/groups/{name}`, `memorywall groups create NAME`)"
            )


def open_episodic(namespaces: Iterable[Namespace]) -> bool:
    """Whether any of the namespaces opens episodic memory to a group."""
    return any(grant.episodic for namespace in namespaces for grant in namespace.grants)


async def load_episodic_target(
    context: OperationContext, owner: str, namespace: str
) -> Target | None:
    """The target for another agent's episodic memory in a namespace, None if the namespace opens
    it to no group."""
    found = await context.transaction.namespaces.get(namespace)
    if found is None or not open_episodic((found,)):
        return None
    await load_groups(context, (grant.agent for grant in found.grants))
    return _episodic_target(context, owner, found, await load_groups_of(context, owner))


async def load_episodic_targets(
    context: OperationContext, namespaces: Iterable[Namespace]
) -> tuple[Target, ...]:
    """The targets for other agents' episodic memory that the namespaces open to a group of the
    principal, one for each namespace and agent."""
    opening = [one for one in namespaces if open_episodic((one,))]
    await load_groups(context, (grant.agent for one in opening for grant in one.grants))
    own = {
        grant.agent
        for one in opening
        for grant in one.grants
        if grant.episodic and context.principal.is_in(grant.agent)
    }
    groups: dict[str, set[str]] = {}
    for group in sorted(own):
        for member in await context.transaction.groups.members(group.removeprefix(GROUP_PREFIX)):
            groups.setdefault(member.principal, set()).add(group)
    groups.pop(context.principal.id, None)
    return tuple(
        _episodic_target(context, owner, one, frozenset(of_owner))
        for one in opening
        for owner, of_owner in groups.items()
    )


async def remove_member(context: OperationContext, group: str, principal: str) -> bool:
    """Removes a principal from a group and records it. Returns False if it is no member."""
    if not await context.transaction.groups.remove_member(group, principal):
        return False
    data = {"group": group}
    kind = WorkEventType.GROUP_MEMBER_REMOVED
    await append_work_event(context, kind, agent=principal, data=data)
    return True


def _episodic_target(
    context: OperationContext, owner: str, namespace: Namespace, groups: frozenset[str]
) -> Target:
    return Target(
        tenant=context.tenant,
        isolation=Isolation.AGENT,
        owner=owner,
        namespace=namespace,
        owner_groups=groups,
        place=namespace.name,
    )
