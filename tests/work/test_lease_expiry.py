"""Leases whose time is over are ended once, and said to be (pipelines/lapse.py)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from memorywall.assembly import open_memory
from tests.http.checks import events_of, everything
from tests.support.rounds import expire_leases
from tests.support.service import RunningService
from tests.work.crew import CLAIMS, COORDINATORS, TASKS, Crew, crew_of, ok, remember

pytestmark = pytest.mark.anyio

SECONDS = 30


async def _lapse(crew: Crew, expected: int = 1) -> list[dict[str, Any]]:
    """Lets the time go by and the sweeper run; returns what the log tells since."""
    before = len(await crew.log())
    crew.service.clock.advance(SECONDS)
    assert await expire_leases(crew.service.services) == expected
    return (await crew.log())[before:]


async def _settled(crew: Crew) -> None:
    """Asserts that another round finds nothing to do."""
    stored = await everything(crew.service)
    for _ in range(2):
        assert await expire_leases(crew.service.services) == 0
        crew.service.clock.advance(3_600)
    assert await everything(crew.service) == stored


async def test_with_nothing_to_do_it_does_nothing(crew: Crew) -> None:
    await _settled(crew)


async def test_what_still_lasts_is_left_alone(crew: Crew) -> None:
    task, taken = await crew.working(seconds=SECONDS)
    stored = await everything(crew.service)
    crew.service.clock.advance(SECONDS - 0.001)
    assert await expire_leases(crew.service.services) == 0
    assert await everything(crew.service) == stored
    assert (await crew.now(task["id"]))["status"] == "running"
    assert ok(await crew.a.get(TASKS))[0]["version"] == task["version"]
    assert taken.token > 0


@pytest.mark.parametrize("status", ["claimed", "running"])
async def test_a_task_under_way_is_ready_again_and_still_its_agents(
    crew: Crew, status: str
) -> None:
    task = await crew.task(assigned_agent="a")
    taken = await crew.take(crew.a, task["id"], SECONDS)
    if status == "running":
        await crew.change(crew.a, task["id"], token=taken.token, status="running")
    await remember(crew.a, task["id"], token=taken.token)
    before = await crew.now(task["id"])
    told = await _lapse(crew)
    after = await crew.now(task["id"])
    assert (after["status"], after["assigned_agent"]) == ("ready", "a")
    assert after["version"] == before["version"] + 1
    assert after["attempt"] == 1
    assert {one["type"] for one in told} == {"lease_released", "task.ready"}
    assert {one["actor"] for one in told} == {"system"}
    (released,) = [one for one in told if one["type"] == "lease_released"]
    assert released["task_id"] == released["data"]["task_id"] == task["id"]
    assert released["data"]["reason"] == "expired"
    assert released["data"]["fencing_token"] == taken.token
    assert [entry.key for entry in (await everything(crew.service)).entries] == ["progress"]
    await _settled(crew)
    assert (await crew.take(crew.a, task["id"])).token > taken.token


async def test_a_blocked_task_stays_blocked(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    taken = await crew.take(crew.a, task["id"], SECONDS)
    blocked = await crew.change(crew.a, task["id"], token=taken.token, status="blocked")
    told = await _lapse(crew)
    assert await crew.now(task["id"]) == blocked
    assert [one["type"] for one in told] == ["lease_released"]
    await _settled(crew)


async def test_self_claimed_task_is_unassigned_after_expiry(crew: Crew) -> None:
    ok(await crew.chief.put(f"{crew.intent_path}/acl", json={"default_policy": "open"}))
    task = await crew.task()
    await crew.take(crew.a, task["id"], SECONDS)
    await _lapse(crew)
    free = await crew.now(task["id"])
    assert free["status"] == "ready"
    assert "assigned_agent" not in free
    assert free["assignments"][-1]["ended_at"]
    # Otherwise nobody would do the work of an agent that is dead and has no coordinator.
    await crew.take(crew.b, task["id"])
    assert await expire_leases(crew.service.services) == 0


@pytest.mark.parametrize("ending", ["completed", "cancelled", "given back", "reassigned"])
async def test_ended_lease_does_not_expire(crew: Crew, ending: str) -> None:
    task, taken = await crew.working(seconds=SECONDS)
    if ending == "given back":
        path = f"{TASKS}/{task['id']}/lease"
        ok(await crew.a.delete(path, headers={"Fencing-Token": str(taken.token)}), 204)
    elif ending == "reassigned":
        await crew.change(crew.chief, task["id"], assigned_agent="b")
    else:
        await crew.change(crew.chief, task["id"], status=ending)
    before = await crew.now(task["id"])
    assert await _lapse(crew, expected=0) == []
    assert await crew.now(task["id"]) == before


async def test_renewed_lease_does_not_expire(crew: Crew) -> None:
    task, taken = await crew.working(seconds=SECONDS)
    headers = {"Fencing-Token": str(taken.token)}
    path, body = f"{TASKS}/{task['id']}/lease", {"duration_seconds": SECONDS + 1}
    ok(await crew.a.patch(path, json=body, headers=headers))
    await _lapse(crew, expected=0)
    crew.service.clock.advance(1)
    assert await expire_leases(crew.service.services) == 1


async def test_event_reports_the_expiry_of_a_scope_lease(crew: Crew) -> None:
    path = f"{crew.intent_path}/leases"
    body = {"scope": "research", "duration_seconds": SECONDS}
    lease = ok(await crew.chief.post(path, json=body), 201)
    (told,) = await _lapse(crew)
    assert (told["type"], told["actor"], told["agent_id"]) == ("lease_released", "system", "chief")
    assert told["data"]["lease_id"] == lease["id"]
    assert (told["data"]["scope"], told["data"]["reason"]) == ("research", "expired")
    assert ok(await crew.chief.get(path)) == {"leases": []}
    await _settled(crew)


async def test_event_reports_an_unresponsive_coordinator(crew: Crew) -> None:
    made = await crew.coordinate(
        {"max_working_memory_per_task": 3}, heartbeat_interval_seconds=SECONDS // 3
    )
    (told,) = await _lapse(crew)
    assert (told["type"], told["actor"]) == ("coordinator.unresponsive", "system")
    assert told["agent_id"] == "chief"
    past = ok(await crew.chief.get(f"{COORDINATORS}/{made['id']}"))
    assert past["status"] == "unresponsive"
    assert past["guardrails"]["max_working_memory_per_task"] == 3
    await _settled(crew)


async def test_event_reports_the_expiry_of_a_lease_acquired_again_before_the_sweep(
    crew: Crew,
) -> None:
    """The log is what tells who held what; a lease that lapsed must not just be gone from it."""
    path = f"{crew.intent_path}/leases"
    body = {"scope": "research", "duration_seconds": SECONDS}
    first = ok(await crew.chief.post(path, json=body), 201)
    crew.service.clock.advance(SECONDS)
    ok(await crew.chief.post(path, json=body), 201)
    told = [one["data"] for one in await crew.log(event_type="lease_released")]
    assert [one["lease_id"] for one in told] == [first["id"]]
    assert told[0]["reason"] == "expired"


async def test_holder_gets_an_event_when_claim_expires(crew: Crew) -> None:
    claim = ok(await crew.a.post(CLAIMS, json={"key": "k", "ttl_seconds": SECONDS}), 201)
    assert await _lapse(crew) == []
    told = (await events_of(crew.a, "a"))[-1]
    assert (told["type"], told["actor"]) == ("claim.expired", "system")
    assert told["data"]["claim_id"] == claim["id"]
    assert [one["type"] for one in await events_of(crew.b, "b")] == []
    await _settled(crew)


async def _one_of_each(crew: Crew) -> int:
    """Leases of all kinds that end together; returns how many."""
    for agent in ("a", "b"):
        await crew.working(agent, SECONDS)
    body = {"scope": "research", "duration_seconds": SECONDS}
    ok(await crew.chief.post(f"{crew.intent_path}/leases", json=body), 201)
    await crew.coordinate(heartbeat_interval_seconds=SECONDS // 3)
    for number in range(5):
        body = {"key": f"k{number}", "ttl_seconds": SECONDS}
        ok(await crew.a.post(CLAIMS, json=body), 201)
    return 9


async def test_rounds_at_the_same_time_end_nothing_twice(crew: Crew) -> None:
    count = await _one_of_each(crew)
    crew.service.clock.advance(SECONDS)
    before = len((await everything(crew.service)).events)
    ended = await asyncio.gather(*(expire_leases(crew.service.services) for _ in range(8)))
    assert sum(ended) == count
    # Two tasks are told of twice: that their lease is over, and that they are ready.
    assert len((await everything(crew.service)).events) == before + count + 2
    await _settled(crew)


async def test_rounds_of_two_processes_end_nothing_twice(crew: Crew) -> None:
    count = await _one_of_each(crew)
    crew.service.clock.advance(SECONDS)
    before = len((await everything(crew.service)).events)
    settings = crew.service.services.settings
    async with open_memory(settings, exclusive=False, clock=crew.service.clock) as second:
        contexts = [crew.service.services, second] * 4
        ended = await asyncio.gather(*(expire_leases(context) for context in contexts))
    assert sum(ended) == count
    assert len((await everything(crew.service)).events) == before + count + 2


async def test_more_than_a_chunk_and_more_than_a_tenant(service: RunningService) -> None:
    crew = await crew_of(service)
    foreign = await service.agent("a", tenant="other")
    for client, count in ((crew.a, 230), (foreign, 100)):
        for number in range(count):
            body = {"key": f"k{number}", "ttl_seconds": SECONDS}
            ok(await client.post(CLAIMS, json=body), 201)
    service.clock.advance(SECONDS)
    assert await expire_leases(service.services) == 330
    kinds = [one["type"] for one in await events_of(foreign, "a")]
    assert kinds.count("claim.expired") == 100
    await _settled(crew)
