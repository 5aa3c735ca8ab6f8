"""Fencing tokens: every write that is made under a lease, and none by who lost it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.wire.operations import OPERATIONS
from tests.http.checks import BATCH, MEMORY, assert_problem, everything
from tests.http.test_loop_time import Requests, application, order
from tests.support.rounds import expire_leases
from tests.support.service import draft, open_service
from tests.work.crew import CLAIMS, INTENTS, TASKS, Crew, at, crew_of, note, ok, remember, under

pytestmark = pytest.mark.anyio

Write = Callable[[httpx.AsyncClient, dict[str, Any], dict[str, str]], Awaitable[httpx.Response]]


async def _create(
    client: httpx.AsyncClient, entry: dict[str, Any], headers: dict[str, str]
) -> httpx.Response:
    return await client.post(MEMORY, json=note(entry["scope"]["task_id"], "new"), headers=headers)


async def _patch(
    client: httpx.AsyncClient, entry: dict[str, Any], headers: dict[str, str]
) -> httpx.Response:
    path = f"{MEMORY}/{entry['id']}"
    return await client.patch(path, json={"value": {"n": 1}}, headers=headers | {"If-Match": "1"})


async def _delete(
    client: httpx.AsyncClient, entry: dict[str, Any], headers: dict[str, str]
) -> httpx.Response:
    return await client.delete(f"{MEMORY}/{entry['id']}", headers=headers)


async def _batch_create(
    client: httpx.AsyncClient, entry: dict[str, Any], headers: dict[str, str]
) -> httpx.Response:
    entries = [draft("free"), note(entry["scope"]["task_id"], "new")]
    return await client.post(BATCH, json={"entries": entries}, headers=headers)


async def _batch_update(
    client: httpx.AsyncClient, entry: dict[str, Any], headers: dict[str, str]
) -> httpx.Response:
    entries = [draft("free"), {"id": entry["id"], "version": 1, "tags": ["t"]}]
    return await client.post(BATCH, json={"entries": entries}, headers=headers)


async def _delete_by_filter(
    client: httpx.AsyncClient, entry: dict[str, Any], headers: dict[str, str]
) -> httpx.Response:
    query = {"scope.task_id": entry["scope"]["task_id"]}
    return await client.delete(BATCH, params=query, headers=headers)


async def _bridge(
    client: httpx.AsyncClient, entry: dict[str, Any], headers: dict[str, str]
) -> httpx.Response:
    path = f"/api/v1/agents/a/memory/{entry['namespace']}/{entry['key']}"
    return await client.put(path, json={"value": 7}, headers=headers)


async def _move_out(
    client: httpx.AsyncClient, entry: dict[str, Any], headers: dict[str, str]
) -> httpx.Response:
    path = f"{MEMORY}/{entry['id']}"
    return await client.patch(path, json={"scope": {}}, headers=headers | {"If-Match": "1"})


WRITES: dict[str, Write] = {
    "create": _create,
    "patch": _patch,
    "delete": _delete,
    "batch create": _batch_create,
    "batch update": _batch_update,
    "delete by filter": _delete_by_filter,
    "bridge": _bridge,
    "move out": _move_out,
}


@pytest.mark.parametrize("write", list(WRITES))
async def test_memory_of_a_leased_task_is_written_only_with_its_token(
    crew: Crew, write: str
) -> None:
    task, taken = await crew.working()
    entry = await remember(crew.a, task["id"], token=taken.token)
    other = await crew.take(crew.a, (await crew.task(assigned_agent="a"))["id"])
    theirs = await crew.take(crew.b, (await crew.task(assigned_agent="b"))["id"])
    before = await everything(crew.service)
    tokens = {
        "none": None,
        "another task's": other.token,
        "another agent's": theirs.token,
        "one to come": theirs.token + 1,
        "zero": 0,
    }
    for name, token in tokens.items():
        response = await WRITES[write](crew.a, entry, under(token))
        assert response.status_code == 409, (name, response.text)
        assert_problem(response, 409, "FENCED")
    assert await everything(crew.service) == before
    response = await WRITES[write](crew.a, entry, under(taken.token))
    assert response.is_success, response.text


@pytest.mark.parametrize("write", list(WRITES))
@pytest.mark.parametrize("fate", ["over", "swept", "taken anew", "given back"])
async def test_a_token_whose_lease_is_over_writes_nothing(
    crew: Crew, write: str, fate: str
) -> None:
    task, taken = await crew.working(seconds=30)
    entry = await remember(crew.a, task["id"], token=taken.token)
    if fate == "given back":
        path = f"{TASKS}/{task['id']}/lease"
        ok(await crew.a.delete(path, headers=under(taken.token)), 204)
    else:
        crew.service.clock.advance(30)
    if fate == "swept":
        assert await expire_leases(crew.service.services) == 1
    if fate == "taken anew":
        await crew.take(crew.a, task["id"])
    before = await everything(crew.service)
    response = await WRITES[write](crew.a, entry, under(taken.token))
    assert_problem(response, 409, "FENCED")
    assert await everything(crew.service) == before


@pytest.mark.parametrize("write", list(WRITES))
async def test_former_agent_of_a_task_cannot_write(crew: Crew, write: str) -> None:
    task, taken = await crew.working()
    entry = await remember(crew.a, task["id"], token=taken.token)
    await crew.change(crew.chief, task["id"], assigned_agent="b")
    before = await everything(crew.service)
    for token in (taken.token, None):
        response = await WRITES[write](crew.a, entry, under(token))
        # A deletion by filter goes past what is not to be deleted.
        assert response.status_code in (403, 409) or response.json() == {"deleted": 0}
    assert await everything(crew.service) == before


async def test_expired_lease_protects_its_task_until_it_is_ended(crew: Crew) -> None:
    task, taken = await crew.working(seconds=30)
    entry = await remember(crew.a, task["id"], token=taken.token)
    crew.service.clock.advance(30)
    assert_problem(await _patch(crew.a, entry, {}), 409, "FENCED")


@pytest.mark.parametrize("text", ["", "abc", "-1", "1.5", "+1", "9" * 19, "1 2", "\u0661"])
async def test_invalid_token_is_refused(crew: Crew, text: str) -> None:
    before = await everything(crew.service)
    headers = {b"Fencing-Token": text.encode()}
    response = await crew.a.post(MEMORY, json=draft(), headers=headers)
    assert_problem(response, 400)
    assert await everything(crew.service) == before


async def test_write_contains_its_fencing_token(crew: Crew) -> None:
    task, taken = await crew.working()
    entry = await remember(crew.a, task["id"], token=taken.token)
    assert entry["provenance"]["fencing_token"] == taken.token
    assert "fencing_token" not in (await remember(crew.b, "task_of_nobody"))["provenance"]


async def test_leased_task_changes_only_with_its_token(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    taken = await crew.take(crew.a, task["id"])
    for token in (None, taken.token + 1):
        response = await crew.try_change(crew.a, task["id"], token=token, status="running")
        assert_problem(response, 409, "FENCED")
    assert (await crew.now(task["id"]))["status"] == "claimed"
    await crew.change(crew.a, task["id"], token=taken.token, status="running")
    # Who coordinates holds no lease of it and needs none.
    await crew.change(crew.chief, task["id"], status="blocked")


async def test_the_agent_of_a_task_needs_its_token_also_where_it_administers(crew: Crew) -> None:
    task = await crew.task(assigned_agent="chief")
    taken = await crew.take(crew.chief, task["id"])
    other = await crew.task("other", assigned_agent="chief")
    for token in (None, (await crew.take(crew.chief, other["id"])).token):
        response = await crew.try_change(crew.chief, task["id"], token=token, status="completed")
        assert_problem(response, 409, "FENCED")
    assert (await crew.now(task["id"]))["status"] == "claimed"
    await crew.change(crew.chief, task["id"], token=taken.token, status="completed")


async def test_a_task_under_no_lease_needs_no_token(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await remember(crew.a, task["id"])
    await crew.change(crew.a, task["id"], status="claimed")


async def test_every_lease_has_a_greater_token_than_all_before(crew: Crew) -> None:
    ok(await crew.chief.put(f"{crew.intent_path}/acl", json={"default_policy": "open"}))
    tokens = []
    for number in range(3):
        task = await crew.task(assigned_agent="a")
        tokens.append((await crew.take(crew.a, task["id"], seconds=1)).token)
        body: dict[str, Any] = {"key": f"k{number}", "ttl_seconds": 1}
        tokens.append(ok(await crew.b.post(CLAIMS, json=body), 201)["fencing_token"])
        body = {"scope": "s", "duration_seconds": 1}
        path = f"{crew.intent_path}/leases"
        tokens.append(ok(await crew.a.post(path, json=body), 201)["fencing_token"])
        tokens.append((await crew.coordinate(heartbeat_interval_seconds=1))["fencing_token"])
        refused = await crew.a.post(path, json=body)
        assert_problem(refused, 409, "LEASE_HELD")
        crew.service.clock.advance(3)
        if number == 1:
            assert await expire_leases(crew.service.services) > 0
    assert len(tokens) == 12
    assert all(one < next_one for one, next_one in pairwise(tokens))


async def test_tokens_are_counted_for_each_tenant(crew: Crew) -> None:
    body = {"key": "k"}
    here = [ok(await crew.a.post(CLAIMS, json=body), 201)["fencing_token"]]
    foreign = await crew.service.agent("a", tenant="other")
    there = ok(await foreign.post(CLAIMS, json=body), 201)["fencing_token"]
    here.append(ok(await crew.a.post(CLAIMS, json={"key": "l"}), 201)["fencing_token"])
    assert here[1] == here[0] + 1
    assert there >= 1
    # The token of another tenant's lease is nothing here, whatever its number.
    write = await foreign.post(MEMORY, json=draft(), headers=under(here[1]))
    assert_problem(write, 409, "FENCED")


async def test_tokens_continue_after_a_restart(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        key = await service.key("a")
        crew = await crew_of(service)
        task, taken = await crew.working(seconds=600)
        entry = await remember(crew.a, task["id"], token=taken.token)
        a = service.client(key)
        claim = ok(await a.post(CLAIMS, json={"key": "k"}), 201)
        ok(await a.delete(f"{CLAIMS}/{claim['id']}"), 204)
        last = claim["fencing_token"]
    for _ in range(2):
        async with open_service(tmp_path) as service:
            a = service.client(key)
            claim = ok(await a.post(CLAIMS, json={"key": "k"}), 201)
            assert claim["fencing_token"] == last + 1
            last += 1
            ok(await a.delete(f"{CLAIMS}/{claim['id']}"), 204)
            # The lease has outlived the server: it guards as before, and its holder has it still.
            for headers in ({}, under(last)):
                assert_problem(await _create(a, entry, headers), 409, "FENCED")
            made = ok(await _create(a, entry, under(taken.token)), 201)
            ok(await a.delete(f"{MEMORY}/{made['id']}", headers=under(taken.token)), 204)


async def test_writes_to_tasks_and_intents_under_a_dead_token_are_refused(crew: Crew) -> None:
    task, taken = await crew.working(seconds=30)
    crew.service.clock.advance(30)
    dead = under(taken.token)
    change = {"status": "blocked"}
    path = f"{TASKS}/{task['id']}"
    response = await crew.a.patch(path, json=change, headers=at(task["version"]) | dead)
    assert_problem(response, 409, "FENCED")
    body = {"intent_id": crew.intent["id"], "name": "below"}
    for path in (TASKS, INTENTS):
        body = body if path == TASKS else {"title": "another"}
        assert_problem(await crew.a.post(path, json=body, headers=dead), 409, "FENCED")


# The whole table


def test_no_operation_succeeds_under_a_dead_token(tmp_path: Path) -> None:
    with application(tmp_path) as app:
        requests = Requests(app)
        fenced = [operation for operation in OPERATIONS if operation.fenced]
        for operation in sorted(fenced, key=order):
            url, options = next(requests.of(operation))
            options["headers"]["Fencing-Token"] = "999999"
            reply = app.request(operation.method, url, **options)
            # What is absent is absent before anybody looks at the lease.
            assert reply.status_code in (404, 409), (operation.name, reply.text)
            assert reply.json()["error"] in ("NOT_FOUND", "FENCED"), (operation.name, reply.text)
