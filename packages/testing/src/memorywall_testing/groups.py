"""Groups, their members, and the grants that name them."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import asyncio
from typing import Any

from memorywall.records.group import Group, GroupKind, GroupMember
from memorywall.records.namespace import Access, Grant, Namespace
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import AGENT, NOW, TENANT, StoreCase, UndoError, at
from memorywall_testing.names import LOOKALIKES
from memorywall_testing.work import make_grant

_OTHER_TENANT = "globex"


def make_group(name: str = "red", **fields: Any) -> Group:
    """A group of the test's tenant."""
    given = {"tenant": TENANT, "created_by": "chief", "created_at": NOW, **fields}
    return Group(name=name, **given)


def make_member(principal: str = AGENT, name: str = "red", tenant: str = TENANT) -> GroupMember:
    """A member of a group."""
    return GroupMember(
        tenant=tenant, name=name, principal=principal, added_by="chief", added_at=at(1)
    )


async def _add(store: Store, group: Group, *principals: str) -> None:
    async def script(to: Transaction) -> None:
        await to.groups.insert(group)
        for principal in principals:
            assert await to.groups.add_member(make_member(principal, group.name, group.tenant))

    await store.write(group.tenant, script)


async def _members(store: Store, name: str = "red", tenant: str = TENANT) -> list[str]:
    found = await store.read(tenant, lambda to: to.groups.members(name))
    return [one.principal for one in found]


async def _of(store: Store, principal: str, tenant: str = TENANT) -> list[str]:
    return await store.read(tenant, lambda to: to.groups.of(principal))


async def _grant(to: Transaction) -> None:
    """A namespace and an access list that name groups, the agent and another agent."""
    grants = (
        Grant(agent="group:red", access=Access.READ, episodic=True),
        Grant(agent="group:blue", access=Access.WRITE),
        Grant(agent=AGENT, access=Access.NONE),
        Grant(agent="linus", access=Access.ADMIN),
    )
    for name in ("facts", "open"):
        await to.namespaces.save(
            Namespace(
                tenant=TENANT,
                name=name,
                default=Access.READ,
                grants=grants if name == "facts" else (),
                created_at=NOW,
                updated_at=NOW,
            )
        )
    for principal in ("group:red", "group:blue", AGENT, "linus"):
        await to.intents.add_grant(make_grant(principal_id=principal))


async def _granted(to: Transaction) -> tuple[list[set[str]], list[str]]:
    """Returns the access of the agent from the namespaces and the access lists."""
    listed = await to.namespaces.list_for(AGENT)
    assert [one.name for one in listed] == ["facts", "open"]
    lines = await to.intents.grants_to(AGENT, NOW)
    named = [{grant.agent for grant in one.grants} for one in listed]
    return named, sorted(line.principal_id for line in lines)


class GroupsConformance(StoreCase):
    """`port.GroupRepository`, and the grants of groups in other repositories."""

    async def test_members_are_added_and_removed_once(self, store: Store) -> None:
        await _add(store, make_group(kind=GroupKind.CLASS), "zoe", AGENT)
        await _add(store, make_group("blue"), AGENT)
        assert await _members(store) == [AGENT, "zoe"]
        assert await _of(store, AGENT) == ["blue", "red"]

        async def script(to: Transaction) -> list[bool]:
            return [
                await to.groups.add_member(make_member()),
                await to.groups.remove_member("red", AGENT),
                await to.groups.remove_member("red", AGENT),
                await to.groups.remove_member("none", AGENT),
            ]

        assert await store.write(TENANT, script) == [False, True, False, False]
        assert await _members(store) == ["zoe"]
        assert await _of(store, AGENT) == ["blue"]

    async def test_members_are_removed_with_their_group(self, store: Store) -> None:
        await _add(store, make_group(), AGENT)
        await _add(store, make_group("blue"), AGENT)
        await _add(store, make_group(tenant=_OTHER_TENANT), AGENT)
        assert await store.write(TENANT, lambda to: to.groups.remove("red"))
        assert not await store.write(TENANT, lambda to: to.groups.remove("red"))
        assert await _members(store) == []
        assert await _of(store, AGENT) == ["blue"]
        assert await _members(store, tenant=_OTHER_TENANT) == [AGENT]
        await _add(store, make_group())
        assert await _members(store) == []

    async def test_names_of_groups_and_members_compare_by_code_point(self, store: Store) -> None:
        for place, name in enumerate(LOOKALIKES):
            await _add(store, make_group(name), LOOKALIKES[place])
        for name in LOOKALIKES:
            assert await _members(store, name) == [name]
            assert await _of(store, name) == [name]

    async def test_grants_name_the_agent_and_its_groups(self, store: Store) -> None:
        await store.write(TENANT, _grant)
        assert await store.read(TENANT, _granted) == ([{AGENT}, set()], [AGENT])
        await _add(store, make_group("blue", tenant=_OTHER_TENANT), AGENT)
        assert await store.read(TENANT, _granted) == ([{AGENT}, set()], [AGENT])
        await _add(store, make_group(), AGENT)
        with_red = ([{AGENT, "group:red"}, set()], [AGENT, "group:red"])
        assert await store.read(TENANT, _granted) == with_red
        facts = await store.read(TENANT, lambda to: to.namespaces.get("facts"))
        assert facts is not None
        assert [grant.episodic for grant in facts.grants] == [True, False, False, False]

    async def test_grants_follow_a_membership_within_a_transaction(self, store: Store) -> None:
        """A backend may cache what the grants are, but not after members have changed."""
        await store.write(TENANT, _grant)
        await _add(store, make_group())
        outside = ([{AGENT}, set()], [AGENT])
        inside = ([{AGENT, "group:red"}, set()], [AGENT, "group:red"])

        async def script(to: Transaction) -> None:
            assert await _granted(to) == outside
            assert await to.groups.of(AGENT) == []
            await to.groups.add_member(make_member())
            assert await _granted(to) == inside
            assert await to.groups.of(AGENT) == ["red"]
            assert await to.groups.members("red") == [make_member()]
            await to.groups.remove_member("red", AGENT)
            assert await _granted(to) == outside

        await store.write(TENANT, script)

        async def undone(to: Transaction) -> None:
            await to.groups.add_member(make_member())
            assert await _granted(to) == inside
            raise UndoError

        async def look_on(to: Transaction) -> None:
            assert await _granted(to) == outside

        scripts = [look_on, undone, look_on, undone, look_on]
        outcomes = await asyncio.gather(
            *(store.write(TENANT, script) for script in scripts), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes[1::2]] == [UndoError, UndoError]
        assert outcomes[::2] == [None, None, None]
