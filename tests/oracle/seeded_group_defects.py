"""Wrong rules about groups to plant in the system, to see whether the comparison finds them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest
from msgspec import structs

from memorywall.policy import decide as policy
from memorywall.records.decision import Target
from memorywall.records.group import is_group
from memorywall.records.intent import IntentGrant
from memorywall.records.namespace import Access, Namespace
from memorywall.records.principal import Principal
from memorywall.service.access import groups, visibility
from memorywall.service.administration import namespace_permissions
from memorywall.service.entries import matches
from memorywall.service.requests.operation_context import OperationContext
from memorywall.storage.sql.registry import SqlGroupRepository
from memorywall.storage.sql.repository import SqlRecordRepository
from memorywall.storage.sql.work import SqlIntentRepository

Patch = pytest.MonkeyPatch


def members_stay_members(patch: Patch) -> None:
    """Who has left a group keeps what the group may do, as with a cache that nothing empties."""
    honest = SqlGroupRepository.of
    known: dict[tuple[str, str], set[str]] = {}

    async def cached(self: SqlGroupRepository, principal: str) -> list[str]:
        remembered = known.setdefault((self._rows.tenant, principal), set())
        remembered.update(await honest(self, principal))
        return sorted(remembered)

    patch.setattr(SqlGroupRepository, "of", cached)


def groups_of_all_tenants_are_one(patch: Patch) -> None:
    """A member of another tenant's group of the same name is a member of this one."""

    async def careless(self: SqlGroupRepository, principal: str) -> list[str]:
        statement = "SELECT DISTINCT name FROM group_members WHERE principal = ?1 ORDER BY name"
        return [str(row[0]) for row in await self._rows.rows(statement, principal)]

    patch.setattr(SqlGroupRepository, "of", careless)


def a_class_reads_without_a_grant(patch: Patch) -> None:
    """Any grant of a group opens the past of its members."""

    def opens(principal: Principal, namespace: Namespace, target: Target) -> bool:
        both = [one.agent for one in namespace.grants if one.agent in target.owner_groups]
        reads = policy.access_to(principal, namespace).covers(Access.READ)
        return reads and any(map(principal.is_in, both))

    def named(found: Iterable[Namespace]) -> bool:
        return any(is_group(grant.agent) for one in found for grant in one.grants)

    patch.setattr(policy, "_opens_episodic", opens)
    patch.setattr(groups, "open_episodic", named)
    patch.setattr(visibility, "open_episodic", named)


def the_owner_need_not_be_a_member(patch: Patch) -> None:
    """A class reads the past of agents of every class."""

    def opens(principal: Principal, namespace: Namespace, target: Target) -> bool:
        return any(one.episodic and principal.is_in(one.agent) for one in namespace.grants)

    patch.setattr(policy, "_opens_episodic", opens)


def a_refusal_of_one_agent_does_not_count(patch: Patch) -> None:
    """Who may not read the namespace reads the past of its group in it nevertheless."""

    def opens(principal: Principal, namespace: Namespace, target: Target) -> bool:
        return any(
            one.episodic and one.agent in target.owner_groups and principal.is_in(one.agent)
            for one in namespace.grants
        )

    patch.setattr(policy, "_opens_episodic", opens)


def a_group_precedes_its_members_own_grant(patch: Patch) -> None:
    """The best of all grants counts, so a grant of `none` for one agent keeps nobody out."""

    def best(principal: Principal, namespace: Namespace) -> Access:
        levels = [
            one.access
            for one in namespace.grants
            if one.agent == principal.id or principal.is_in(one.agent)
        ]
        return max(levels, key=list(Access).index, default=namespace.default)

    patch.setattr(policy, "access_to", best)


def lists_show_the_past_of_all_members(patch: Patch) -> None:
    """A list shows the past of a group in every namespace, though a get refuses it."""
    honest = visibility.load_visibility

    async def wide(context: OperationContext, *given: Any) -> Any:
        within = await honest(context, *given)
        owners = tuple({owner for _, owner in within.by_group})
        return structs.replace(within, by_group=(), episodic=owners)

    patch.setattr(matches, "load_visibility", wide)


def access_lists_name_every_group(patch: Patch) -> None:
    """The grants of all groups are everybody's, in lists of intents."""
    honest: Callable[..., Awaitable[list[IntentGrant]]] = SqlIntentRepository.grants_to

    async def careless(self: SqlIntentRepository, principal: str, now: str) -> list[IntentGrant]:
        found = await honest(self, principal, now)
        every: Iterable[IntentGrant] = await SqlRecordRepository.page(self._grants)
        return [*found, *(one for one in every if is_group(one.principal_id))]

    patch.setattr(SqlIntentRepository, "grants_to", careless)


def anybody_opens_the_past_of_a_group(patch: Patch) -> None:
    """An administrator of a namespace may open episodic memory in it."""
    patch.setattr(namespace_permissions, "_authorize_episodic", lambda *given: None)


GROUP_PLANTS = (
    members_stay_members,
    groups_of_all_tenants_are_one,
    a_class_reads_without_a_grant,
    the_owner_need_not_be_a_member,
    a_refusal_of_one_agent_does_not_count,
    a_group_precedes_its_members_own_grant,
    lists_show_the_past_of_all_members,
    access_lists_name_every_group,
    anybody_opens_the_past_of_a_group,
)
