"""Tenants never meet: what one does is nowhere to be seen by another that uses the same names."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import msgspec

from memorywall.records.attachment import Attachment
from memorywall.records.coordinator import Coordinator
from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Entry, Scope
from memorywall.records.filter import EntryFilter
from memorywall.records.idempotency import DataKey, IdempotencyRecord
from memorywall.records.intent import DefaultPolicy, Intent, IntentGrant, IntentStatus
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.namespace import Access, Grant, Namespace
from memorywall.records.principal import ApiKey, Permission, PrincipalKind
from memorywall.records.recall import ContextOutcomes, EntryVector
from memorywall.records.task import Task, TaskStatus
from memorywall.records.tier import Eviction, Tier
from memorywall.records.usage import AgentLimits
from memorywall.storage.port import REGISTRY, Store, Transaction
from memorywall_testing.base import (
    NOW,
    StoreCase,
    at,
    log_event,
    make_entry,
    make_event,
    make_reply,
)
from memorywall_testing.work import (
    TASKS_IN_ORDER,
    make_attachment,
    make_coordinator,
    make_grant,
    make_intent,
    make_lease,
    make_task,
)

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
        make_entry(id="mem_5", key="five", tier=Tier.SHARED, owner="", **fields),
    ]


async def _fill(transaction: Transaction, tenant: str) -> None:
    for entry in _entries(tenant):
        assert await transaction.entries.insert(entry, NOW)
    await log_event(transaction, make_event(tenant=tenant))
    await transaction.namespaces.save(_namespace(tenant))
    await transaction.identities.add_tenant(tenant, NOW)
    await transaction.identities.ensure_principal("ada", PrincipalKind.AGENT, NOW)
    limits = AgentLimits(episodic_capacity=len(tenant), pinned_namespaces=(tenant,))
    await transaction.identities.set_limits("ada", limits)
    await transaction.replies.put(_reply(tenant))
    await transaction.data_keys.add(_data_key(tenant))
    await _fill_recall(transaction, tenant)
    await _fill_work(transaction, tenant)


async def _fill_recall(transaction: Transaction, tenant: str) -> None:
    recall = transaction.recall
    vectors = [EntryVector(f"mem_{number}", 1, tenant.encode()) for number in (1, 2, 3)]
    await recall.put_vectors("model", vectors)
    await recall.add_uses({"mem_1": 1, "mem_2": 2})
    await recall.add_outcomes({"mem_1": ContextOutcomes(1, 2, 3, 4)})
    assert await recall.acquire_lease("model", "holder", NOW, at(9)) == 0
    assert await recall.advance("model", "holder", 1)


async def _fill_work(transaction: Transaction, tenant: str) -> None:
    """One record of each kind, under the same ids in every tenant."""
    await log_event(transaction, make_event(tenant=tenant, stream="", intent_id="int_1"))
    assert await transaction.leases.acquire(_lease(tenant), NOW)
    await transaction.intents.insert(_intent(tenant))
    await transaction.intents.add_grant(_grant(tenant))
    await transaction.tasks.insert(_task(tenant))
    for fields in TASKS_IN_ORDER:
        await transaction.tasks.insert(make_task(tenant=tenant, name=tenant, **fields))
    await transaction.coordinators.insert(_coordinator(tenant))
    await transaction.attachments.insert(_attachment(tenant))
    await transaction.attachments.put_chunk("att_1", 0, tenant.encode())


def _lease(tenant: str) -> Lease:
    return make_lease(tenant=tenant, id="clm_1", purpose=tenant)


def _intent(tenant: str) -> Intent:
    return make_intent(
        tenant=tenant,
        id="int_1",
        title=tenant,
        default_policy=DefaultPolicy.OPEN,
        parent_intent_id="int_1",
        depends_on=("int_1",),
    )


def _grant(tenant: str) -> IntentGrant:
    return make_grant(tenant=tenant, id="acl_1", reason=tenant)


def _task(tenant: str) -> Task:
    return make_task(tenant=tenant, id="task_1", name=tenant, assigned_agent="ada")


def _coordinator(tenant: str) -> Coordinator:
    return make_coordinator(tenant=tenant, id="coord_1", metadata={"of": tenant})


def _attachment(tenant: str) -> Attachment:
    return make_attachment(tenant=tenant, id="att_1", filename=tenant)


def _namespace(tenant: str) -> Namespace:
    return Namespace(
        tenant=tenant,
        name="invoices",
        default=Access.READ,
        grants=(Grant(agent="ada", access=Access.WRITE),),
        created_at=NOW,
        updated_at=NOW,
    )


def _reply(tenant: str) -> IdempotencyRecord:
    return make_reply(tenant=tenant, reply=tenant.encode(), entry_ids=("mem_1",))


def _data_key(tenant: str) -> DataKey:
    return DataKey(
        tenant=tenant, id="dek_1", wrapped=tenant.encode(), wrapped_by="kek", created_at=NOW
    )


async def _picture(transaction: Transaction, tenant: str) -> dict[str, object]:
    """Everything a tenant can see of itself, under names that every tenant uses."""
    entries, tier = transaction.entries, Tier.EPISODIC
    within = VisibilityFilter(owners=("ada",), namespaces=("invoices",))
    opened = VisibilityFilter(
        tasks=("task",), intents=("intent",), coordinated=("intent",), episodic=("ada",)
    )
    filters = {
        "all": EntryFilter(tenant=tenant, limit=None),
        "page": EntryFilter(tenant=tenant, limit=1),
        "tags": EntryFilter(tenant=tenant, tags=("tag",)),
        "tags_any": EntryFilter(tenant=tenant, tags_any=("tag",)),
        "task": EntryFilter(tenant=tenant, task_id="task"),
        "intent": EntryFilter(tenant=tenant, intent_id="intent"),
        "key": EntryFilter(tenant=tenant, key="one"),
        "prefix": EntryFilter(tenant=tenant, namespace_prefix="inv"),
        "before": EntryFilter(tenant=tenant, before="mem_3"),
    }
    return {
        **{name: await entries.search(wanted, within, NOW) for name, wanted in filters.items()},
        **{
            f"opened {name}": await entries.search(wanted, opened, NOW)
            for name, wanted in filters.items()
        },
        **await _picture_of_work(transaction, tenant),
        **await _picture_of_recall(transaction, tenant),
        "get": [await entries.get(f"mem_{number}", NOW) for number in range(1, 6)],
        "find": [
            await entries.find(tier, "ada", "invoices", key) for key in ("one", "two", "late")
        ],
        "expired": await entries.expired(at(9), 9),
        "victim": await entries.first_to_evict(tier, "ada", Eviction.OLDEST, NOW, 1),
        "usage": [await entries.usage(tier, "ada", now) for now in (NOW, at(9))],
        "task usage": await entries.task_usage(tier, "task", NOW),
        "of task": await entries.of_task(tier, "task"),
        "of task in every tier": await entries.of_task(None, "task"),
        "namespace usage": await entries.namespace_usage(Tier.SEMANTIC, "invoices", NOW),
        "scope usage": await entries.namespace_usage(Tier.SHARED, "invoices", NOW),
        "usage by tier": await entries.usage_by_tier(),
        "tasks": await entries.tasks(tier, "ada", NOW),
        "span": await entries.span(tier, "ada", NOW),
        "events": await transaction.events.list("ada", 0, 99),
        "latest": await transaction.events.latest(),
        "namespace": await transaction.namespaces.get("invoices"),
        "namespaces": await transaction.namespaces.list_for("ada"),
        "limits": await transaction.identities.limits("ada"),
        "reply": await transaction.replies.get("ada", "key"),
        "data key": await transaction.data_keys.get("dek_1"),
        "current": await transaction.data_keys.current(),
    }


async def _picture_of_recall(transaction: Transaction, tenant: str) -> dict[str, object]:
    """The data of recall, and its reads."""
    entries, recall = transaction.entries, transaction.recall
    ids = [f"mem_{number}" for number in range(1, 6)]
    many = await entries.get_many(ids, NOW)
    return {
        "vectors": await recall.vectors("model", ids),
        "uses": await recall.uses(ids),
        "position": await recall.position("model"),
        "many": sorted(many, key=lambda entry: entry.id),
        "of owner": await entries.of_owner(Tier.EPISODIC, "ada", 9, "mem_1"),
        "changes": await transaction.events.list_of_entries(0, 9),
    }


async def _picture_of_work(transaction: Transaction, tenant: str) -> dict[str, object]:
    """The same for leases, intents, tasks, coordinators and attachments."""
    leases, intents, tasks = transaction.leases, transaction.intents, transaction.tasks
    claim, ready = LeaseKind.CLAIM, TaskStatus.READY
    return {
        "intent's log": await transaction.events.list_of_intent("int_1", 0, 99),
        "lease": await leases.current(claim, "shared/global", "report"),
        "lease by id": await leases.get("clm_1"),
        "held": [await leases.find_held(token, "ada", NOW) for token in range(1, 9)],
        "leases": await leases.list(claim, "shared/global", NOW),
        "held by": await leases.held_by(claim, "ada", NOW),
        "lapsed": await leases.expired(at(99), 9),
        "intent": await intents.get("int_1"),
        "intents": await intents.list("ada", ("int_1",), None, 9, 0),
        "intents of nobody": await intents.list("", (), IntentStatus.ACTIVE, 9, 0),
        "children": await intents.children("int_1"),
        "dependents": await intents.dependents("int_1"),
        "grants": await intents.grants("int_1"),
        "grants to": await intents.grants_to("grace", NOW),
        "task": await tasks.get("task_1"),
        "tasks of the intent": await tasks.list("int_1", None, 9, 0),
        "how many tasks": await tasks.count("int_1"),
        "assigned": await tasks.assigned("ada", ready, 9, 0),
        "open": await tasks.open_of("ada"),
        "intents of the agent": await tasks.intents_of("ada"),
        "works in the intent": await tasks.works_in("ada", "int_1"),
        "unassigned": await tasks.unassigned(("int_1",), 9),
        "dependents of the task": await tasks.dependents("int_1", "task_1"),
        "completed tasks": sorted(await tasks.completed(("task_1", "task_4"))),
        "coordinator": await transaction.coordinators.get("coord_1"),
        "coordinators": await transaction.coordinators.list("int_1"),
        "attachment": await transaction.attachments.get("att_1"),
        "attachments": await transaction.attachments.list("int_1"),
        "content": list(await transaction.attachments.chunks("att_1")),
    }


def _key(tenant: str, number: int) -> ApiKey:
    return ApiKey(
        prefix=f"{number} of {tenant}",
        digest=b"digest",
        tenant=tenant,
        principal="ada",
        kind=PrincipalKind.AGENT,
        permissions=frozenset({Permission.READ}),
        created_at=at(number),
    )


async def _seen(store: Store, tenant: str) -> dict[str, object]:
    return await store.read(tenant, lambda to: _picture(to, tenant))


async def _change_everything(transaction: Transaction, tenant: str) -> None:
    """Uses every method that changes something, under the names every tenant uses."""
    entries = transaction.entries
    first, second, *_ = _entries(tenant)
    await entries.touch({"mem_1": at(50), "mem_2": at(60)})
    await entries.replace(
        first,
        msgspec.structs.replace(
            first, version=2, tags=("other",), pinned=True, value=b"1", size=1, expires_at=at(1)
        ),
    )
    await entries.remove(second)
    await entries.insert(make_entry(tenant=tenant, key="late", id="mem_4"), NOW)
    for _ in range(3):
        await log_event(transaction, make_event(tenant=tenant))
    await transaction.namespaces.save(
        msgspec.structs.replace(_namespace(tenant), default=Access.NONE, grants=(), version=2)
    )
    await transaction.identities.ensure_principal("grace", PrincipalKind.USER, NOW)
    await transaction.identities.set_limits("ada", AgentLimits())
    await transaction.replies.prune(at(99))
    await transaction.data_keys.add(
        DataKey(tenant=tenant, id="dek_2", wrapped=b"2", wrapped_by="kek", created_at=NOW)
    )
    await transaction.recall.put_vectors("model", [EntryVector("mem_1", 2, b"other")])
    await transaction.recall.add_uses({"mem_1": 5, "mem_3": 5})
    await transaction.recall.add_outcomes(dict.fromkeys(("mem_1", "mem_3"), ContextOutcomes(5)))
    assert await transaction.recall.advance("model", "holder", 2)
    assert await transaction.recall.remove_other_models("other", 9) == 2
    await _change_all_work(transaction, tenant)


async def _change_all_work(transaction: Transaction, tenant: str) -> None:
    """The same for leases, intents, tasks, coordinators and attachments."""
    leases, intents, attachments = transaction.leases, transaction.intents, transaction.attachments
    held = await leases.get("clm_1")
    assert held is not None
    assert await leases.extend(held.token, "ada", at(20), NOW)
    assert await leases.end(held.token)
    for number in range(3):
        # Taken over by another each time the one before has run out.
        lease = make_lease(tenant=tenant, holder="grace", expires_at=at(number * 5 + 5))
        assert await leases.acquire(lease, at(number * 5))
    await intents.replace(
        msgspec.structs.replace(
            _intent(tenant), parent_intent_id=None, depends_on=(), status=IntentStatus.ABANDONED
        )
    )
    assert await intents.remove_grant("int_1", "acl_1")
    await transaction.tasks.replace(
        msgspec.structs.replace(_task(tenant), status=TaskStatus.FAILED, assigned_agent=None)
    )
    await transaction.coordinators.replace(
        msgspec.structs.replace(_coordinator(tenant), resigned_at=NOW)
    )
    await attachments.replace(msgspec.structs.replace(_attachment(tenant), size=5))
    assert await attachments.remove("att_1")


class TenantsConformance(StoreCase):
    """Every method under the same names in several tenants."""

    async def test_a_tenant_sees_nothing_of_another(self, store: Store) -> None:
        blank = {tenant: await _seen(store, tenant) for tenant in _PROBED}
        await store.write("acme", lambda to: _fill(to, "acme"))
        for tenant in _PROBED[1:]:
            seen = await _seen(store, tenant)
            assert seen == blank[tenant], tenant
        seen = await _seen(store, "acme")
        assert [name for name in seen if seen[name] == blank["acme"][name]] == []

    async def test_changes_of_a_tenant_do_not_affect_another(self, store: Store) -> None:
        await store.write("acme", lambda to: _fill(to, "acme"))
        alone = await _seen(store, "acme")
        await store.write("globex", lambda to: _fill(to, "globex"))
        assert await _seen(store, "acme") == alone
        other = await _seen(store, "globex")
        await store.write("globex", lambda to: _change_everything(to, "globex"))
        assert await _seen(store, "globex") != other
        assert await _seen(store, "acme") == alone

    async def test_the_registry_has_the_tenants_and_keys_of_all(self, store: Store) -> None:
        """All of it at one moment, whichever tenant it was written by."""
        tenants = ("globex", "acme", "Acme", "\U0001f44d")
        keys = {
            tenant: [_key(tenant, 4 * round_number + place) for round_number in range(2)]
            for place, tenant in enumerate(tenants)
        }
        for tenant in tenants:

            async def fill(to: Transaction, tenant: str = tenant) -> None:
                assert await to.identities.add_tenant(tenant, NOW)
                await to.data_keys.add(_data_key(tenant))
                for key in keys[tenant]:
                    await to.identities.add_key(key)

            await store.write(tenant, fill)
        revoked = replace(keys["acme"][1], revoked_at=at(50))
        assert await store.write(
            "acme", lambda to: to.identities.revoke_key(revoked.prefix, at(50))
        )
        keys["acme"][1] = revoked

        async def look(to: Transaction) -> None:
            assert await to.identities.tenants() == sorted(tenants)
            whole = sorted(itertools.chain(*keys.values()), key=lambda key: key.created_at)
            assert await to.identities.keys(None) == whole
            for key in whole:
                assert await to.identities.find_key(key.prefix) == key
            for tenant in tenants:
                assert await to.identities.keys(tenant) == keys[tenant]
            assert await to.identities.keys("ACME") == []
            assert await to.identities.find_key("0 of acme") is None
            assert await to.data_keys.any() in [_data_key(tenant) for tenant in tenants]

        await store.read(REGISTRY, look)
