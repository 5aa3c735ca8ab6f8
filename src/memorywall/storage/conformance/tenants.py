"""Tenants never meet: what one does is nowhere to be seen by another that uses the same names."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.records.entry import Entry, Scope
from memorywall.records.filter import Filter
from memorywall.records.idempotency import DataKey, KeptReply
from memorywall.records.namespace import Access, Grant, Namespace
from memorywall.records.principal import PrincipalKind
from memorywall.records.tier import Tier
from memorywall.storage.conformance.base import (
    NOW,
    StoreCase,
    at,
    make_entry,
    make_event,
    reach,
)
from memorywall.storage.port import Store, Transaction

_PROBED = ("acme", "ACME", "acme ", "", "globex")


def _entries(tenant: str) -> list[Entry]:
    """The same ids, names, tags and scopes in every tenant."""
    fields: dict[str, Any] = {
        "tenant": tenant,
        "tags": ("tag",),
        "scope": Scope(task_id="task", intent_id="intent"),
        "value": b'"of %s"' % tenant.encode(),
    }
    return [
        make_entry(id="mem_1", key="one", tier=Tier.EPISODIC, **fields),
        make_entry(id="mem_2", key="two", tier=Tier.EPISODIC, expires_at=at(5), **fields),
        make_entry(id="mem_3", key="three", tier=Tier.SEMANTIC, owner="", **fields),
    ]


async def _fill(transaction: Transaction, tenant: str) -> None:
    for entry in _entries(tenant):
        assert await transaction.entries.insert(entry, NOW)
    await transaction.events.append(make_event(tenant=tenant))
    await transaction.namespaces.save(_namespace(tenant))
    await transaction.identities.add_tenant(tenant, NOW)
    await transaction.identities.ensure_principal(tenant, "ada", PrincipalKind.AGENT, NOW)
    await transaction.identities.set_capacity(tenant, "ada", len(tenant))
    await transaction.replies.put(_reply(tenant))
    await transaction.data_keys.add(_data_key(tenant))


def _namespace(tenant: str) -> Namespace:
    return Namespace(
        tenant=tenant,
        name="invoices",
        default=Access.READ,
        grants=(Grant(agent="ada", access=Access.WRITE),),
        created_at=NOW,
        updated_at=NOW,
    )


def _reply(tenant: str) -> KeptReply:
    return KeptReply(
        tenant=tenant,
        principal="ada",
        key="key",
        fingerprint=b"f",
        status=201,
        reply=tenant.encode(),
        sealing_key="dek_1",
        entry_ids=("mem_1",),
        created_at=NOW,
    )


def _data_key(tenant: str) -> DataKey:
    return DataKey(
        tenant=tenant, id="dek_1", wrapped=tenant.encode(), wrapped_by="kek", created_at=NOW
    )


async def _picture(transaction: Transaction, tenant: str) -> dict[str, object]:
    """Everything a tenant can see of itself, under names that every tenant uses."""
    entries, tier = transaction.entries, Tier.EPISODIC
    within = reach("ada", namespaces=["invoices"])
    filters = {
        "all": Filter(tenant=tenant, limit=None),
        "page": Filter(tenant=tenant, limit=1),
        "tags": Filter(tenant=tenant, tags=("tag",)),
        "tags_any": Filter(tenant=tenant, tags_any=("tag",)),
        "task": Filter(tenant=tenant, task_id="task"),
        "intent": Filter(tenant=tenant, intent_id="intent"),
        "key": Filter(tenant=tenant, key="one"),
        "prefix": Filter(tenant=tenant, namespace_prefix="inv"),
        "before": Filter(tenant=tenant, before="mem_3"),
    }
    return {
        **{name: await entries.search(wanted, within, NOW) for name, wanted in filters.items()},
        "get": [await entries.get(tenant, f"mem_{number}", NOW) for number in range(1, 6)],
        "find": [
            await entries.find(tenant, tier, "ada", "invoices", key)
            for key in ("one", "two", "late")
        ],
        "expired": await entries.expired(tenant, at(9), 9),
        "victim": await entries.least_recently_used(tenant, tier, "ada"),
        "usage": await entries.usage(tenant, tier, "ada", NOW),
        "usage later": await entries.usage(tenant, tier, "ada", at(9)),
        "count": await entries.count_task(tenant, tier, "task", NOW),
        "tasks": await entries.tasks(tenant, tier, "ada", NOW),
        "span": await entries.span(tenant, tier, "ada", NOW),
        "events": await transaction.events.list(tenant, "ada", 0, 99),
        "latest": await transaction.events.latest(tenant),
        "namespace": await transaction.namespaces.get(tenant, "invoices"),
        "namespaces": await transaction.namespaces.list_for(tenant, "ada"),
        "keys": await transaction.identities.keys(tenant),
        "capacity": await transaction.identities.capacity(tenant, "ada"),
        "reply": await transaction.replies.get(tenant, "ada", "key"),
        "data key": await transaction.data_keys.get(tenant, "dek_1"),
        "current": await transaction.data_keys.current(tenant),
    }


async def _seen(store: Store, tenant: str) -> dict[str, object]:
    return await store.read(lambda to: _picture(to, tenant))


async def _change_everything(transaction: Transaction, tenant: str) -> None:
    """Uses every method that changes something, under the names every tenant uses."""
    entries = transaction.entries
    first, second, _ = _entries(tenant)
    await entries.touch(tenant, {"mem_1": at(50), "mem_2": at(60)})
    await entries.replace(
        first,
        msgspec.structs.replace(
            first, version=2, tags=("other",), pinned=True, value=b"1", size=1, expires_at=at(1)
        ),
    )
    await entries.remove(second)
    await entries.insert(make_entry(tenant=tenant, key="late", id="mem_4"), NOW)
    for _ in range(3):
        await transaction.events.append(make_event(tenant=tenant))
    await transaction.namespaces.save(
        msgspec.structs.replace(_namespace(tenant), default=Access.NONE, grants=(), version=2)
    )
    await transaction.identities.ensure_principal(tenant, "grace", PrincipalKind.USER, NOW)
    await transaction.identities.set_capacity(tenant, "ada", None)
    await transaction.replies.prune(tenant, at(99))
    await transaction.data_keys.add(
        DataKey(tenant=tenant, id="dek_2", wrapped=b"2", wrapped_by="kek", created_at=NOW)
    )


class TenantsConformance(StoreCase):
    """Every method under the same names in several tenants."""

    async def test_a_tenant_sees_nothing_of_another(self, store: Store) -> None:
        blank = {tenant: await _seen(store, tenant) for tenant in _PROBED}
        await store.write(lambda to: _fill(to, "acme"))
        for tenant in _PROBED[1:]:
            seen = await _seen(store, tenant)
            assert seen == blank[tenant], tenant
        seen = await _seen(store, "acme")
        assert [name for name in seen if seen[name] == blank["acme"][name]] == ["keys"]

    async def test_what_a_tenant_changes_changes_nothing_of_another(self, store: Store) -> None:
        await store.write(lambda to: _fill(to, "acme"))
        alone = await _seen(store, "acme")
        await store.write(lambda to: _fill(to, "globex"))
        assert await _seen(store, "acme") == alone
        other = await _seen(store, "globex")
        await store.write(lambda to: _change_everything(to, "globex"))
        assert await _seen(store, "globex") != other
        assert await _seen(store, "acme") == alone
