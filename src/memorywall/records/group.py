"""Groups of principals. A grant or an access list names a group as `group:` and its name."""

from __future__ import annotations

from enum import StrEnum

import msgspec

GROUP_PREFIX = "group:"


class GroupKind(StrEnum):
    """The property that the members share: their work, or their function. Access does not
    depend on the property."""

    TEAM = "team"
    CLASS = "class"


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A named set of principals of a tenant."""

    tenant: str
    name: str
    kind: GroupKind = GroupKind.TEAM
    created_by: str
    created_at: str


class GroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """The membership of a principal in the group `name`."""

    tenant: str
    name: str
    principal: str
    added_by: str
    added_at: str


def is_group(grantee: str) -> bool:
    """Whether a grant or an access list names a group and not a principal."""
    return grantee.startswith(GROUP_PREFIX)


def grantee_of(group: str) -> str:
    """The form in which a grant names the group."""
    return GROUP_PREFIX + group
