"""What a key may do at all comes before what its agent's part in the work allows (6.4)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memorywall.records.principal import Permission
from tests.http.checks import assert_problem, everything
from tests.work.crew import CLAIMS, COORDINATORS, INTENTS, TASKS, Crew, Taken, at, ok, under

pytestmark = pytest.mark.anyio

READ_ONLY = (Permission.READ,)
WRITE_ONLY = (Permission.WRITE,)


async def _key(crew: Crew, agent: str, *permissions: Permission) -> httpx.AsyncClient:
    """Another client of an agent, whose key may do only so much."""
    return await crew.service.agent(agent, permissions=permissions)


async def _refused(crew: Crew, responses: list[httpx.Response], before: object) -> None:
    for response in responses:
        request = response.request
        assert response.status_code == 403, (request.method, request.url.path, response.text)
        assert_problem(response, 403, "ACCESS_DENIED")
    assert await everything(crew.service) == before


async def test_read_only_key_cannot_claim_a_task(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await crew.task("free")
    before = await everything(crew.service)
    reader = await _key(crew, "a", *READ_ONLY)
    ok(await reader.get(f"{TASKS}/{task['id']}"))
    responses = [await reader.post(f"{TASKS}/{task['id']}/claim", json={})]
    await _refused(crew, responses, before)


async def test_a_key_that_only_reads_is_given_no_task(crew: Crew) -> None:
    await crew.task(assigned_agent="a")
    before = await everything(crew.service)
    reader = await _key(crew, "a", *READ_ONLY)
    response = await reader.post(f"{TASKS}/next", json={})
    assert response.status_code in (204, 403), response.text
    assert await everything(crew.service) == before


async def test_a_key_that_only_writes_is_shown_no_task(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    before = await everything(crew.service)
    writer = await _key(crew, "a", *WRITE_ONLY)
    responses = [
        await writer.post(f"{TASKS}/next", json={}),
        await writer.post(f"{TASKS}/{task['id']}/claim", json={}),
    ]
    await _refused(crew, responses, before)


async def _taken(crew: Crew) -> tuple[Taken, httpx.AsyncClient]:
    """A task that `a` has taken up, and a client of `a` that may only read."""
    taken = await crew.take(crew.a, (await crew.task(assigned_agent="a"))["id"], seconds=600)
    return taken, await _key(crew, "a", *READ_ONLY)


async def test_a_key_that_only_reads_changes_no_task(crew: Crew) -> None:
    taken, reader = await _taken(crew)
    before = await everything(crew.service)
    path, token = f"{TASKS}/{taken.task['id']}", taken.token
    change = {"status": "running"}
    headers = at(taken.task["version"], token)
    await _refused(crew, [await reader.patch(path, json=change, headers=headers)], before)


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_a_key_that_only_reads_neither_keeps_nor_ends_a_task_lease(
    crew: Crew, method: str
) -> None:
    taken, reader = await _taken(crew)
    before = await everything(crew.service)
    path = f"{TASKS}/{taken.task['id']}/lease"
    body = {"duration_seconds": 3_600} if method == "PATCH" else None
    response = await reader.request(method, path, json=body, headers=under(taken.token))
    await _refused(crew, [response], before)


@pytest.mark.parametrize("step", ["heartbeat", "resign"])
async def test_read_only_key_cannot_send_a_heartbeat(crew: Crew, step: str) -> None:
    path = f"{COORDINATORS}/{(await crew.coordinate())['id']}"
    before = await everything(crew.service)
    reader = await _key(crew, "chief", *READ_ONLY)
    made = ok(await reader.get(path))
    if step == "heartbeat":
        response = await reader.post(f"{path}/heartbeat")
    else:
        response = await reader.delete(path)
    await _refused(crew, [response], before)
    assert ok(await reader.get(path)) == made


async def test_a_key_that_only_reads_changes_nothing_else(crew: Crew) -> None:
    path = crew.intent_path
    lease = ok(await crew.chief.post(f"{path}/leases", json={"scope": "s"}), 201)
    line = ok(await crew.chief.post(f"{path}/acl/entries", json={"principal_id": "b"}), 201)
    claim = ok(await crew.chief.post(CLAIMS, json={"key": "k"}), 201)
    before = await everything(crew.service)
    reader = await _key(crew, "chief", *READ_ONLY)
    patches: dict[str, Any] = {"patches": [{"op": "set", "path": "x", "value": 1}]}
    intent_id = crew.intent["id"]
    responses = [
        await reader.post(INTENTS, json={"title": "t"}),
        await reader.post(f"{path}/state", json=patches, headers=at(1)),
        await reader.post(f"{path}/status", json={"status": "draft"}, headers=at(1)),
        await reader.post(f"{path}/events", json={"event_type": "note"}),
        await reader.post(f"{path}/leases", json={"scope": "other"}),
        await reader.patch(f"{path}/leases/{lease['id']}", json={}),
        await reader.delete(f"{path}/leases/{lease['id']}"),
        await reader.put(f"{path}/acl", json={}),
        await reader.post(f"{path}/acl/entries", json={"principal_id": "a"}),
        await reader.delete(f"{path}/acl/entries/{line['id']}"),
        await reader.post(TASKS, json={"intent_id": intent_id, "name": "n"}),
        await reader.post(COORDINATORS, json={"agent_id": "chief", "intent_id": intent_id}),
        await reader.post(CLAIMS, json={"key": "other"}),
        await reader.patch(f"{CLAIMS}/{claim['id']}", json={}),
        await reader.delete(f"{CLAIMS}/{claim['id']}"),
        await reader.put("/api/v1/agents/chief/memory/ns/k", json={"value": 1}),
        await reader.put("/api/v1/agents/chief/memory/limits", json={}),
    ]
    await _refused(crew, responses, before)


async def test_a_key_that_only_writes_reads_nothing(crew: Crew) -> None:
    task = await crew.task()
    coordinator = await crew.coordinate()
    claim = ok(await crew.chief.post(CLAIMS, json={"key": "k"}), 201)
    before = await everything(crew.service)
    writer = await _key(crew, "chief", *WRITE_ONLY)
    path = crew.intent_path
    responses = [
        await writer.get(one)
        for one in (
            INTENTS,
            path,
            f"{path}/events",
            f"{path}/subscribe",
            f"{path}/leases",
            f"{path}/acl",
            f"{path}/tasks",
            f"{path}/coordinators",
            f"{TASKS}/{task['id']}",
            f"{COORDINATORS}/{coordinator['id']}",
            f"{CLAIMS}/{claim['id']}",
        )
    ]
    await _refused(crew, responses, before)
    listed = await writer.get(CLAIMS, params={"scope": "global"})
    assert listed.status_code == 403 or listed.json() == {"claims": []}


async def test_without_a_key_there_is_nothing(crew: Crew) -> None:
    nobody = crew.service.client()
    for path in (INTENTS, crew.intent_path, TASKS, CLAIMS, f"{crew.intent_path}/subscribe"):
        assert_problem(await nobody.get(path), 401, "UNAUTHENTICATED")
