"""The log of an intent: what is told, to whom, in pages and as a stream (RFC-0001)."""

from __future__ import annotations

import httpx
import pytest

from tests.http.checks import assert_problem
from tests.work.crew import Crew, at, following, ok, remember

pytestmark = pytest.mark.anyio

RESERVED = [
    "memory.created",
    "memory.note",
    "task.completed",
    "task.note",
    "intent_created",
    "intent_note",
    "lease_acquired",
    "lease_note",
    "claim.acquired",
    "claim.note",
    "coordinator.unresponsive",
    "coordinator.note",
    "access_granted",
    "access_note",
    "state_patched",
    "status_changed",
    "attachment_added",
    "dependency_added",
]
EVENTS = {"Accept": "text/event-stream"}


async def _say(crew: Crew, client: httpx.AsyncClient, *kinds: str) -> list[int]:
    """Logs events of these types; returns their places."""
    places = []
    for kind in kinds:
        body = {"event_type": kind, "payload": {"word": kind}}
        told = ok(await client.post(f"{crew.intent_path}/events", json=body), 201)
        places.append(told["seq"])
    return places


async def test_client_event_is_in_the_log(crew: Crew) -> None:
    await crew.task(assigned_agent="a")
    body = {
        "event_type": "research.note",
        "payload": {"found": 3},
        "actor": "a",
        "trace_id": "t1",
        "parent_event_id": "evt_1",
    }
    told = ok(await crew.a.post(f"{crew.intent_path}/events", json=body), 201)
    assert told["type"] == told["event_type"] == "research.note"
    assert told["actor"] == told["agent_id"] == "a"
    assert told["intent_id"] == crew.intent["id"]
    assert told["payload"] == told["data"]
    assert told["payload"] == {"found": 3, "trace_id": "t1", "parent_event_id": "evt_1"}
    assert (await crew.log())[-1] == told


@pytest.mark.parametrize("kind", RESERVED)
async def test_the_servers_own_words_are_refused(crew: Crew, kind: str) -> None:
    before = await crew.log()
    response = await crew.chief.post(f"{crew.intent_path}/events", json={"event_type": kind})
    assert_problem(response, 422, "VALIDATION_ERROR")
    assert await crew.log() == before


@pytest.mark.parametrize("kind", ["", "Upper", "a..b", "a b", "a\n", ".a", "é", "a" * 65])
async def test_what_is_no_event_type(crew: Crew, kind: str) -> None:
    response = await crew.chief.post(f"{crew.intent_path}/events", json={"event_type": kind})
    assert_problem(response, 422)


async def test_words_that_only_look_like_the_servers_are_free(crew: Crew) -> None:
    await _say(crew, crew.chief, "memorable", "tasks.seen", "leases", "claimed.by_phone")
    assert len(await crew.log()) == 5


async def test_client_event_of_another_actor_is_refused(crew: Crew) -> None:
    body = {"event_type": "note", "actor": "a"}
    assert_problem(await crew.chief.post(f"{crew.intent_path}/events", json=body), 403)
    assert_problem(
        await crew.outsider.post(f"{crew.intent_path}/events", json={"event_type": "note"}), 403
    )
    assert_problem(await crew.outsider.get(f"{crew.intent_path}/events"), 403)


async def test_changes_of_an_intent_are_in_its_log(crew: Crew) -> None:
    patches = {"patches": [{"op": "set", "path": "phase", "value": "secret-value"}]}
    ok(await crew.chief.post(f"{crew.intent_path}/state", json=patches, headers=at(1)))
    ok(await crew.chief.post(f"{crew.intent_path}/status", json={"status": "draft"}, headers=at(2)))
    ok(await crew.chief.post(f"{crew.intent_path}/acl/entries", json={"principal_id": "a"}), 201)
    lease = ok(await crew.chief.post(f"{crew.intent_path}/leases", json={"scope": "s"}), 201)
    ok(await crew.chief.delete(f"{crew.intent_path}/leases/{lease['id']}"), 204)
    log = await crew.log()
    assert [one["type"] for one in log] == [
        "intent_created",
        "state_patched",
        "status_changed",
        "access_granted",
        "lease_acquired",
        "lease_released",
    ]
    assert all(one["actor"] == "chief" and one["intent_id"] == crew.intent["id"] for one in log)
    assert log[1]["data"] == {"paths": ["phase"]}


async def test_log_contains_task_memory_without_values(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    entry = await remember(crew.a, task["id"], value={"text": "marker-value"})
    told = (await crew.log())[-1]
    assert told["type"] == "memory.created"
    assert (told["task_id"], told["data"]["entry_id"]) == (task["id"], entry["id"])
    assert "marker-value" not in str(await crew.log())


async def test_pages_follow_one_another_without_gap_or_repetition(crew: Crew) -> None:
    await _say(crew, crew.chief, *(f"note_{number}" for number in range(9)))
    whole = await crew.log()
    assert len(whole) == 10
    paged = []
    after = 0
    while True:
        params = {"after": after, "limit": 3}
        page = ok(await crew.chief.get(f"{crew.intent_path}/events", params=params))
        if not page["events"]:
            assert page["next"] == after
            break
        assert len(page["events"]) <= 3
        assert page["next"] == page["events"][-1]["seq"] > after
        paged.extend(page["events"])
        after = page["next"]
    assert paged == whole


async def test_the_log_can_be_narrowed_by_type_and_time(crew: Crew) -> None:
    await _say(crew, crew.chief, "one", "two")
    crew.service.clock.advance(60)
    await _say(crew, crew.chief, "one")
    assert [one["type"] for one in await crew.log(event_type="one")] == ["one", "one"]
    since = "2026-02-02T02:40:30Z"
    assert [one["type"] for one in await crew.log(since=since)] == ["one"]
    shifted = "2026-02-02T03:40:30+01:00"
    assert [one["type"] for one in await crew.log(since=shifted, event_type="one")] == ["one"]
    assert await crew.log(since="2026-02-02T02:41:30Z") == []
    for wrong in ({"since": "yesterday"}, {"limit": 0}, {"after": -1}, {"kind": "one"}):
        assert_problem(await crew.chief.get(f"{crew.intent_path}/events", params=wrong), 400)


async def test_other_intents_stay_out_of_the_log(crew: Crew) -> None:
    other = ok(await crew.chief.post("/api/v1/intents", json={"title": "other"}), 201)
    body = {"event_type": "elsewhere"}
    ok(await crew.chief.post(f"/api/v1/intents/{other['id']}/events", json=body), 201)
    assert {one["intent_id"] for one in await crew.log()} == {crew.intent["id"]}


async def test_a_stream_tells_what_was_and_what_comes(crew: Crew) -> None:
    await _say(crew, crew.chief, "one", "two")
    path = f"{crew.intent_path}/events"
    async with following(crew.chief, crew.service, path, headers=EVENTS) as stream:
        assert stream.status == 200
        assert stream.headers[b"content-type"] == b"text/event-stream"
        first = await stream.take(3)
        await _say(crew, crew.chief, "three")
        first += await stream.take(1)
    assert first == await crew.log()


async def test_stream_resumes_after_the_last_seen_event(crew: Crew) -> None:
    places = await _say(crew, crew.chief, *(f"note_{number}" for number in range(12)))
    path = f"{crew.intent_path}/events"
    seen = []
    last = places[0]
    for size in (1, 4, 2, 4):
        headers = EVENTS | {"Last-Event-ID": str(last)}
        # What the client has seen wins over where it once started.
        async with following(crew.chief, crew.service, path, "after=0", headers) as stream:
            seen += await stream.take(size)
        last = seen[-1]["seq"]
    assert [one["seq"] for one in seen] == places[1:]
    for wrong in ({"Last-Event-ID": "evt"}, {"Last-Event-ID": "-1"}):
        assert_problem(await crew.chief.get(path, headers=EVENTS | wrong), 400)
    assert_problem(await crew.chief.get(path, params={"event_type": "x"}, headers=EVENTS), 400)


async def test_subscription_starts_with_new_events(crew: Crew) -> None:
    await _say(crew, crew.chief, "before")
    path = f"{crew.intent_path}/subscribe"
    async with following(crew.chief, crew.service, path) as stream:
        await _say(crew, crew.chief, "after")
        (told,) = await stream.take(1)
    assert told["type"] == "after"
    async with following(crew.chief, crew.service, path, "after=0") as stream:
        kinds = [one["type"] for one in await stream.take(3)]
    assert kinds == ["intent_created", "before", "after"]
    headers = {"Last-Event-ID": str(told["seq"] - 1)}
    async with following(crew.chief, crew.service, path, headers=headers) as stream:
        assert await stream.take(1) == [told]


async def test_a_stream_ends_when_access_does(crew: Crew) -> None:
    path = f"{crew.intent_path}/acl/entries"
    line = ok(await crew.chief.post(path, json={"principal_id": "a"}), 201)
    places = await _say(crew, crew.chief, "before")
    query = f"after={places[0] - 1}"
    async with following(crew.a, crew.service, f"{crew.intent_path}/subscribe", query) as stream:
        assert [one["type"] for one in await stream.take(1)] == ["before"]
        ok(await crew.chief.delete(f"{path}/{line['id']}"), 204)
        await _say(crew, crew.chief, "after")
        await stream.end()
    assert_problem(await crew.a.get(f"{crew.intent_path}/subscribe"), 403)
    assert_problem(await crew.a.get(f"{crew.intent_path}/events", headers=EVENTS), 403)
