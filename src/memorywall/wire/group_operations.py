"""Operations on groups of principals."""

from __future__ import annotations

from memorywall.records.errors import ResourceNotFoundError
from memorywall.records.principal import Permission
from memorywall.wire.groups import (
    GroupListResponse,
    GroupRequest,
    GroupResponse,
    MemberResponse,
)
from memorywall.wire.operation import Operation

GROUP_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="list_groups",
        method="GET",
        path="/api/v1/groups",
        group="Groups",
        summary="List the groups of the tenant, or for other callers their own groups, by name.",
        source="memorywall",
        permission=Permission.READ,
        reply=GroupListResponse,
    ),
    Operation(
        name="create_group",
        method="PUT",
        path="/api/v1/groups/{group}",
        group="Groups",
        summary="Create a group without members, or change the kind of a group.",
        source="memorywall",
        permission=Permission.TENANT_ADMIN,
        body=GroupRequest,
        reply=GroupResponse,
    ),
    Operation(
        name="get_group",
        method="GET",
        path="/api/v1/groups/{group}",
        group="Groups",
        summary="Get a group and its members; for its members and administrators of the tenant.",
        source="memorywall",
        permission=Permission.READ,
        reply=GroupResponse,
        raises=(ResourceNotFoundError,),
    ),
    Operation(
        name="delete_group",
        method="DELETE",
        path="/api/v1/groups/{group}",
        group="Groups",
        summary="Delete a group. Grants that name it have no effect from then on.",
        source="memorywall",
        permission=Permission.TENANT_ADMIN,
        status=204,
        raises=(ResourceNotFoundError,),
    ),
    Operation(
        name="add_group_member",
        method="PUT",
        path="/api/v1/groups/{group}/members/{principal_id}",
        group="Groups",
        summary="Add a principal to a group; a member stays a member.",
        source="memorywall",
        permission=Permission.TENANT_ADMIN,
        reply=MemberResponse,
        raises=(ResourceNotFoundError,),
    ),
    Operation(
        name="remove_group_member",
        method="DELETE",
        path="/api/v1/groups/{group}/members/{principal_id}",
        group="Groups",
        summary="Remove a principal from a group, with effect on its next request.",
        source="memorywall",
        permission=Permission.TENANT_ADMIN,
        status=204,
        raises=(ResourceNotFoundError,),
    ),
)
