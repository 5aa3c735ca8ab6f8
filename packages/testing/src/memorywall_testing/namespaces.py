"""Namespaces and their grants."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memorywall.records.namespace import Access, Grant, Namespace
from memorywall.storage.port import Store, Transaction
from memorywall.storage.sql.record_table import VALUE_SCHEMAS
from memorywall_testing.base import NOW, TENANT, StoreCase, at
from memorywall_testing.names import LOOKALIKES
from memorywall_testing.records import make_record, page, put_records


def _namespace(name: str = "policies", **fields: Any) -> Namespace:
    return Namespace(
        **{
            "tenant": TENANT,
            "name": name,
            "default": Access.READ,
            "created_at": NOW,
            "updated_at": NOW,
            **fields,
        }
    )


def _grants(**levels: Access) -> tuple[Grant, ...]:
    return tuple(Grant(agent=agent, access=level) for agent, level in levels.items())


async def _save(store: Store, *namespaces: Namespace) -> None:
    async def script(transaction: Transaction) -> None:
        for namespace in namespaces:
            await transaction.namespaces.save(namespace)

    await store.write(TENANT, script)


async def _get(store: Store, name: str = "policies") -> Namespace | None:
    return await store.read(TENANT, lambda to: to.namespaces.get(name))


async def _list_for(store: Store, agent: str) -> list[Namespace]:
    return await store.read(TENANT, lambda to: to.namespaces.list_for(agent))


class NamespacesConformance(StoreCase):
    """`port.Namespaces`."""

    async def test_unknown_namespace_returns_none(self, store: Store) -> None:
        assert await _get(store) is None
        assert await _list_for(store, "ada") == []

    @pytest.mark.parametrize("level", list(Access))
    async def test_every_field_of_a_namespace_comes_back(self, store: Store, level: Access) -> None:
        namespace = _namespace(
            default=level,
            grants=_grants(zoe=level, ada=Access.ADMIN, mia=Access.NONE),
            version=4,
            created_at=at(1),
            updated_at=at(2),
            last_write_wins=True,
            schemas="digest",
            indexes='[["value.a",null],["value.\u00fc","2026-02-02T02:40:00.000Z"]]',
        )
        await _save(store, namespace)
        assert await _get(store) == namespace
        assert [one.path for one in namespace.indexed_paths] == ["value.a", "value.\u00fc"]
        (listed,) = await _list_for(store, "zoe")
        assert listed == msgspec.structs.replace(namespace, grants=_grants(zoe=level))

    async def test_save_replaces_the_namespace_and_its_grants(self, store: Store) -> None:
        first = _namespace(grants=_grants(ada=Access.ADMIN, grace=Access.READ, linus=Access.WRITE))
        other = _namespace("other", grants=_grants(ada=Access.READ))
        await _save(store, first, other)
        second = msgspec.structs.replace(
            first,
            default=Access.NONE,
            grants=_grants(linus=Access.ADMIN, zoe=Access.READ),
            version=2,
            updated_at=at(5),
        )
        await _save(store, second)
        assert await _get(store) == second
        assert await _get(store, "other") == other
        third = msgspec.structs.replace(second, grants=(), version=3)
        await _save(store, third)
        assert await _get(store) == third

    async def test_schemas_are_removed_with_their_namespace(self, store: Store) -> None:
        gone, kept = (make_record(VALUE_SCHEMAS, namespace=name) for name in ("policies", "other"))
        await _save(store, _namespace(), _namespace("other"))
        await put_records(store, VALUE_SCHEMAS, gone, kept)
        assert await store.write(TENANT, lambda to: to.namespaces.remove("policies"))
        assert not await store.write(TENANT, lambda to: to.namespaces.remove("policies"))
        assert list(await page(store, VALUE_SCHEMAS)) == [kept]

    async def test_a_list_carries_at_most_the_grant_of_one_agent(self, store: Store) -> None:
        names = ["b", "a", "c"]
        await _save(
            store,
            _namespace("b", grants=_grants(ada=Access.NONE, grace=Access.READ)),
            _namespace("a", grants=_grants(grace=Access.ADMIN)),
            _namespace("c", default=Access.NONE),
        )
        listed = await _list_for(store, "ada")
        assert [one.name for one in listed] == sorted(names)
        assert {one.name: one.grants for one in listed} == {
            "a": (),
            "b": _grants(ada=Access.NONE),
            "c": (),
        }
        assert listed[2] == _namespace("c", default=Access.NONE)
        assert [one.grants for one in await _list_for(store, "nobody")] == [(), (), ()]
        assert [one.grants for one in await _list_for(store, "Ada")] == [(), (), ()]

    async def test_names_and_agents_are_told_apart_by_code_point(self, store: Store) -> None:
        grants = _grants(**dict.fromkeys(LOOKALIKES, Access.WRITE))
        namespaces = [_namespace(name, version=n) for n, name in enumerate(LOOKALIKES, start=1)]
        everyone = _namespace("everyone", grants=grants)
        await _save(store, *namespaces, everyone)
        for namespace in namespaces:
            assert await _get(store, namespace.name) == namespace
        assert await _get(store, "everyone") == everyone
        listed = await _list_for(store, "Name")
        assert [one.name for one in listed] == sorted([*LOOKALIKES, "everyone"])
        granted = next(one for one in listed if one.name == "everyone")
        assert granted.grants == _grants(Name=Access.WRITE)

    async def test_a_thousand_grants_and_a_thousand_namespaces(self, store: Store) -> None:
        grants = _grants(**{f"agent-{number}": Access.READ for number in range(1_000)})
        large = _namespace("large", grants=grants)
        many = [_namespace(f"space-{number:04d}") for number in range(1_000)]
        await _save(store, large, *many)
        assert await _get(store, "large") == large
        listed = await _list_for(store, "agent-7")
        assert len(listed) == 1_001
        assert listed[0].grants == _grants(**{"agent-7": Access.READ})
