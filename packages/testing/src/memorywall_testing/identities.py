"""Tenants, principals, keys and what is set for one agent."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from memorywall.records.principal import ApiKey, Permission, PrincipalKind
from memorywall.records.usage import AgentLimits
from memorywall.storage.port import REGISTRY, Store, Transaction
from memorywall_testing.base import NOW, TENANT, StoreCase, at, write_each
from memorywall_testing.names import LOOKALIKES


def _key(prefix: str, **fields: Any) -> ApiKey:
    return ApiKey(
        **{
            "prefix": prefix,
            "digest": bytes(range(224, 256)),
            "tenant": TENANT,
            "principal": "ada",
            "kind": PrincipalKind.AGENT,
            "permissions": frozenset({Permission.READ}),
            "created_at": NOW,
            **fields,
        }
    )


async def _add(store: Store, *keys: ApiKey) -> None:
    await write_each(store, keys, lambda to, key: to.identities.add_key(key))


async def _add_tenant(store: Store, name: str) -> bool:
    return await store.write(name, lambda to: to.identities.add_tenant(name, NOW))


async def _find(store: Store, prefix: str) -> ApiKey | None:
    return await store.read(REGISTRY, lambda to: to.identities.find_key(prefix))


async def _ensure(
    store: Store, principal: str, kind: PrincipalKind, tenant: str = TENANT
) -> PrincipalKind:
    return await store.write(
        tenant, lambda to: to.identities.ensure_principal(principal, kind, NOW)
    )


class IdentitiesConformance(StoreCase):
    """`port.Identities`."""

    async def test_a_tenant_is_added_once(self, store: Store) -> None:
        assert await store.read(REGISTRY, lambda to: to.identities.tenants()) == []
        names = [*LOOKALIKES, TENANT]

        async def twice(transaction: Transaction) -> list[bool]:
            return [await transaction.identities.add_tenant("twice", at(n)) for n in range(2)]

        for expected in (True, False):
            for name in names:
                assert await _add_tenant(store, name) is expected, name
        assert await store.write("twice", twice) == [True, False]
        names.append("twice")
        assert await store.read(REGISTRY, lambda to: to.identities.tenants()) == sorted(names)

    async def test_a_principal_stays_what_it_was_first_known_as(self, store: Store) -> None:
        assert await _ensure(store, "ada", PrincipalKind.USER) is PrincipalKind.USER
        assert await _ensure(store, "ada", PrincipalKind.AGENT) is PrincipalKind.USER
        assert await _ensure(store, "Ada", PrincipalKind.SERVICE) is PrincipalKind.SERVICE
        assert await _ensure(store, "ada", PrincipalKind.AGENT, "globex") is PrincipalKind.AGENT
        assert await _ensure(store, "ada", PrincipalKind.SERVICE) is PrincipalKind.USER

    @pytest.mark.parametrize("permissions", [frozenset(), frozenset(Permission)])
    @pytest.mark.parametrize("kind", list(PrincipalKind))
    async def test_every_field_of_a_key_comes_back(
        self, store: Store, permissions: frozenset[Permission], kind: PrincipalKind
    ) -> None:
        live = _key("live", permissions=permissions, kind=kind, created_at=at(3))
        revoked = replace(live, prefix="dead", revoked_at=at(4))
        limits: dict[str, Any] = {"namespaces": LOOKALIKES, "expires_at": at(9)}
        limited = replace(live, prefix="few", subjects=("~1", "~2"), last_used_at=at(5), **limits)
        limited = replace(limited, successor="live")
        await _add(store, live, revoked, limited)
        assert await _find(store, "live") == live
        assert await _find(store, "few") == limited
        assert await _find(store, "dead") == revoked

    async def test_a_key_is_found_by_its_whole_prefix_only(self, store: Store) -> None:
        keys = [_key(name, created_at=at(n)) for n, name in enumerate(LOOKALIKES)]
        await _add(store, *keys)
        for key in keys:
            assert await _find(store, key.prefix) == key
        for prefix in ("", "nam", "name  ", "%", "_", "nAME"):
            assert await _find(store, prefix) is None

    async def test_keys_are_listed_in_the_order_they_were_made(self, store: Store) -> None:
        keys = [
            _key(prefix, created_at=at(second), tenant=tenant)
            for second, (prefix, tenant) in enumerate(
                [("z", TENANT), ("b", "globex"), ("a", TENANT), ("m", TENANT)]
            )
        ]
        await _add(store, *keys)
        mine = [key for key in keys if key.tenant == TENANT]
        assert await store.read(REGISTRY, lambda to: to.identities.keys(TENANT)) == mine
        assert await store.read(REGISTRY, lambda to: to.identities.keys(None)) == keys
        assert await store.read(REGISTRY, lambda to: to.identities.keys("Acme")) == []

    async def test_a_revoked_key_stays_so_since_the_first_time(self, store: Store) -> None:
        await _add(store, _key("one"), _key("two"))
        assert await store.write(TENANT, lambda to: to.identities.revoke_key("one", at(5)))
        assert await store.write(TENANT, lambda to: to.identities.revoke_key("one", at(9)))
        assert await _find(store, "one") == _key("one", revoked_at=at(5))
        assert await _find(store, "two") == _key("two")
        assert not await store.write(TENANT, lambda to: to.identities.revoke_key("none", at(5)))
        assert await store.read(REGISTRY, lambda to: to.identities.keys(TENANT)) == [
            _key("one", revoked_at=at(5)),
            _key("two"),
        ]

    async def test_a_key_ends_for_its_successor_and_never_later_than_before(
        self, store: Store
    ) -> None:
        foreign = _key("foreign", tenant="globex")
        await _add(store, _key("one"), _key("two", expires_at=at(5)), _key("three"), foreign)

        async def end(prefix: str, successor: str = "new") -> bool:
            return await store.write(
                TENANT, lambda to: to.identities.end_key(prefix, successor, at(7))
            )

        assert await end("one")
        assert await end("two")
        assert not await end("one", "other")
        assert not await end("none")
        assert not await end("foreign")
        assert await _find(store, "one") == _key("one", successor="new", expires_at=at(7))
        assert await _find(store, "two") == _key("two", successor="new", expires_at=at(5))
        assert await _find(store, "three") == _key("three")
        assert await _find(store, "foreign") == foreign

    async def test_the_last_use_of_a_key_never_goes_back(self, store: Store) -> None:
        foreign = _key("three", tenant="globex")
        await _add(store, _key("one"), _key("two", last_used_at=at(7)), foreign)
        for second, kept in ((5, 5), (9, 9), (8, 9)):
            uses = dict.fromkeys(("one", "ONE", "none", "three"), at(second))
            await store.write(TENANT, lambda to, uses=uses: to.identities.touch_keys(uses))  # type: ignore[misc]
            assert await _find(store, "one") == _key("one", last_used_at=at(kept))
        assert await _find(store, "two") == _key("two", last_used_at=at(7))
        assert await _find(store, "three") == foreign
        await store.write(TENANT, lambda to: to.identities.touch_keys({}))

    async def test_a_second_key_under_a_prefix_does_not_take_its_place(self, store: Store) -> None:
        first = _key("one")
        await _add(store, first)
        with pytest.raises(Exception):  # noqa: B017, PT011 - which one is the backend's own affair
            await _add(store, _key("one", principal="eve", digest=b"other"))
        assert await _find(store, "one") == first

    async def test_limits_are_set_for_one_agent_and_cleared(self, store: Store) -> None:
        async def limits(agent: str, tenant: str = TENANT) -> AgentLimits:
            return await store.read(tenant, lambda to: to.identities.limits(agent))

        async def set_limits(agent: str, **fields: Any) -> None:
            set_to = AgentLimits(**fields)
            await store.write(TENANT, lambda to: to.identities.set_limits(agent, set_to))

        assert await limits("ada") == AgentLimits()
        await set_limits("ada", episodic_capacity=0)
        await set_limits("grace", episodic_capacity=7, pinned_namespaces=("b", "a"))
        assert await limits("ada") == AgentLimits(episodic_capacity=0)
        assert await limits("grace") == AgentLimits(
            episodic_capacity=7, pinned_namespaces=("b", "a")
        )
        assert await limits("Ada") == AgentLimits()
        assert await limits("ada", "globex") == AgentLimits()
        await set_limits("ada", episodic_capacity=5_000_000_000, pinned_namespaces=("x",))
        await set_limits("ada", pinned_namespaces=LOOKALIKES)
        assert await limits("ada") == AgentLimits(pinned_namespaces=LOOKALIKES)
        await set_limits("ada", episodic_capacity=5_000_000_000)
        assert await limits("ada") == AgentLimits(episodic_capacity=5_000_000_000)
        await set_limits("ada")
        await set_limits("ada")
        assert await limits("ada") == AgentLimits()
        assert (await limits("grace")).episodic_capacity == 7

    async def test_limits_are_told_apart_by_code_point(self, store: Store) -> None:
        async def script(transaction: Transaction) -> None:
            for number, agent in enumerate(LOOKALIKES):
                one = AgentLimits(episodic_capacity=number)
                await transaction.identities.set_limits(agent, one)
            for number, agent in enumerate(LOOKALIKES):
                read = await transaction.identities.limits(agent)
                assert read.episodic_capacity == number

        await store.write(TENANT, script)
