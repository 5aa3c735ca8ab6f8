"""Quotas of tenants in entries and bytes (RFC-0015 section 9.4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.exceptions import MemoryAccessError, MemoryCapacityError, ValidationError
from memorywall.records.quota import Quota
from memorywall.sdk.client import AsyncClient
from memorywall.service.administration.tenants import set_quota
from memorywall.storage.port import Transaction
from tests.http.checks import (
    BATCH,
    EVERY_PERMISSION,
    MEMORY,
    assert_problem,
    everything,
    make,
    value_of_size,
)
from tests.support.asgi import AsgiTransport
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio

QUOTA = "/api/v1/quota"


@pytest.fixture
async def chief(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("chief", permissions=EVERY_PERMISSION)


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def _set(chief: httpx.AsyncClient, **quota: int | None) -> dict[str, Any]:
    response = await chief.put(QUOTA, json=quota)
    assert response.status_code == 200, response.text
    shown: dict[str, Any] = response.json()
    assert shown == (await chief.get(QUOTA)).json()
    return shown


async def test_quota_and_usage_are_shown(chief: httpx.AsyncClient, ada: httpx.AsyncClient) -> None:
    nothing = dict.fromkeys(("entries", "bytes", "most_entries", "most_bytes"))
    assert await _set(chief) == {**nothing, "used_entries": 0, "used_bytes": 0}
    await make(ada, "a", value=value_of_size(100))
    await make(chief, "b", value=value_of_size(50), memory_type="semantic", namespace="facts")
    used = {"used_entries": 2, "used_bytes": 150}
    assert await _set(chief, entries=7) == {**nothing, "entries": 7, **used}
    assert await _set(chief, bytes=9) == {**nothing, "bytes": 9, **used}


async def test_entries_over_the_quota_are_refused_in_every_tier(
    service: RunningService, chief: httpx.AsyncClient, ada: httpx.AsyncClient
) -> None:
    await _set(chief, entries=2)
    first = await make(ada, "a")
    await make(chief, "b", memory_type="episodic")
    before = await everything(service)
    for tier in ("working", "session", "episodic", "semantic", "procedural"):
        refused = await ada.post(MEMORY, json=draft("c", memory_type=tier))
        document = assert_problem(refused, 429, "CAPACITY_EXCEEDED")
        assert (document["current_count"], document["max_capacity"]) == (2, 2)
    batch = [{"id": first["id"], "version": 1, "value": {"n": 2}}, draft("d")]
    refused = await ada.post(BATCH, json={"entries": batch})
    assert assert_problem(refused, 429, "CAPACITY_EXCEEDED")["index"] == 1
    assert await everything(service) == before
    # An entry that is deleted or expired makes room, and another tenant has its own quota.
    foreign = await service.agent("ada", tenant="elsewhere")
    for name in "abc":
        await make(foreign, name)
    assert (await ada.delete(f"{MEMORY}/{first['id']}")).is_success
    await make(ada, "short", ttl="duration:PT1M")
    service.clock.advance(61)
    await make(ada, "c")


async def test_bytes_over_the_quota_are_refused(
    service: RunningService, chief: httpx.AsyncClient, ada: httpx.AsyncClient
) -> None:
    await _set(chief, bytes=100)
    entry = await make(ada, "a", value=value_of_size(60))
    refused = await ada.post(MEMORY, json=draft("b", value=value_of_size(41)))
    assert "100 bytes" in assert_problem(refused, 429, "CAPACITY_EXCEEDED")["detail"]
    await make(ada, "b", value=value_of_size(40))
    path = f"{MEMORY}/{entry['id']}"
    larger = {"value": value_of_size(61)}
    refused = await ada.patch(path, json=larger, headers={"If-Match": "1"})
    assert_problem(refused, 429, "CAPACITY_EXCEEDED")
    # A change that stores no more bytes is possible, also above the quota.
    await _set(chief, bytes=50)
    for version, change in enumerate(({"value": value_of_size(60)}, {"tags": ["x"]}), 1):
        changed = await ada.patch(path, json=change, headers={"If-Match": str(version)})
        assert changed.status_code == 200, changed.text


async def test_eviction_makes_room_within_the_quota(
    chief: httpx.AsyncClient, tmp_path: Path
) -> None:
    async with open_service(tmp_path / "own", episodic_capacity=2) as service:
        chief = await service.agent("chief", permissions=EVERY_PERMISSION)
        await _set(chief, entries=2)
        for name in "abc":
            await make(chief, name, memory_type="episodic")
        assert (await _set(chief, entries=2))["used_entries"] == 2


async def test_tenant_may_only_lower_the_quota_of_the_operator(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    await set_quota(service.services, "default", Quota(entries=5))
    shown = await _set(chief, entries=3, bytes=1_000)
    assert (shown["entries"], shown["bytes"], shown["most_entries"]) == (3, 1_000, 5)
    refused = await chief.put(QUOTA, json={"entries": 6})
    assert "`entries` may only be lowered" in assert_problem(refused, 422)["detail"]
    assert (await _set(chief))["entries"] == 5
    await _set(chief, entries=4)
    await set_quota(service.services, "default", Quota(entries=2))
    assert (await chief.get(QUOTA)).json()["entries"] == 2
    await set_quota(service.services, "default", Quota())
    assert (await chief.get(QUOTA)).json()["entries"] == 4


async def test_only_administrators_of_the_tenant_see_and_set_the_quota(
    ada: httpx.AsyncClient,
) -> None:
    assert_problem(await ada.get(QUOTA), 403, "ACCESS_DENIED")
    assert_problem(await ada.put(QUOTA, json={"entries": 1}), 403, "ACCESS_DENIED")


async def test_invalid_quotas_are_refused(chief: httpx.AsyncClient) -> None:
    for body in ({"entries": -1}, {"bytes": 1.5}, {"entries": 2**60}, {"files": 1}):
        assert_problem(await chief.put(QUOTA, json=body), 422, "VALIDATION_ERROR")


async def test_quota_over_the_client(service: RunningService, chief: httpx.AsyncClient) -> None:
    http = AsgiTransport(service.app)
    where = "http://memorywall.test"
    key = chief.headers["x-api-key"]
    async with AsyncClient(where, key, transport=http) as client:
        assert (await client.set_quota(entries=1, bytes=500)).entries == 1
        await client.memory.set("n", "k", {}, memory_type="working")
        with pytest.raises(MemoryCapacityError) as raised:
            await client.memory.set("n", "l", {}, memory_type="working")
        assert (raised.value.current_count, raised.value.max_capacity) == (1, 1)
        assert raised.value.request_id
        quota = await client.quota()
        assert (quota.used_entries, quota.bytes) == (1, 500)
        with pytest.raises(ValidationError):
            await client.set_quota(entries=-1)
        assert (await client.set_quota()).entries is None
    async with AsyncClient(where, await service.key("ada"), transport=http) as client:
        with pytest.raises(MemoryAccessError):
            await client.quota()


async def test_create_without_a_quota_reads_no_usage(
    service: RunningService,
    chief: httpx.AsyncClient,
    ada: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    async def note(transaction: Transaction) -> type:
        return type(transaction.entries)

    kind = await service.services.store.read("default", note)
    own = kind.tenant_usage  # type: ignore[attr-defined]

    async def tenant_usage(self: Any, now: str) -> Any:
        read.append(now)
        return await own(self, now)

    monkeypatch.setattr(kind, "tenant_usage", tenant_usage)
    await make(ada, "a")
    assert read == []
    await _set(chief, entries=9)
    read.clear()
    await make(ada, "b")
    assert len(read) == 1


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    async with open_service(tmp_path) as opened:
        yield opened
