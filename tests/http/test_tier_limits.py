"""How tenants narrow tiers, and that every tier obeys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.records.tier import Tier
from memorywall.service.administration.tenants import set_capacity
from memorywall.service.requests import tenant_tiers
from memorywall.service.requests.tenant_tiers import TenantTierCache
from memorywall.storage.port import Transaction
from tests.http.checks import (
    EVERY_PERMISSION,
    MEMORY,
    assert_problem,
    brief,
    events_of,
    everything,
    keys_of,
    make,
)
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio

TIERS = "/api/v1/tiers"
PLACES: dict[str, dict[str, Any]] = {
    "working": {"scope": {"task_id": "t1"}},
    "session": {},
    "episodic": {},
    "semantic": {"namespace": "facts"},
    "procedural": {"namespace": "facts"},
    "shared": {"namespace": "shared/global"},
}
each_tier = pytest.mark.parametrize("tier", PLACES)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    async with open_service(tmp_path, episodic_capacity=5, working_capacity_per_task=5) as opened:
        yield opened


@pytest.fixture
async def chief(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("chief", permissions=EVERY_PERMISSION)


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def _narrow(chief: httpx.AsyncClient, tier: str, **limits: Any) -> dict[str, Any]:
    response = await chief.put(f"{TIERS}/{tier}", json=limits)
    assert response.status_code == 200, response.text
    shown: dict[str, Any] = response.json()
    assert shown == await _shown(chief, tier)
    return shown


async def _shown(client: httpx.AsyncClient, tier: str) -> dict[str, Any]:
    tiers = (await client.get(TIERS)).json()["tiers"]
    (found,) = (one for one in tiers if one["memory_type"] == tier)
    shown: dict[str, Any] = found
    return shown


async def _evicted(client: httpx.AsyncClient, agent: str = "ada") -> list[str]:
    told = brief(await events_of(client, agent))
    return [key for kind, key, _ in told if kind == "memory.evicted"]


async def _keys(client: httpx.AsyncClient, tier: str) -> list[str]:
    owner = {} if "namespace" in PLACES[tier] else {"agent_id": "ada"}
    return await keys_of(client, memory_type=tier, **owner)


def test_every_tier_is_tried() -> None:
    assert list(PLACES) == [tier.value for tier in Tier]


async def test_settings_of_the_server_are_shown(ada: httpx.AsyncClient) -> None:
    tiers = (await ada.get(TIERS)).json()["tiers"]
    assert {one["memory_type"]: one["capacity"] for one in tiers} == {
        "working": 5,
        "session": None,
        "episodic": 5,
        "semantic": None,
        "procedural": None,
        "shared": 1_000,
    }


@each_tier
async def test_a_lowered_capacity_refuses(
    service: RunningService, chief: httpx.AsyncClient, ada: httpx.AsyncClient, tier: str
) -> None:
    shown = await _narrow(chief, tier, capacity=2, eviction="refuse")
    assert (shown["capacity"], shown["eviction"]) == (2, "refuse")
    for name in "ab":
        await make(ada, name, memory_type=tier, **PLACES[tier])
    before = await everything(service)
    refused = await ada.post(MEMORY, json=draft("c", memory_type=tier, **PLACES[tier]))
    document = assert_problem(refused, 429, "CAPACITY_EXCEEDED")
    assert (document["current_count"], document["max_capacity"]) == (2, 2)
    assert await everything(service) == before
    foreign = await service.agent("ada", tenant="elsewhere")
    for name in "abc":
        await make(foreign, name, memory_type=tier, **PLACES[tier])


@each_tier
async def test_a_lowered_capacity_evicts_as_the_tenant_says(
    service: RunningService, chief: httpx.AsyncClient, ada: httpx.AsyncClient, tier: str
) -> None:
    await _narrow(chief, tier, capacity=2, eviction="oldest")
    for name in "abcd":
        await make(ada, name, memory_type=tier, **PLACES[tier])
        service.clock.advance(1)
    assert await _keys(ada, tier) == ["d", "c"]


@each_tier
async def test_a_read_saves_an_entry_where_the_last_access_decides(
    service: RunningService, chief: httpx.AsyncClient, ada: httpx.AsyncClient, tier: str
) -> None:
    await _narrow(chief, tier, capacity=2, eviction="lru")
    first = await make(ada, "a", memory_type=tier, **PLACES[tier])
    service.clock.advance(1)
    await make(ada, "b", memory_type=tier, **PLACES[tier])
    service.clock.advance(1)
    assert (await ada.get(f"{MEMORY}/{first['id']}")).is_success
    service.clock.advance(1)
    await make(ada, "c", memory_type=tier, **PLACES[tier])
    assert await _keys(ada, tier) == ["c", "a"]


@each_tier
async def test_a_default_ttl_ends_entries_without_one(
    service: RunningService, chief: httpx.AsyncClient, ada: httpx.AsyncClient, tier: str
) -> None:
    shown = await _narrow(chief, tier, default_ttl="1h")
    assert shown["default_ttl"] == "duration:PT1H"
    place = {"memory_type": tier, **PLACES[tier]}
    plain = await make(ada, "plain", **place)
    longer = await make(ada, "longer", ttl="duration:P1D", **place)
    assert (plain["ttl"], longer["ttl"]) == ("duration:PT1H", "duration:P1D")
    assert plain["expires_at"] < longer["expires_at"]
    kept = await make(ada, "kept", expires_at=longer["expires_at"], **place)
    assert kept["expires_at"] == longer["expires_at"]
    service.clock.advance(3600)
    assert set(await _keys(ada, tier)) == {"longer", "kept"}


@pytest.mark.parametrize(
    ("tier", "limits", "field"),
    [
        ("episodic", {"capacity": 6}, "capacity"),
        ("working", {"capacity": 6}, "capacity"),
        ("shared", {"capacity": 1_001, "eviction": "lru"}, "capacity"),
        ("semantic", {"capacity": -1}, "capacity"),
        ("semantic", {"default_ttl": "one day"}, "default_ttl"),
        ("semantic", {"default_ttl": "task_lifetime"}, "default_ttl"),
        ("semantic", {"default_ttl": "duration:P1Y"}, "default_ttl"),
        ("semantic", {"default_ttl": "duration:PT0S"}, "default_ttl"),
        ("semantic", {"eviction": "random"}, "eviction"),
    ],
)
async def test_what_widens_a_tier_is_refused(
    chief: httpx.AsyncClient, tier: str, limits: dict[str, Any], field: str
) -> None:
    before = await _shown(chief, tier)
    refused = assert_problem(await chief.put(f"{TIERS}/{tier}", json=limits), 422)
    assert field in refused["detail"]
    assert await _shown(chief, tier) == before


async def test_a_field_that_is_left_out_has_the_value_of_the_server(
    chief: httpx.AsyncClient, ada: httpx.AsyncClient
) -> None:
    before = await _shown(ada, "episodic")
    await _narrow(chief, "episodic", capacity=1, default_ttl="duration:P1D", eviction="refuse")
    assert await _shown(ada, "episodic") != before
    assert await _narrow(chief, "episodic", capacity=3) == {**before, "capacity": 3}
    assert await _narrow(chief, "episodic", eviction="lfu") == {**before, "eviction": "lfu"}
    assert await _narrow(chief, "episodic") == before


async def test_only_an_administrator_of_the_tenant_narrows(
    service: RunningService, chief: httpx.AsyncClient, ada: httpx.AsyncClient
) -> None:
    assert_problem(await ada.put(f"{TIERS}/episodic", json={"capacity": 1}), 403)
    assert_problem(await chief.put(f"{TIERS}/none", json={"capacity": 1}), 404)
    await _narrow(chief, "episodic", capacity=1)
    foreign = await service.agent("chief", tenant="elsewhere", permissions=EVERY_PERMISSION)
    assert (await _shown(foreign, "episodic"))["capacity"] == 5
    await _narrow(foreign, "episodic", capacity=2)
    assert (await _shown(chief, "episodic"))["capacity"] == 1


async def test_a_capacity_of_nothing_closes_a_tier(
    chief: httpx.AsyncClient, ada: httpx.AsyncClient
) -> None:
    await _narrow(chief, "episodic", capacity=0)
    refused = await ada.post(MEMORY, json=draft(memory_type="episodic"))
    assert assert_problem(refused, 429, "CAPACITY_EXCEEDED")["max_capacity"] == 0


async def test_the_tenants_capacity_bounds_that_of_an_agent(
    service: RunningService, chief: httpx.AsyncClient, ada: httpx.AsyncClient
) -> None:
    async def capacity() -> int:
        summary = (await ada.get("/api/v1/agents/ada/memory/summary")).json()
        shown: int = summary["episodic"]["capacity"]
        return shown

    await set_capacity(service.services, "default", "ada", 50)
    assert await capacity() == 50
    await _narrow(chief, "episodic", capacity=3)
    assert await capacity() == 3
    await set_capacity(service.services, "default", "ada", 2)
    assert await capacity() == 2


async def test_a_limit_above_a_lowered_setting_widens_nothing(tmp_path: Path) -> None:
    async with open_service(tmp_path / "one") as service:
        chief = await service.agent("chief", permissions=EVERY_PERMISSION)
        await _narrow(chief, "episodic", capacity=900)
    async with open_service(tmp_path / "one", episodic_capacity=10) as service:
        chief = await service.agent("chief", permissions=EVERY_PERMISSION)
        assert (await _shown(chief, "episodic"))["capacity"] == 10


async def test_a_task_evicts_only_what_its_writer_owns(
    service: RunningService, chief: httpx.AsyncClient, ada: httpx.AsyncClient
) -> None:
    await _narrow(chief, "working", capacity=2, eviction="lru")
    other = await service.agent("other")
    task = {"task_id": "t1"}
    await make(other, "theirs", scope=task)
    service.clock.advance(1)
    await make(ada, "elsewhere", scope={"task_id": "t2"})
    await make(ada, "first", scope=task)
    service.clock.advance(1)
    await make(ada, "second", scope=task)
    assert await _evicted(ada) == ["first"]
    assert await _evicted(other, "other") == []
    third = await service.agent("third")
    refused = await third.post(MEMORY, json=draft("none", scope=task))
    assert_problem(refused, 429, "CAPACITY_EXCEEDED")


async def test_a_claimed_key_is_not_evicted(
    service: RunningService, chief: httpx.AsyncClient, ada: httpx.AsyncClient
) -> None:
    await _narrow(chief, "shared", capacity=2, eviction="oldest")
    place = {"memory_type": "shared", "namespace": "shared/global"}
    for name in "ab":
        await make(ada, name, **place)
        service.clock.advance(1)
    asked = {"key": "a", "scope": "global", "ttl_seconds": 60}
    claim = await ada.post("/api/v1/claims", json=asked)
    assert claim.is_success, claim.text
    await make(await service.agent("other"), "c", **place)
    assert await _keys(ada, "shared") == ["c", "a"]
    evict = {"namespace": "shared/global", "target": 0, "dry_run": True}
    tried = (await chief.post(f"{TIERS}/shared/evict", json=evict)).json()
    assert (tried["evicted"], tried["remaining"]) == (1, 1)
    service.clock.advance(61)
    await make(ada, "d", **place)
    assert await _keys(ada, "shared") == ["d", "c"]


async def test_creates_run_no_statement_for_the_limits_of_tiers(
    service: RunningService, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    read = tenant_tiers.read_tenant_tiers

    async def counted(*arguments: Any) -> Any:
        nonlocal reads
        reads += 1
        return await read(*arguments)

    monkeypatch.setattr(tenant_tiers, "read_tenant_tiers", counted)
    monkeypatch.setattr(service.services.tiers, "_clock", lambda: 0.0)
    for number, tier in enumerate(PLACES):
        await make(ada, f"k{number}", memory_type=tier, **PLACES[tier])
    assert reads == 1
    monkeypatch.setattr(service.services.tiers, "_clock", lambda: 1.0)
    await make(ada, "later")
    assert reads == 2


async def test_limits_that_another_server_has_set_are_read_again(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    seconds = 0.0
    cache = TenantTierCache(clock=lambda: seconds)

    async def capacity() -> int | None:
        async def script(to: Transaction) -> int | None:
            tiers = await cache.load(to, service.services.settings)
            return tiers.effective[Tier.EPISODIC].capacity

        return await service.services.store.write("default", script)

    assert await capacity() == 5
    await _narrow(chief, "episodic", capacity=2)
    assert await capacity() == 5
    seconds = 1.0
    assert await capacity() == 2
