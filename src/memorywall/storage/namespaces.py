"""The contract of a backend for namespaces and groups: who has access to shared memory.

A part of `storage/port.py`, whose general obligations apply.
"""

from __future__ import annotations

from typing import Protocol

from memorywall.records.group import Group, GroupMember
from memorywall.records.namespace import Namespace
from memorywall.storage.sql.repository import RecordRepository


class NamespaceRepository(Protocol):
    """Namespaces of shared memory and their permissions."""

    async def get(self, name: str) -> Namespace | None:
        """Returns the namespace with all its grants, or None."""
        ...

    async def list_for(self, agent: str) -> list[Namespace]:
        """Returns every namespace of the tenant by name, each with at most the grants of `agent`
        and of its groups, in any order."""
        ...

    async def save(self, namespace: Namespace) -> None:
        """Stores the namespace and its grants, and replaces earlier ones."""
        ...

    async def remove(self, name: str) -> bool:
        """Removes the namespace, its grants and its schemas. Returns False if it is absent."""
        ...


class GroupRepository(RecordRepository[Group], Protocol):
    """Groups and their members, which are removed with their group."""

    async def members(self, name: str) -> list[GroupMember]:
        """Returns the members of a group, by principal."""
        ...

    async def of(self, principal: str) -> list[str]:
        """Returns the names of the groups of a principal, sorted."""
        ...

    async def add_member(self, member: GroupMember) -> bool:
        """Adds a member. Returns False and changes nothing if the principal is a member."""
        ...

    async def remove_member(self, name: str, principal: str) -> bool:
        """Removes a member. Returns False if the principal is none."""
        ...
