"""Requests and responses about groups of principals."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from memorywall.records.group import Group, GroupKind, GroupMember


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


def group_brief(group: Group) -> GroupBrief:
    """The wire form of a group without its members."""
    return GroupBrief(
        name=group.name,
        kind=group.kind,
        created_by=group.created_by,
        created_at=group.created_at,
    )


def group_view(group: Group, members: Iterable[GroupMember]) -> GroupResponse:
    """The wire form of a group."""
    return GroupResponse(
        name=group.name,
        kind=group.kind,
        created_by=group.created_by,
        created_at=group.created_at,
        members=[member_view(one) for one in members],
    )


def member_view(member: GroupMember) -> MemberResponse:
    """The wire form of a membership."""
    return MemberResponse(
        principal_id=member.principal, added_by=member.added_by, added_at=member.added_at
    )
