"""What becomes of working memory when its task ends (RFC-0015 sections 2.1, 5 and 9.2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memorywall.records.event import Event, EventType
from memorywall.storage.port import Transaction
from tests.http.checks import BATCH, MEMORY, assert_problem, everything
from tests.support.backend import class_of_store
from tests.support.stored import places_holding
from tests.work.crew import TASKS, Crew, at, note, ok, recall, remember, under

pytestmark = pytest.mark.anyio

ENDINGS = ["completed", "failed", "cancelled", "skipped"]
SEALED = ["confidential", "restricted"]


async def _ended(crew: Crew, task_id: str, ending: str = "completed") -> dict[str, Any]:
    """Brings a task to its end."""
    if ending in ("completed", "failed"):
        await crew.change(crew.chief, task_id, status="claimed")
    return await crew.change(crew.chief, task_id, status=ending)


async def _archives(crew: Crew) -> list[dict[str, Any]]:
    return await crew.log(event_type="memory.archived")


@pytest.mark.parametrize("ending", ENDINGS)
async def test_the_end_of_a_task_archives_its_memory_as_one_event(crew: Crew, ending: str) -> None:
    task = await crew.task(assigned_agent="a")
    made = [
        await remember(crew.a, task["id"], key, value={"key": key}, tags=["t", key])
        for key in ("one", "two", "three")
    ]
    changed = ok(
        await crew.a.patch(
            f"{MEMORY}/{made[1]['id']}", json={"value": {"now": 2}}, headers={"If-Match": "1"}
        )
    )
    elsewhere = await remember(crew.a, "task_of_nobody", "elsewhere")
    await _ended(crew, task["id"], ending)
    (archive,) = await _archives(crew)
    assert archive["intent_id"] == crew.intent["id"]
    assert archive["task_id"] == task["id"]
    assert (archive["agent_id"], archive["actor"]) == ("a", "chief")
    assert archive["data"]["entries_archived"] == 3
    expected = [
        {
            "entry_id": entry["id"],
            "agent_id": "a",
            "namespace": "invoices",
            "key": entry["key"],
            "value": entry["value"],
            "version": entry["version"],
            "tags": entry["tags"],
            "sensitivity": "internal",
            "updated_at": entry["updated_at"],
        }
        for entry in (made[0], changed, made[2])
    ]
    snapshot = archive["data"]["snapshot"]
    assert sorted(snapshot, key=str) == sorted(expected, key=str)
    for entry in made:
        assert_problem(await crew.a.get(f"{MEMORY}/{entry['id']}"), 404, "ENTRY_NOT_FOUND")
    stored = await everything(crew.service)
    assert [entry.id for entry in stored.entries] == [elsewhere["id"]]
    kinds = await crew.told(task["id"])
    # The archive stands instead of an ending of every single entry.
    assert {"memory.deleted", "memory.expired"}.isdisjoint(kinds)


async def test_an_archive_keeps_what_every_agent_wrote(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await remember(crew.a, task["id"], value={"by": "a"})
    await crew.change(crew.chief, task["id"], assigned_agent="b")
    await remember(crew.b, task["id"], value={"by": "b"})
    await _ended(crew, task["id"])
    (archive,) = await _archives(crew)
    assert archive["agent_id"] == "b"
    kept = {one["agent_id"]: one["value"] for one in archive["data"]["snapshot"]}
    assert kept == {"a": {"by": "a"}, "b": {"by": "b"}}


async def test_a_task_without_memory_archives_nothing(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await remember(crew.a, task["id"], memory_type="episodic")
    await _ended(crew, task["id"])
    assert await _archives(crew) == []
    (kept,) = (await everything(crew.service)).entries
    assert kept.tier == "episodic"


async def test_names_tags_and_numbers_are_free_again(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await remember(crew.a, task["id"], tags=["only-here"])
    await _ended(crew, task["id"])
    found = ok(await crew.a.get(MEMORY, params={"tags": "only-here", "agent_id": "a"}))
    assert found["total"] == 0
    assert await recall(crew.a, task["id"]) == []
    summary = ok(await crew.a.get("/api/v1/agents/a/memory/summary"))["working"]
    assert summary == {"entry_count": 0, "total_size_kb": 0, "tasks_with_memory": []}
    again = await crew.task(assigned_agent="a")
    assert (await remember(crew.a, again["id"]))["version"] == 1


async def test_the_reply_to_a_repeated_request_goes_with_its_entry(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    once = {"Idempotency-Key": "once"}
    body = note(task["id"], value={"text": "marker-of-a-reply"}, sensitivity="restricted")
    ok(await crew.a.post(MEMORY, json=body, headers=once), 201)
    batch = {"entries": [note(task["id"], "in batch")]}
    ok(await crew.a.post(BATCH, json=batch, headers={"Idempotency-Key": "batch"}))
    await _ended(crew, task["id"])
    assert_problem(await crew.a.post(MEMORY, json=body, headers=once), 410, "REPLY_ERASED")
    again = await crew.a.post(BATCH, json=batch, headers={"Idempotency-Key": "batch"})
    assert_problem(again, 410, "REPLY_ERASED")


@pytest.mark.parametrize("sensitivity", ["public", "internal", *SEALED])
async def test_a_confidential_value_is_kept_as_a_digest(crew: Crew, sensitivity: str) -> None:
    task = await crew.task(assigned_agent="a")
    value = {"text": "marker-of-a-secret"}
    await remember(crew.a, task["id"], value=value, sensitivity=sensitivity)
    await _ended(crew, task["id"])
    (kept,) = (await _archives(crew))[0]["data"]["snapshot"]
    assert kept["sensitivity"] == sensitivity
    if sensitivity in SEALED:
        assert "value" not in kept
        assert kept["digest"] == "hmac-sha256:" + await _digest(crew, "default", value)
        assert "marker-of-a-secret" not in json.dumps(await crew.log())
        directory = crew.service.services.settings.sqlite_path.parent
        assert places_holding(directory, b"marker-of-a-secret") == []
    else:
        assert "digest" not in kept
        assert kept["value"] == value


async def test_a_value_about_a_person_is_kept_as_a_digest(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    value = {"text": "marker-of-ann"}
    await remember(crew.a, task["id"], value=value, subjects=["ann"])
    await _ended(crew, task["id"])
    (kept,) = (await _archives(crew))[0]["data"]["snapshot"]
    assert "value" not in kept
    assert kept["digest"] == "hmac-sha256:" + await _digest(crew, "default", value)
    assert "marker-of-ann" not in json.dumps(await crew.log())


async def _digest(crew: Crew, tenant: str, value: dict[str, Any]) -> str:
    """What who has the digest key of the log makes of a value."""
    context = crew.service.services
    content = json.dumps(value, separators=(",", ":")).encode()

    async def script(transaction: Transaction) -> bytes:
        key = await context.cipher.digest_key(transaction, context.now())
        return await context.cipher.digest(transaction, tenant, content, key.id)

    return (await context.store.read(tenant, script)).hex()


async def test_digests_are_equal_only_for_equal_values_under_one_key(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    values = {"one": {"pin": 1}, "same": {"pin": 1}, "other": {"pin": 2}}
    for key, value in values.items():
        await remember(crew.a, task["id"], key, value=value, sensitivity="restricted")
    await _ended(crew, task["id"])
    (archive,) = await _archives(crew)
    digests = {one["key"]: one["digest"] for one in archive["data"]["snapshot"]}
    assert digests["one"] == digests["same"]
    assert digests["other"] != digests["one"]
    foreign = await crew.service.agent("chief", tenant="other")
    intent = ok(await foreign.post("/api/v1/intents", json={"title": "t"}), 201)
    body = {"intent_id": intent["id"], "name": "n", "assigned_agent": "chief"}
    theirs = ok(await foreign.post(TASKS, json=body), 201)
    await remember(foreign, theirs["id"], value={"pin": 1}, sensitivity="restricted")
    ok(await foreign.patch(f"{TASKS}/{theirs['id']}", json={"status": "skipped"}, headers=at(1)))
    log = ok(await foreign.get(f"/api/v1/intents/{intent['id']}/events"))["events"]
    (kept,) = next(one for one in log if one["type"] == "memory.archived")["data"]["snapshot"]
    assert kept["digest"] == "hmac-sha256:" + await _digest(crew, "other", {"pin": 1})
    assert kept["digest"] != digests["one"]


async def test_expired_entry_is_not_archived(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await remember(crew.a, task["id"], "short", ttl="duration:PT10S")
    await remember(crew.a, task["id"], "long", ttl="duration:PT60S")
    crew.service.clock.advance(10)
    await _ended(crew, task["id"])
    (archive,) = await _archives(crew)
    assert [one["key"] for one in archive["data"]["snapshot"]] == ["long"]
    (expired,) = await crew.log(event_type="memory.expired")
    assert (expired["data"]["key"], expired["actor"]) == ("short", "system")
    assert (await everything(crew.service)).entries == ()


async def test_only_expired_entries_make_no_archive(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await remember(crew.a, task["id"], ttl="duration:PT10S")
    crew.service.clock.advance(10)
    await _ended(crew, task["id"])
    assert await _archives(crew) == []
    assert len(await crew.log(event_type="memory.expired")) == 1


@pytest.mark.parametrize(
    ("guardrails", "archived"),
    [
        (None, False),
        ({"memory_archive_required": False}, False),
        ({"memory_archive_required": True}, True),
        ({"max_working_memory_per_task": 5}, True),
    ],
)
async def test_a_policy_against_archives_holds_unless_guardrails_demand_one(
    crew: Crew, guardrails: dict[str, Any] | None, archived: bool
) -> None:
    await crew.coordinate(guardrails)
    policy = {"archive_on_completion": False}
    task = await crew.task(assigned_agent="a", memory_policy=policy)
    for key in ("one", "two"):
        await remember(crew.a, task["id"], key, value={"text": "marker"})
    await _ended(crew, task["id"])
    assert (await everything(crew.service)).entries == ()
    deleted = await crew.log(event_type="memory.deleted")
    if archived:
        assert (len(await _archives(crew)), deleted) == (1, [])
    else:
        assert await _archives(crew) == []
        assert sorted(one["data"]["key"] for one in deleted) == ["one", "two"]
        assert "marker" not in json.dumps(await crew.log())


async def test_a_transaction_that_fails_archives_nothing(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, taken = await crew.working()
    for number in range(20):
        await remember(crew.a, task["id"], f"k{number}", taken.token, tags=["t"])
    stored, log = await everything(crew.service), await crew.log()
    task = await crew.now(task["id"])
    body, path = {"status": "completed"}, f"{TASKS}/{task['id']}"
    headers = at(task["version"] - 1, taken.token)
    assert_problem(await crew.a.patch(path, json=body, headers=headers), 409, "VERSION_MISMATCH")

    headers = at(task["version"], taken.token)
    append = class_of_store("Events").append
    for failing in (EventType.ARCHIVED, "task.completed"):

        async def failing_append(self: Any, event: Event, at_type: str = failing) -> Event:
            if event.type == at_type:
                raise RuntimeError("planted")
            return await append(self, event)

        with monkeypatch.context() as patched:
            patched.setattr(class_of_store("Events"), "append", failing_append)
            assert_problem(await crew.a.patch(path, json=body, headers=headers), 500)
        assert await everything(crew.service) == stored
        assert await crew.log() == log
        assert await crew.now(task["id"]) == task
    # The task's lease has outlived the failures, and nothing keeps the task from its end.
    ok(await crew.a.patch(path, json=body, headers=headers))
    assert (await _archives(crew))[0]["data"]["entries_archived"] == 20


async def test_a_thousand_entries_are_archived_at_once(crew: Crew) -> None:
    task, taken = await crew.working()
    for start in range(0, 1_000, 250):
        entries = [
            note(task["id"], f"k{number}", value={"number": number}, tags=["t", f"t{number % 7}"])
            for number in range(start, start + 250)
        ]
        ok(await crew.a.post(BATCH, json={"entries": entries}, headers=under(taken.token)))
    full = await crew.a.post(MEMORY, json=note(task["id"]), headers=under(taken.token))
    assert assert_problem(full, 429, "CAPACITY_EXCEEDED")["current_count"] == 1_000
    await crew.change(crew.a, task["id"], token=taken.token, status="completed")
    (archive,) = await _archives(crew)
    assert archive["data"]["entries_archived"] == 1_000
    numbers = {one["value"]["number"] for one in archive["data"]["snapshot"]}
    assert numbers == set(range(1_000))
    assert (await everything(crew.service)).entries == ()


async def test_the_archive_is_for_those_who_may_read_the_intent(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await remember(crew.a, task["id"], value={"text": "marker"})
    await _ended(crew, task["id"])
    assert_problem(await crew.outsider.get(f"{crew.intent_path}/events"), 403)
    assert "marker" in (await crew.a.get(f"{crew.intent_path}/events")).text
    stream = ok(await crew.a.get("/api/v1/agents/a/events", params={"limit": 1_000}))["events"]
    told = [one for one in stream if one["type"] == "memory.archived"]
    assert [one["data"] for one in told] == [{"entries_archived": 1}]


async def test_each_try_of_a_task_is_archived_by_itself(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    for number in (1, 2):
        await remember(crew.a, task["id"], value={"number": number})
        await _ended(crew, task["id"], "failed")
        assert_problem(await crew.a.post(MEMORY, json=note(task["id"])), 403, "ACCESS_DENIED")
        await crew.change(crew.chief, task["id"], status="ready")
    values = [one["data"]["snapshot"][0]["value"] for one in await _archives(crew)]
    assert values == [{"number": 1}, {"number": 2}]
