"""Intents and their access lists."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from memorywall.records.intent import DefaultPolicy, Intent, IntentGrant, IntentStatus
from memorywall.records.namespace import Access
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    AGENT,
    NOW,
    TENANT,
    StoreCase,
    at,
    newest_first,
    write_each,
)
from memorywall_testing.names import LOOKALIKES
from memorywall_testing.work import (
    ANYTHING,
    GUARDRAILS,
    INTENT,
    make_grant,
    make_intent,
)


async def _insert(store: Store, *intents: Intent) -> None:
    await write_each(store, intents, lambda to, intent: to.intents.insert(intent))


async def _replace(store: Store, intent: Intent) -> None:
    await store.write(TENANT, lambda to: to.intents.replace(intent))


async def _get(store: Store, intent_id: str) -> Intent | None:
    return await store.read(TENANT, lambda to: to.intents.get(intent_id))


async def _page(
    store: Store,
    creator: str = AGENT,
    ids: Iterable[str] = (),
    status: IntentStatus | None = None,
    limit: int = 1_000,
    offset: int = 0,
) -> tuple[list[Intent], int]:
    named = tuple(ids)
    return await store.read(
        TENANT, lambda to: to.intents.list(creator, named, status, limit, offset)
    )


async def _all(store: Store, creator: str = AGENT, ids: Iterable[str] = ()) -> list[Intent]:
    intents, total = await _page(store, creator, ids)
    assert total == len(intents)
    return intents


async def _children(store: Store, intent: Intent) -> list[Intent]:
    return await store.read(TENANT, lambda to: to.intents.children(intent.id))


async def _dependents(store: Store, intent: Intent) -> list[Intent]:
    return await store.read(TENANT, lambda to: to.intents.dependents(intent.id))


async def _grant(store: Store, *grants: IntentGrant) -> None:
    async def script(transaction: Transaction) -> None:
        for grant in grants:
            await transaction.intents.add_grant(grant)

    await store.write(TENANT, script)


async def _grants(store: Store, intent_id: str = INTENT) -> list[IntentGrant]:
    return await store.read(TENANT, lambda to: to.intents.grants(intent_id))


async def _grants_to(store: Store, principal: str, now: str = NOW) -> list[IntentGrant]:
    return await store.read(TENANT, lambda to: to.intents.grants_to(principal, now))


async def _revoke(store: Store, grant: IntentGrant, intent_id: str = INTENT) -> bool:
    return await store.write(TENANT, lambda to: to.intents.remove_grant(intent_id, grant.id))


def _full(status: IntentStatus = IntentStatus.ACTIVE) -> Intent:
    return make_intent(
        description="\u2764\ufe0f",
        status=status,
        state=ANYTHING,
        constraints={"budget": ANYTHING},
        parent_intent_id="int_parent",
        depends_on=("int_z", "int_a"),
        default_policy=DefaultPolicy.OPEN,
        guardrails=GUARDRAILS,
        version=7,
        created_at=at(-9),
        updated_at=at(-1),
    )


class IntentsConformance(StoreCase):
    """`port.Intents`."""

    async def test_without_intents(self, store: Store) -> None:
        intent = make_intent()
        assert await _get(store, intent.id) is None
        assert await _all(store, ids=[intent.id]) == []
        assert await _children(store, intent) == await _dependents(store, intent) == []
        assert await _grants(store) == await _grants_to(store, "grace") == []
        assert not await _revoke(store, make_grant())

    @pytest.mark.parametrize("status", list(IntentStatus))
    async def test_every_field_of_an_intent_comes_back(
        self, store: Store, status: IntentStatus
    ) -> None:
        intents = [make_intent(), _full(status)]
        await _insert(store, *intents)
        for intent in intents:
            assert await _get(store, intent.id) == intent
            assert await _get(store, intent.id.upper()) is None
        assert await _all(store) == newest_first(intents)

    async def test_replaced_intent_is_returned_by_reads(self, store: Store) -> None:
        bare, full = make_intent(), _full()
        other = make_intent()
        await _insert(store, bare, full, other)
        swapped = [
            msgspec.structs.replace(full, id=bare.id, version=2),
            msgspec.structs.replace(bare, id=full.id, version=8),
        ]
        for intent in swapped:
            await _replace(store, intent)
            assert await _get(store, intent.id) == intent
        assert await _get(store, other.id) == other

    async def test_an_intent_that_is_not_there_is_not_replaced(self, store: Store) -> None:
        intent = make_intent()
        with pytest.raises(LookupError):
            await _replace(store, intent)
        assert await _get(store, intent.id) is None

    async def test_insert_of_intent_does_not_replace_another(self, store: Store) -> None:
        first = make_intent(depends_on=("int_z",))
        await _insert(store, first)
        with pytest.raises(Exception):  # noqa: B017, PT011 - which one is the backend's own affair
            await _insert(store, make_intent(id=first.id, title="late"))
        assert await _all(store) == [first]

    async def test_list_contains_own_open_and_named_intents(self, store: Store) -> None:
        mine = make_intent()
        hers = make_intent(created_by="grace")
        shared = make_intent(created_by="grace", default_policy=DefaultPolicy.OPEN)
        named = make_intent(created_by="grace")
        both = make_intent(default_policy=DefaultPolicy.OPEN)
        foreign = make_intent(tenant="globex", default_policy=DefaultPolicy.OPEN)
        await _insert(store, mine, hers, shared, named, both, foreign)
        assert await _all(store) == [both, shared, mine]
        ids = [named.id, both.id, mine.id, foreign.id, "int_none", named.id]
        assert await _all(store, ids=ids) == [both, named, shared, mine]
        assert await _all(store, "nobody") == [both, shared]
        assert await _all(store, "nobody", [hers.id]) == [both, shared, hers]
        assert await _all(store, "Ada") == [both, shared]
        closed = msgspec.structs.replace(both, default_policy=DefaultPolicy.CLOSED)
        await _replace(store, closed)
        assert await _all(store, "nobody") == [shared]
        assert await _all(store) == [closed, shared, mine]

    async def test_pages_part_the_list_and_each_tells_the_total(self, store: Store) -> None:
        intents = [
            make_intent(
                created_by=("ada", "grace", "linus")[number % 3],
                default_policy=list(DefaultPolicy)[number % 2],
                status=list(IntentStatus)[number % 6],
            )
            for number in range(36)
        ]
        await _insert(store, *reversed(intents))
        ids = [intent.id for intent in intents[::5]]
        readable = [
            intent
            for intent in newest_first(intents)
            if intent.created_by == "ada"
            or intent.default_policy is DefaultPolicy.OPEN
            or intent.id in ids
        ]
        for status in (None, *IntentStatus):
            expected = [one for one in readable if status in (None, one.status)]
            for limit, offset in ((1000, 0), (1, 0), (5, 3), (4, 4), (10, len(expected)), (0, 0)):
                page = await _page(store, "ada", ids, status, limit, offset)
                assert page == (expected[offset : offset + limit], len(expected))

    async def test_a_list_may_name_a_thousand(self, store: Store) -> None:
        intents = [make_intent(created_by="grace") for _ in range(1_000)]
        await _insert(store, *intents)
        ids = [intent.id for intent in intents]
        page, total = await _page(store, "nobody", ids, limit=3, offset=2)
        assert (page, total) == (newest_first(intents)[2:5], 1_000)

    async def test_creators_are_told_apart_by_code_point(self, store: Store) -> None:
        intents = [make_intent(created_by=name) for name in LOOKALIKES]
        await _insert(store, *intents)
        for intent in intents:
            assert await _all(store, intent.created_by) == [intent]

    async def test_children_follow_what_names_their_parent(self, store: Store) -> None:
        parent, other = make_intent(), make_intent()
        children = [make_intent(parent_intent_id=parent.id) for _ in range(3)]
        await _insert(store, parent, other, *reversed(children))
        assert await _children(store, parent) == children
        moved = msgspec.structs.replace(children[1], parent_intent_id=other.id)
        freed = msgspec.structs.replace(children[0], parent_intent_id=None)
        await _replace(store, moved)
        await _replace(store, freed)
        assert await _children(store, parent) == children[2:]
        assert await _children(store, other) == [moved]
        assert await _children(store, children[2]) == []

    async def test_dependents_follow_their_dependencies(self, store: Store) -> None:
        needed, other = make_intent(), make_intent()
        first = make_intent(depends_on=(needed.id, other.id))
        second = make_intent(depends_on=(needed.id,))
        twice = make_intent(depends_on=(needed.id, needed.id))
        await _insert(store, twice, second, first, needed, other)
        assert await _dependents(store, needed) == [first, second, twice]
        assert await _dependents(store, other) == [first]
        assert await _dependents(store, first) == []
        first = msgspec.structs.replace(first, depends_on=(other.id,))
        second = msgspec.structs.replace(second, depends_on=(other.id, needed.id), version=2)
        await _replace(store, first)
        await _replace(store, second)
        assert await _dependents(store, needed) == [second, twice]
        assert await _dependents(store, other) == [first, second]
        await _replace(store, msgspec.structs.replace(second, depends_on=()))
        assert await _dependents(store, other) == [first]

    @pytest.mark.parametrize("access", [Access.READ, Access.WRITE, Access.ADMIN])
    async def test_every_field_of_a_grant_comes_back(self, store: Store, access: Access) -> None:
        grants = [
            make_grant(access=access),
            make_grant(
                access=access,
                principal_id=AGENT,
                principal_type="user",
                granted_by="linus",
                granted_at=at(-5),
                expires_at=at(5),
                reason="\u2764\ufe0f",
            ),
        ]
        await _grant(store, *grants)
        assert await _grants(store) == grants
        assert await _grants_to(store, "grace") == grants[:1]
        assert await _grants_to(store, AGENT) == grants[1:]

    async def test_an_access_list_is_in_the_order_of_ids_with_expired_lines(
        self, store: Store
    ) -> None:
        grants = [make_grant(expires_at=at(second) if second else None) for second in (0, 3, 1)]
        elsewhere = make_grant(intent_id="int_2")
        await _grant(store, elsewhere, *reversed(grants))
        assert await _grants(store) == grants
        assert await _grants(store, "int_2") == [elsewhere]
        assert await _grants(store, "int_3") == []
        assert await _grants_to(store, "grace", at(0.999)) == [*grants, elsewhere]
        assert await _grants_to(store, "grace", at(1)) == [*grants[:2], elsewhere]
        assert await _grants_to(store, "grace", at(3)) == [grants[0], elsewhere]

    async def test_the_lines_for_one_are_in_the_order_of_intents_and_ids(
        self, store: Store
    ) -> None:
        grants = [make_grant(intent_id=intent) for intent in ("int_2", "int_1", "int_2", "int_1")]
        await _grant(store, *grants, make_grant(principal_id="linus"))
        expected = sorted(grants, key=lambda grant: (grant.intent_id, grant.id))
        assert await _grants_to(store, "grace") == expected

    async def test_a_grant_is_removed_once_and_alone(self, store: Store) -> None:
        first, second = make_grant(), make_grant()
        await _grant(store, first, second)
        assert not await _revoke(store, first, "int_2")
        assert await _grants(store) == [first, second]
        assert await _revoke(store, first)
        assert not await _revoke(store, first)
        assert await _grants(store) == await _grants_to(store, "grace") == [second]

    async def test_principals_are_told_apart_by_code_point(self, store: Store) -> None:
        grants = [make_grant(principal_id=name) for name in LOOKALIKES]
        await _grant(store, *grants)
        for grant in grants:
            assert await _grants_to(store, grant.principal_id) == [grant]
