"""Groups of principals, and their members. Every change is an event."""

from __future__ import annotations

import msgspec

from memorywall.operations.binding import operation
from memorywall.records.decision import Target, Verb
from memorywall.records.errors import ResourceNotFoundError, ValidationError
from memorywall.records.event import WorkEventType
from memorywall.records.group import Group, GroupMember
from memorywall.records.identifiers import name_forms
from memorywall.service.access.groups import remove_member
from memorywall.service.access.known_names import find_group, known_agent
from memorywall.service.access.targets import owner_target
from memorywall.service.requests.event_log import append_work_event
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.requests.validation import check_group
from memorywall.wire.groups import (
    GroupListResponse,
    GroupResponse,
    MemberResponse,
    group_brief,
    group_view,
    member_view,
)

MOST_MEMBERS = 1_000


@operation("list_groups")
async def list_groups(context: OperationContext, call: OperationCall) -> GroupListResponse:
    if context.allows(Verb.ADMINISTER, _groups(context)):
        found = await context.transaction.groups.page()
    else:
        context.authorize(Verb.READ, owner_target(context.tenant, context.principal.id))
        names = await context.transaction.groups.of(context.principal.id)
        found = [await _find(context, name) for name in names]
    return GroupListResponse(groups=[group_brief(one) for one in found], total=len(found))


@operation("create_group")
async def create_group(context: OperationContext, call: OperationCall) -> GroupResponse:
    name = check_group("group", call.path["group"])
    context.authorize(Verb.ADMINISTER, _groups(context))
    groups = context.transaction.groups
    old = await find_group(context, name)
    group = Group(
        tenant=context.tenant,
        name=name,
        kind=call.body.kind,
        created_by=context.principal.id,
        created_at=context.now,
    )
    if old is None:
        await groups.insert(group)
        await _record(context, WorkEventType.GROUP_CREATED, group)
        return group_view(group, ())
    group = msgspec.structs.replace(old, kind=call.body.kind)
    if group != old:
        await groups.replace(group)
        await _record(context, WorkEventType.GROUP_UPDATED, group)
    return group_view(group, await groups.members(group.name))


@operation("get_group")
async def get_group(context: OperationContext, call: OperationCall) -> GroupResponse:
    group = await _find(context, call.path["group"])
    members = await context.transaction.groups.members(group.name)
    if any(one.principal == context.principal.id for one in members):
        context.authorize(Verb.READ, owner_target(context.tenant, context.principal.id))
    else:
        context.authorize(Verb.ADMINISTER, _groups(context))
    return group_view(group, members)


@operation("delete_group")
async def delete_group(context: OperationContext, call: OperationCall) -> None:
    context.authorize(Verb.ADMINISTER, _groups(context))
    group = await _find(context, call.path["group"])
    for member in await context.transaction.groups.members(group.name):
        await remove_member(context, group.name, member.principal)
    await context.transaction.groups.remove(group.name)
    await _record(context, WorkEventType.GROUP_DELETED, group)


@operation("add_group_member")
async def add_group_member(context: OperationContext, call: OperationCall) -> MemberResponse:
    context.authorize(Verb.ADMINISTER, _groups(context))
    group = await _find(context, call.path["group"])
    principal = await known_agent(context, "principal_id", call.path["principal_id"])
    members = await context.transaction.groups.members(group.name)
    for one in members:
        if one.principal == principal:
            return member_view(one)
    if len(members) >= MOST_MEMBERS:
        raise ValidationError(f"a group may have at most {MOST_MEMBERS} members")
    member = GroupMember(
        tenant=context.tenant,
        name=group.name,
        principal=principal,
        added_by=context.principal.id,
        added_at=context.now,
    )
    await context.transaction.groups.add_member(member)
    data = {"group": group.name}
    await append_work_event(context, WorkEventType.GROUP_MEMBER_ADDED, agent=principal, data=data)
    return member_view(member)


@operation("remove_group_member")
async def remove_group_member(context: OperationContext, call: OperationCall) -> None:
    context.authorize(Verb.ADMINISTER, _groups(context))
    group = await _find(context, call.path["group"])
    forms = name_forms(call.path["principal_id"])
    if not any([await remove_member(context, group.name, one) for one in forms]):
        raise ResourceNotFoundError("the group has no such member")


def _groups(context: OperationContext) -> Target:
    """The target for the groups of the tenant, which only its administrators may administer."""
    return owner_target(context.tenant, "")


async def _find(context: OperationContext, name: str) -> Group:
    group = await find_group(context, name)
    if group is None:
        raise ResourceNotFoundError("there is no such group")
    return group


async def _record(context: OperationContext, kind: WorkEventType, group: Group) -> None:
    await append_work_event(context, kind, data={"group": group.name, "kind": group.kind.value})
