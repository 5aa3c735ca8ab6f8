"""Groups of principals: requests, responses, operations."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from memorywall.records.copier import copier
from memorywall.records.group import Group, GroupKind, GroupMember
from memorywall.records.principal import Permission
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup


class GroupRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The properties of a group.

    kind: what the members have in common; access does not depend on it
    """

    kind: GroupKind = GroupKind.TEAM


class MemberResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a group."""

    principal_id: str
    added_by: str
    added_at: str


class GroupBrief(msgspec.Struct, frozen=True, kw_only=True):
    """A group without its members."""

    name: str
    kind: GroupKind
    created_by: str
    created_at: str


class GroupResponse(GroupBrief, frozen=True, kw_only=True):
    """A group and its members, by principal."""

    members: list[MemberResponse]


class GroupListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Groups, by name."""

    groups: list[GroupBrief]
    total: int


group_brief = copier(Group, GroupBrief)
"""The wire form of a group without its members."""
_group = copier(Group, GroupResponse, given=["members"])
member_view = copier(GroupMember, MemberResponse, principal_id="principal")
"""The wire form of a membership."""


def group_view(group: Group, members: Iterable[GroupMember]) -> GroupResponse:
    """The wire form of a group."""
    return _group(group, members=[member_view(one) for one in members])


_GROUPS = OperationGroup(name="Groups", write=Permission.TENANT_ADMIN)

GROUP_OPERATIONS: tuple[Operation, ...] = (
    _GROUPS(
        "list_groups",
        "GET /groups",
        "List the groups of the tenant, or for other callers their own groups, by name.",
        reply=GroupListResponse,
    ),
    _GROUPS(
        "create_group",
        "PUT /groups/{group}",
        "Create a group without members, or change the kind of a group.",
        body=GroupRequest,
        reply=GroupResponse,
        not_found=(),
    ),
    _GROUPS(
        "get_group",
        "GET /groups/{group}",
        "Get a group and its members; for its members and administrators of the tenant.",
        reply=GroupResponse,
    ),
    _GROUPS(
        "delete_group",
        "DELETE /groups/{group}",
        "Delete a group. Grants that name it have no effect from then on.",
    ),
    _GROUPS(
        "add_group_member",
        "PUT /groups/{group}/members/{principal_id}",
        "Add a principal to a group; a member stays a member.",
        reply=MemberResponse,
    ),
    _GROUPS(
        "remove_group_member",
        "DELETE /groups/{group}/members/{principal_id}",
        "Remove a principal from a group, with effect on its next request.",
    ),
)
