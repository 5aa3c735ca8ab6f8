"""Data keys belong to agents, and go when an agent is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from memorywall.assembly import open_memory
from memorywall.records.entry import Entry
from memorywall.records.errors import ConfigurationError, KeyUnavailableError, ValidationError
from memorywall.records.event import Event, WorkEventType
from memorywall.records.idempotency import IdempotencyRecord
from memorywall.records.principal import Permission
from memorywall.records.tier import Tier
from memorywall.service.administration.tenants import set_capacity
from memorywall.service.encryption import cipher as encryption
from memorywall.service.erasure.entry_erasure import ErasureReport, forget
from memorywall.service.requests.services import SharedServices
from memorywall.storage.port import Transaction
from tests.http.checks import BATCH, MARKER, MEMORY, assert_problem, make
from tests.support.backend import is_on_file
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

TENANT = "default"
SECRET: dict[str, Any] = {"value": {"text": MARKER}, "sensitivity": "restricted"}
_TENANT_KEY = ""
_OF_AGENTS = ("working", "session", "episodic")
_OF_NAMESPACES = ("semantic", "procedural")


@asynccontextmanager
async def _beside(service: RunningService) -> AsyncIterator[SharedServices]:
    """The context of a second process on the same store, with nothing cached."""
    async with open_memory(
        service.services.settings, exclusive=False, clock=service.clock
    ) as context:
        yield context


async def _stored(service: SharedServices, entry_id: str, tenant: str = TENANT) -> Entry:
    """An entry as it lies in the store."""
    entry = await service.store.read(tenant, lambda to: to.entries.get(entry_id, service.now()))
    assert entry is not None
    return entry


async def _subject(service: SharedServices, key_id: str | None, tenant: str = TENANT) -> str | None:
    """Whose a data key is; None when it is gone."""
    assert key_id is not None
    key = await service.store.read(tenant, lambda to: to.data_keys.get(key_id))
    return None if key is None else key.owner


async def _opened(service: SharedServices, entry_id: str, tenant: str = TENANT) -> bytes:
    stored = await _stored(service, entry_id, tenant)
    return (await service.store.read(tenant, lambda to: service.cipher.open(to, stored))).value


async def _log(service: SharedServices, tenant: str = TENANT) -> list[Event]:
    """The agent's stream, to the end."""
    return await service.store.read(tenant, lambda to: to.events.list("ada", 0, 10_000))


async def _all(service: SharedServices, agent: str, tenant: str = TENANT) -> list[Entry]:
    async def script(transaction: Transaction) -> list[Entry]:
        found: list[Entry] = []
        for tier in Tier:
            found += await transaction.entries.of_owner(tier, agent, 10_000)
        return found

    return await service.store.read(tenant, script)


async def _kept(service: SharedServices, key: str) -> IdempotencyRecord | None:
    return await service.store.read(TENANT, lambda to: to.replies.get("ada", key))


@pytest.mark.parametrize("tier", [*_OF_AGENTS, *_OF_NAMESPACES])
async def test_data_is_sealed_with_the_key_of_its_owner(service: RunningService, tier: str) -> None:
    ada, context = await service.agent("ada"), service.services
    made = await make(ada, memory_type=tier, **SECRET)
    subject = "ada" if tier in _OF_AGENTS else _TENANT_KEY
    stored = await _stored(context, made["id"])
    assert await _subject(context, stored.sealing_key) == subject
    changed = await ada.patch(
        f"{MEMORY}/{made['id']}", json={"tags": ["t"]}, headers={"If-Match": "1"}
    )
    assert changed.is_success
    assert (await _stored(context, made["id"])).sealing_key == stored.sealing_key
    async with _beside(service) as other:
        assert MARKER.encode() in await _opened(other, made["id"])


async def test_each_agent_has_a_key_and_each_tenant_others(service: RunningService) -> None:
    keys = []
    for agent, tenant in (("ada", TENANT), ("grace", TENANT), ("ada", "other")):
        made = await make(await service.agent(agent, tenant), **SECRET)
        keys.append((await _stored(service.services, made["id"], tenant)).sealing_key)
    assert len(set(keys)) == 3
    async with _beside(service) as context:
        assert await _subject(context, keys[1]) == "grace"
        assert await _subject(context, keys[2]) is None


async def test_a_kept_reply_is_sealed_with_the_key_of_its_principal(
    service: RunningService,
) -> None:
    ada, context = await service.agent("ada"), service.services
    first = await ada.post(
        MEMORY, json=draft(memory_type="semantic"), headers={"Idempotency-Key": "k"}
    )
    kept = await _kept(context, "k")
    assert kept is not None
    assert await _subject(context, kept.sealing_key) == "ada"
    again = await ada.post(
        MEMORY, json=draft(memory_type="semantic"), headers={"Idempotency-Key": "k"}
    )
    assert (again.status_code, again.content) == (201, first.content)


async def test_unsealed_write_creates_no_data_key(service: RunningService) -> None:
    ada = await service.agent("ada", "other")
    made = await make(ada)
    changed = await ada.patch(f"{MEMORY}/{made['id']}", json={"value": {}}, headers=_at(1))
    assert changed.is_success
    for subject in ("ada", ""):
        assert await _current(service.services, subject, "other") is None


async def _current(service: SharedServices, subject: str, tenant: str = TENANT) -> object:
    return await service.store.read(tenant, lambda to: to.data_keys.current(subject))


def _at(version: int) -> dict[str, str]:
    return {"If-Match": str(version)}


async def _seal_as_before(service: SharedServices, entry_id: str) -> Entry:
    """Seals an entry with the tenant's key, as all were before agents had keys."""
    await service.cipher.prepare(service.store, TENANT, service.now())

    async def script(transaction: Transaction) -> Entry:
        stored = await transaction.entries.get(entry_id, service.now())
        assert stored is not None
        opened = await service.cipher.open(transaction, stored)
        key = await service.cipher.key_id(transaction, TENANT, "", service.now())
        binding = f"{TENANT}\0{entry_id}\0{stored.version}\0{key}"
        _, value = service.cipher.seal_bytes(TENANT, opened.value, binding)
        new = msgspec.structs.replace(stored, value=value, sealing_key=key)
        await transaction.entries.replace(stored, new)
        return new

    return await service.store.write(TENANT, script)


async def test_value_sealed_before_agent_keys_opens_and_changes(service: RunningService) -> None:
    ada, context = await service.agent("ada"), service.services
    made = await make(ada, **SECRET)
    path = f"{MEMORY}/{made['id']}"
    old = await _seal_as_before(context, made["id"])
    assert await _subject(context, old.sealing_key) == _TENANT_KEY
    assert (await ada.get(path)).json()["value"] == SECRET["value"]
    assert (await ada.patch(path, json={"tags": ["t"]}, headers=_at(1))).is_success
    new = await _stored(context, made["id"])
    assert await _subject(context, new.sealing_key) == "ada"
    assert (await ada.get(path)).json()["value"] == SECRET["value"]


async def _furnish(service: RunningService, agent: str, tenant: str = TENANT) -> httpx.AsyncClient:
    """Memory of every kind: in all tiers, sealed and not, with kept replies and limits."""
    client = await service.agent(agent, tenant)
    for tier in (*_OF_AGENTS, *_OF_NAMESPACES):
        place = {"memory_type": tier, "namespace": f"of-{agent}"}
        await make(client, f"{agent}-open", tags=["t"], **place)
        await make(client, f"{agent}-sealed", **place, **SECRET)
    await make(client, f"{agent}-ending", ttl="duration:PT1S")
    for number in range(3):
        body = draft(f"{agent}-{number}")
        assert (
            await client.post(MEMORY, json=body, headers={"Idempotency-Key": f"k{number}"})
        ).is_success
    await set_capacity(service.services, tenant, agent, 7)
    return client


async def test_all_of_an_agent_goes_and_nothing_else(service: RunningService) -> None:
    ada = await _furnish(service, "ada")
    others = [(await _furnish(service, "grace"), "grace", TENANT)]
    others.append((await _furnish(service, "ada", "other"), "ada", "other"))
    before = [await _all(service.services, agent, tenant) for _, agent, tenant in others]
    context = service.services
    shared = await _all(context, "")
    sealed = [one for one in await _all(context, "ada") if one.sealing_key is not None]
    assert (len(sealed), len(shared)) == (3, 8)
    events = await _log(context)
    service.clock.advance(2)

    gone = await forget(context, TENANT, "ada")
    assert gone == ErasureReport(
        entries={
            Tier.WORKING: 6,
            Tier.SESSION: 2,
            Tier.EPISODIC: 2,
            Tier.SEMANTIC: 0,
            Tier.PROCEDURAL: 0,
            Tier.SHARED: 0,
        },
        kept_replies=3,
        limits=1,
        groups=0,
        api_keys=1,
        data_keys=1,
        bytes_left_in_files=gone.bytes_left_in_files,
        in_ledger=is_on_file(),
    )
    assert await _all(context, "ada") == []
    assert_problem(await ada.get(MEMORY), 401)
    assert await _current(context, "ada") is None
    assert await _subject(context, sealed[0].sealing_key) is None
    assert [await _kept(context, f"k{number}") for number in range(3)] == [None] * 3
    limits = await context.store.read(TENANT, lambda to: to.identities.limits("ada"))
    assert limits.episodic_capacity is None
    told = (await _log(context))[len(events) :]
    assert [one.type for one in told] == ["memory.deleted"] * 10 + ["agent.forgotten"]
    assert {one.actor for one in told} == {"system"}
    assert (told[-1].agent_id, told[-1].data) == ("ada", b"{}")

    assert await _all(context, "") == shared
    for (client, agent, tenant), were in zip(others, before, strict=True):
        assert await _all(context, agent, tenant) == were
        reply = await client.get(MEMORY, params={"namespace": "*", "limit": 100})
        assert reply.text.count(MARKER) >= 3
        assert await _current(context, agent, tenant) is not None
        again = await client.post(
            MEMORY, json=draft(f"{agent}-0"), headers={"Idempotency-Key": "k0"}
        )
        assert again.status_code == 201
    # What the agent wrote to shared memory opens, for it is sealed with the tenant's key.
    grace = others[0][0]
    found = (await grace.get(MEMORY, params={"key": "ada-sealed"})).json()["entries"]
    assert [one["value"] for one in found] == [SECRET["value"]] * 2


async def test_forgetting_again_has_no_effect(service: RunningService) -> None:
    await _furnish(service, "ada")
    await forget(service.services, TENANT, "ada")
    events = await _log(service.services)
    again = await forget(service.services, TENANT, "ada")
    assert sum(again.entries.values()) == 0
    assert (again.kept_replies, again.limits, again.api_keys, again.data_keys) == (0, 0, 0, 0)
    nobody = await forget(service.services, TENANT, "nobody")
    assert sum(nobody.entries.values()) == 0
    assert await _log(service.services) == events


async def test_unknown_tenant_or_invalid_agent_is_refused(service: RunningService) -> None:
    with pytest.raises(ConfigurationError, match="tenant not found"):
        await forget(service.services, "nowhere", "ada")
    for agent in ("", "a/b", " "):
        with pytest.raises(ValidationError):
            await forget(service.services, TENANT, agent)


async def test_interrupted_run_is_completed_by_another_run(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, context = await service.agent("ada"), service.services
    for start in range(0, 250, 125):
        entries = [draft(f"k{start + number}", **SECRET) for number in range(125)]
        assert (await ada.post(BATCH, json={"entries": entries})).is_success
    write = context.store.write
    done = 0

    async def interrupted(tenant: str, script: Any, **options: Any) -> Any:
        nonlocal done
        if done == 3:
            raise OSError("the power has gone")
        done += 1
        return await write(tenant, script, **options)

    with monkeypatch.context() as patched:
        patched.setattr(context.store, "write", interrupted)
        with pytest.raises(OSError, match="power"):
            await forget(context, TENANT, "ada")
    left = await _all(context, "ada")
    assert len(left) == 50
    assert await _current(context, "ada") is not None
    assert WorkEventType.AGENT_FORGOTTEN not in {one.type for one in await _log(context)}
    gone = await forget(context, TENANT, "ada")
    assert (gone.entries[Tier.WORKING], gone.data_keys) == (50, 1)
    kinds = [one.type for one in await _log(context)]
    assert (kinds.count("memory.deleted"), kinds.count("agent.forgotten")) == (250, 1)


async def test_copy_of_sealed_data_cannot_be_opened_after_erasure(service: RunningService) -> None:
    ada, context = await service.agent("ada"), service.services
    made = await make(ada, **SECRET)
    copy = await _stored(context, made["id"])
    await forget(context, TENANT, "ada")
    async with _beside(service) as other:
        # As from a dead tuple, the log, or a replica.
        await other.store.write(TENANT, lambda to: to.entries.insert(copy, other.now()))
        for one in (other, context):
            with pytest.raises(KeyUnavailableError):
                await _opened(one, made["id"])


async def _forget_beside(service: RunningService) -> None:
    """Another process, where no server is told of it, forgets the agent."""
    async with _beside(service) as other:
        gone = await forget(other, TENANT, "ada")
        assert gone.data_keys == 1


async def _write(ada: httpx.AsyncClient, way: str) -> str:
    """Has a value sealed; returns the id of its entry."""
    if way == "batch":
        reply = await ada.post(BATCH, json={"entries": [draft("second", **SECRET)]})
        assert reply.is_success
        return str(reply.json()["entries"][0]["id"])
    if way == "change":
        made = await make(ada, "second", value=SECRET["value"])
        change = {"sensitivity": "restricted"}
        path = f"{MEMORY}/{made['id']}"
        assert (await ada.patch(path, json=change, headers=_at(1))).is_success
        return str(made["id"])
    return str((await make(ada, "second", **SECRET))["id"])


@pytest.mark.parametrize("way", ["create", "change", "batch"])
async def test_nothing_is_sealed_with_a_key_that_another_process_has_destroyed(
    service: RunningService, way: str
) -> None:
    first = await make(await service.agent("ada"), "first", **SECRET)
    destroyed = (await _stored(service.services, first["id"])).sealing_key
    await _forget_beside(service)
    entry_id = await _write(await service.agent("ada"), way)
    async with _beside(service) as restarted:
        key = (await _stored(restarted, entry_id)).sealing_key
        assert key != destroyed
        assert await _subject(restarted, key) == "ada"
        assert MARKER.encode() in await _opened(restarted, entry_id)


async def test_no_reply_is_kept_under_a_key_that_another_process_has_destroyed(
    service: RunningService,
) -> None:
    headers, body = {"Idempotency-Key": "k"}, draft()
    ada = await service.agent("ada")
    first = await ada.post(MEMORY, json=body, headers=headers)
    await _forget_beside(service)
    ada = await service.agent("ada")
    second = await ada.post(MEMORY, json=body, headers=headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json()["id"] != first.json()["id"]
    async with _beside(service) as restarted:
        ada = await RunningService(restarted, service.clock).agent("ada")
        assert (await ada.post(MEMORY, json=body, headers=headers)).content == second.content


async def test_a_process_that_has_no_key_yet_changes_what_is_sealed(
    service: RunningService,
) -> None:
    made = await make(await service.agent("ada"), **SECRET)
    async with _beside(service) as other:
        ada = await RunningService(other, service.clock).agent("ada")
        put = await ada.put("/api/v1/agents/ada/memory/invoices/progress", json={"value": 7})
        assert put.is_success, put.text
        path = f"{MEMORY}/{made['id']}"
        assert (await ada.patch(path, json={"tags": ["t"]}, headers=_at(2))).is_success
        assert await _opened(other, made["id"]) == b'{"value":7}'
        key = (await _stored(other, made["id"])).sealing_key
        assert await _subject(other, key) == "ada"


async def test_rolled_back_data_key_is_not_used(service: RunningService) -> None:
    ada, context = await service.agent("ada"), service.services
    taken = await make(ada, "taken")
    clash = [draft("new", **SECRET), draft("taken")]
    assert_problem(await ada.post(BATCH, json={"entries": clash}), 409)
    assert await _current(context, "ada") is None
    made = await make(ada, "new", **SECRET)
    assert taken["id"] != made["id"]
    async with _beside(service) as other:
        assert MARKER.encode() in await _opened(other, made["id"])


async def test_write_during_erasure_of_the_agent_opens_afterwards(
    service: RunningService,
) -> None:
    ada = await service.agent("writer", permissions=[*Permission])
    ada.headers["X-Agent-ID"] = "ada"
    stopped = False
    replies: list[int] = []

    async def write(name: str) -> None:
        number = 0
        while not stopped:
            number += 1
            headers = {"Idempotency-Key": f"{name}-{number}"} if number % 2 else {}
            reply = await ada.post(MEMORY, json=draft(f"{name}-{number}", **SECRET),
                                   headers=headers)  # fmt: skip
            replies.append(reply.status_code)
            await asyncio.sleep(0)

    writing = [asyncio.ensure_future(write(name)) for name in "abc"]
    destroyed = 0
    async with _beside(service) as other:
        for _ in range(8):
            done = len(replies)
            while len(replies) < done + 12:
                await asyncio.sleep(0.001)
            destroyed += (await forget(other, TENANT, "ada")).data_keys
    done = len(replies)
    while len(replies) < done + 6:
        await asyncio.sleep(0.001)
    stopped = True
    await asyncio.gather(*writing)
    assert set(replies) == {201}
    assert destroyed == 8
    async with _beside(service) as restarted:
        left = await _all(restarted, "ada")
        assert left
        for entry in left:
            assert MARKER.encode() in await _opened(restarted, entry.id)


async def test_keys_of_many_agents_are_not_all_held(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encryption, "_MOST_OPENED", 3)
    context = service.services
    clients = [await service.agent(f"agent-{number}") for number in range(12)]
    for name in ("first", "second"):
        for client in clients:
            await make(client, name, **SECRET)
    for client in clients:
        found = (await client.get(MEMORY)).json()["entries"]
        assert [one["value"] for one in found] == [SECRET["value"]] * 2
    assert len(context.cipher._current) <= 4
    assert len(context.cipher._opened) <= 8


async def test_an_archive_is_proved_by_the_tenant_s_key_when_the_agent_is_forgotten(
    service: RunningService,
) -> None:
    ada, context = await service.agent("ada"), service.services
    intent = (await ada.post("/api/v1/intents", json={"title": "t"})).json()
    body = {"intent_id": intent["id"], "name": "n", "assigned_agent": "ada"}
    task = (await ada.post("/api/v1/tasks", json=body)).json()
    await make(ada, scope={"task_id": task["id"], "intent_id": intent["id"]}, **SECRET)
    ended = await ada.patch(f"/api/v1/tasks/{task['id']}", json={"status": "skipped"},
                            headers=_at(1))  # fmt: skip
    assert ended.is_success, ended.text
    await forget(context, TENANT, "ada")
    log = await context.store.read(TENANT, lambda to: to.events.list_of_intent(intent["id"], 0, 99))
    (archive,) = (one for one in log if one.type == "memory.archived")
    assert archive.data is not None
    (kept,) = msgspec.json.decode(archive.data)["snapshot"]
    assert await _subject(context, kept["digest_key"]) == _TENANT_KEY
    content = msgspec.json.encode(SECRET["value"])
    async with _beside(service) as other:
        digest = await other.store.read(
            TENANT,
            lambda to: other.cipher.digest(to, TENANT, content, kept["digest_key"]),
        )
    assert kept["digest"] == "hmac-sha256:" + digest.hex()


async def test_a_wrapped_key_opens_for_its_subject_alone(
    service: RunningService, tmp_path: Path
) -> None:
    ada, context = await service.agent("ada"), service.services
    made = await make(ada, **SECRET)
    stored = await _stored(context, made["id"])
    key_id = stored.sealing_key or ""
    key = await context.store.read(TENANT, lambda to: to.data_keys.get(key_id))
    assert key is not None
    context.cipher.check_opens(key)
    for subject in ("", "grace"):
        with pytest.raises(ConfigurationError):
            context.cipher.check_opens(replace(key, owner=subject))
