"""`client.groups`: groups of principals, for administrators of the tenant."""

from __future__ import annotations

import builtins

from memorywall.sdk import retry
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.retry import call
from memorywall.wire.groups import (
    GroupBrief,
    GroupListResponse,
    GroupResponse,
    MemberResponse,
)


class GroupsCore:
    """The operations on groups, as request generators."""

    def list(self) -> RequestGenerator[builtins.list[GroupBrief]]:
        """Returns the groups of the tenant by name; for callers that do not administer the tenant,
        their own groups."""
        return (yield from call("list_groups", GroupListResponse)).groups

    def create(self, name: str, *, kind: str = "team") -> RequestGenerator[GroupResponse]:
        """Creates a group without members, or changes the kind of a group.

        name: grants and access lists name the group as "group:" and this name
        kind: "team" or "class"; access does not depend on it
        Raises MemoryAccessError, ValidationError.
        """
        return call("create_group", GroupResponse, group=name, body={"kind": kind})

    def get(self, name: str) -> RequestGenerator[GroupResponse]:
        """Returns a group and its members. Raises MemoryNotFoundError, MemoryAccessError."""
        return call("get_group", GroupResponse, group=name)

    def delete(self, name: str) -> RequestGenerator[None]:
        """Deletes a group. Grants that name it have no effect from then on."""
        return retry.remove("delete_group", group=name)

    def add(self, name: str, principal_id: str) -> RequestGenerator[MemberResponse]:
        """Adds a principal to a group. Raises MemoryNotFoundError, MemoryAccessError,
        ValidationError."""
        return call("add_group_member", MemberResponse, group=name, principal_id=principal_id)

    def remove(self, name: str, principal_id: str) -> RequestGenerator[None]:
        """Removes a principal from a group, with effect on its next request."""
        return retry.remove("remove_group_member", group=name, principal_id=principal_id)


class _GroupsMethods:
    list = method(GroupsCore.list)
    create = method(GroupsCore.create)
    get = method(GroupsCore.get)
    delete = method(GroupsCore.delete)
    add = method(GroupsCore.add)
    remove = method(GroupsCore.remove)


class GroupsClient(_GroupsMethods, Facade[GroupsCore]):
    """Shows and administers groups of principals."""


class AsyncGroupsClient(_GroupsMethods, AsyncFacade[GroupsCore]):
    """Shows and administers groups of principals."""
