"""Forgetting a person: earlier versions, the log, archives; what the reply tells, and to whom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from memorywall.records.event import EventType
from memorywall.records.principal import DEFAULT_PERMISSIONS, Maintenance, Permission
from memorywall.service.entries.removal import take_out_entry
from memorywall.service.requests.event_log import append_work_event
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.maintenance import maintain
from tests.http.checks import MEMORY, assert_problem, make, until_erased
from tests.support.damage import verified
from tests.support.service import RunningService
from tests.support.stored import places_holding, rows
from tests.work.crew import TASKS, at, ok

pytestmark = pytest.mark.anyio

IVAN = "ivan-4711"
FORGET = f"/api/v1/subjects/{IVAN}/forget"
SEALED = {"sensitivity": "restricted"}
FACTS = {"memory_type": "semantic", "namespace": "facts"}
SEALINGS = pytest.mark.parametrize("sealing", [{}, SEALED], ids=["plain", "sealed"])


@pytest.fixture
async def ada(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("ada") as client:
        yield client


@pytest.fixture
async def chief(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("chief", permissions=tuple(Permission)) as client:
        yield client


async def _change(client: httpx.AsyncClient, entry: dict[str, Any], **fields: Any) -> None:
    match = {"If-Match": str(entry["version"])}
    ok(await client.patch(f"{MEMORY}/{entry['id']}", json=fields, headers=match))


async def _delete(client: httpx.AsyncClient, entry: dict[str, Any]) -> None:
    ok(await client.delete(f"{MEMORY}/{entry['id']}"), 204)


async def _check_gone(service: RunningService) -> None:
    """The name stands nowhere, and the log is whole."""
    await until_erased(service)
    directory = service.services.settings.sqlite_path.parent
    assert places_holding(directory, IVAN.encode()) == []
    assert verified(service.services.settings.sqlite_path).problems == []


@SEALINGS
async def test_earlier_versions_about_the_person_go(
    service: RunningService, chief: httpx.AsyncClient, sealing: dict[str, str]
) -> None:
    body = {"key": "k", "value": {"text": f"{IVAN} and ann"}, "subjects": [IVAN, "ann"],
            **FACTS, **sealing}  # fmt: skip
    once = {"Idempotency-Key": "once"}
    made = ok(await chief.post(MEMORY, json=body, headers=once), 201)
    service.clock.advance(5)
    then = service.services.now()
    service.clock.advance(5)
    await _change(chief, made, subjects=["ann"], value={"text": "ann"})
    # Each carries the subjects of the version that it is derived from.
    drawn = [
        await make(
            chief, key, derived_from=[{"id": made["id"], "version": version}], **FACTS, **sealing
        )
        for version, key in ((1, "of-first"), (2, "of-second"))
    ]
    assert [len(one["subjects"]) for one in drawn] == [2, 1]
    path = f"{MEMORY}/{made['id']}"
    assert ok(await chief.get(path, params={"version": 1}))["subjects"] == [IVAN, "ann"]

    gone = ok(await chief.post(FORGET))
    assert (gone["versions"], gone["entries"], gone["derived"]) == (1, {"semantic": 1}, 1)
    assert gone["receipt"].startswith("evt_")
    assert_problem(await chief.get(path, params={"version": 1}), 404)
    assert_problem(await chief.get(path, params={"as_of": then}), 404)
    found = ok(await chief.get(MEMORY, params={"as_of": then, "namespace": "facts"}))
    assert found["entries"] == []
    assert ok(await chief.get(path))["value"] == {"text": "ann"}
    assert [one["version"] for one in ok(await chief.get(f"{path}/history"))["versions"]] == [2]
    assert_problem(await chief.get(f"{MEMORY}/{drawn[0]['id']}"), 404)
    assert ok(await chief.get(f"{MEMORY}/{drawn[1]['id']}"))["key"] == "of-second"
    assert_problem(await chief.post(MEMORY, json=body, headers=once), 410, "REPLY_ERASED")
    again = ok(await chief.post(FORGET))
    assert (again["receipt"], again["versions"], again["events"]) == (None, 0, 0)
    await _check_gone(service)


@SEALINGS
async def test_names_of_entries_that_were_deleted_before_go(
    service: RunningService,
    ada: httpx.AsyncClient,
    chief: httpx.AsyncClient,
    sealing: dict[str, str],
) -> None:
    bound = {"X-Subject": IVAN}
    body = {"namespace": "p", "key": f"{IVAN}-diet", "value": {}, "memory_type": "episodic"}
    about = {**body, "tags": [IVAN], **sealing}
    await _delete(ada, ok(await ada.post(MEMORY, json=about, headers=bound), 201))
    # Its last version is about ann only.
    once = await make(ada, f"once-{IVAN}", subjects=[IVAN, "ann"], **sealing)
    await _change(ada, once, subjects=["ann"])
    await _delete(ada, once)
    # Neither names a subject.
    await _delete(ada, await make(ada, "k", namespace=f"user/{IVAN}/notes"))
    await make(ada, "still", namespace=f"user/{IVAN}/notes")
    kept = await make(ada, "kept", subjects=["ann"])
    gone = ok(await chief.post(FORGET))
    assert (gone["entries"], gone["events"]) == ({"working": 1}, 7)
    again = ok(await chief.post(FORGET))
    assert (again["receipt"], again["events"]) == (None, 0)
    assert ok(await ada.get(f"{MEMORY}/{kept['id']}"))["subjects"] == ["ann"]
    assert [one["key"] for one in ok(await ada.get(MEMORY))["entries"]] == ["kept"]
    await _check_gone(service)


async def _task(client: httpx.AsyncClient, agent: str) -> dict[str, Any]:
    intent = ok(await client.post("/api/v1/intents", json={"title": "t"}), 201)
    body = {"intent_id": intent["id"], "name": "n", "assigned_agent": agent}
    task: dict[str, Any] = ok(await client.post(TASKS, json=body), 201)
    return task


@SEALINGS
async def test_archives_about_the_person_go_and_others_stay(
    service: RunningService, chief: httpx.AsyncClient, sealing: dict[str, str]
) -> None:
    task = await _task(chief, "chief")
    scope = {"task_id": task["id"], "intent_id": task["intent_id"]}
    for key, subjects in (
        (IVAN, [IVAN]), ("both", [IVAN, "ann"]), ("ann", ["ann"]), ("nobody", [])
    ):  # fmt: skip
        tags = [one for one in subjects if one == IVAN]
        await make(chief, key, scope=scope, subjects=subjects, tags=tags, **sealing)
    ok(await chief.patch(f"{TASKS}/{task['id']}", json={"status": "skipped"}, headers=at(1)))
    log = f"/api/v1/intents/{task['intent_id']}/events"

    async def archived() -> list[list[str]]:
        events = ok(await chief.get(log, params={"event_type": "memory.archived"}))["events"]
        return [
            [entry["key"] for entry in one["data"]["snapshot"]] for one in events if one["actor"]
        ]

    assert sorted(await archived()) == [["ann"], ["both"], [IVAN], ["nobody"]]
    assert verified(service.services.settings.sqlite_path).problems == []
    gone = ok(await chief.post(FORGET))
    assert (gone["entries"], gone["events"]) == ({}, 4)
    assert sorted(await archived()) == [["ann"], ["nobody"]]
    assert ok(await chief.post(FORGET))["receipt"] is None
    await _check_gone(service)


async def test_an_older_archive_of_several_people_goes_as_a_whole(
    service: RunningService, ada: httpx.AsyncClient, chief: httpx.AsyncClient
) -> None:
    made = [
        await make(ada, IVAN, subjects=[IVAN]),
        await make(ada, "nobody"),
        await make(ada, "elsewhere"),
    ]

    async def archive(context: OperationContext) -> None:
        for group in (made[:2], made[2:]):
            snapshot = [
                {"entry_id": one["id"], "agent_id": "ada", "namespace": one["namespace"],
                 "key": one["key"], "version": 1}
                for one in group
            ]  # fmt: skip
            for one in group:
                entry = await context.transaction.entries.get(one["id"], context.now)
                assert entry is not None
                await take_out_entry(context, entry)
            data = {"entries_archived": len(snapshot), "snapshot": snapshot}
            await append_work_event(context, EventType.ARCHIVED, data=data, agent="ada")

    await maintain(service.services, "default", Maintenance.ERASE, archive)
    assert verified(service.services.settings.sqlite_path).problems == []
    assert ok(await chief.post(FORGET))["events"] == 2
    types = [(one["type"], one["actor"]) for one in
             ok(await ada.get("/api/v1/agents/ada/events"))["events"]]  # fmt: skip
    assert types.count(("memory.archived", "system")) == 1
    assert ok(await chief.post(FORGET))["receipt"] is None
    await _check_gone(service)


async def test_derived_entries_are_counted_by_their_sources(
    ada: httpx.AsyncClient, chief: httpx.AsyncClient
) -> None:
    source = await make(ada, "source", subjects=[IVAN])
    drawn = await make(ada, "drawn", derived_from=[{"id": source["id"], "version": 1}])
    assert drawn["subjects"] == [IVAN]
    gone = ok(await chief.post(FORGET))
    assert (gone["entries"], gone["derived"]) == ({"working": 2}, 1)


async def test_the_reply_waits_for_the_files(
    service: RunningService, ada: httpx.AsyncClient, chief: httpx.AsyncClient
) -> None:
    await make(ada, "k", subjects=[IVAN])
    assert ok(await chief.post(FORGET, params={"wait": 20}))["bytes_left_in_files"] is False
    await make(ada, "k", subjects=[IVAN])
    # Bytes that are left do not make the erasure look as if it had failed.
    assert "erased" not in ok(await chief.post(FORGET))
    again = ok(await chief.post(FORGET, params={"wait": 20}))
    assert (again["receipt"], again["bytes_left_in_files"]) == (None, False)
    for wait in (-1, 21):
        assert_problem(await chief.post(FORGET, params={"wait": wait}), 400)


async def test_an_agent_is_forgotten_over_http(
    service: RunningService, ada: httpx.AsyncClient, chief: httpx.AsyncClient
) -> None:
    await make(ada, "k", **SEALED)
    await make(ada, "shared", **FACTS)
    path = "/api/v1/agents/ada/forget"
    gone = ok(await chief.post(path, params={"wait": 20}))
    assert gone == {
        "entries": {"working": 1},
        "stored_replies": 0,
        "limits": 0,
        "groups": 0,
        "api_keys": 1,
        "data_keys": 1,
        "bytes_left_in_files": False,
        "in_ledger": gone["in_ledger"],
    }
    assert_problem(await ada.get(MEMORY), 401)
    found = ok(await chief.get(MEMORY, params={"namespace": "facts"}))["entries"]
    assert [one["key"] for one in found] == ["shared"]
    again = ok(await chief.post(path))
    assert (again["entries"], again["api_keys"], again["data_keys"]) == ({}, 0, 0)
    log = rows(service, "SELECT type FROM events WHERE type = 'agent.forgotten'")
    assert len(log) == 1
    assert_problem(await chief.post("/api/v1/agents/group:x/forget"), 422)
    assert verified(service.services.settings.sqlite_path).problems == []


@pytest.mark.parametrize("path", [FORGET, "/api/v1/agents/chief/forget"])
async def test_a_refusal_names_the_permission_that_is_needed(
    service: RunningService, chief: httpx.AsyncClient, path: str
) -> None:
    await make(chief, "k", subjects=[IVAN])
    for agent, permissions in (
        ("ada", DEFAULT_PERMISSIONS),
        ("grace", (*DEFAULT_PERMISSIONS, Permission.ADMIN)),
    ):
        async with await service.agent(agent, permissions=permissions) as client:
            refused = assert_problem(await client.post(path), 403)
            assert "tenant.admin" in refused["message"]
            assert "memory.admin" not in refused["message"]
    assert [one["key"] for one in ok(await chief.get(MEMORY))["entries"]] == ["k"]
