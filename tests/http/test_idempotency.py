"""The same Idempotency-Key gives the first reply again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from memorywall.records.principal import Permission
from tests.http.checks import (
    BATCH,
    MARKER,
    MEMORY,
    assert_problem,
    everything,
    keys_of,
    make,
    until_erased,
)
from tests.support.rounds import sweep
from tests.support.service import RunningService, draft, open_service
from tests.support.stored import places_holding

pytestmark = pytest.mark.anyio

KEY = {"Idempotency-Key": "5b3f-retry 1"}
DAY = 24 * 60 * 60

CREATE = (MEMORY, draft(value={"text": MARKER}))
SEVERAL = (BATCH, {"entries": [draft("a"), draft("b", value={"text": MARKER})]})
BOTH = pytest.mark.parametrize(("path", "body"), [CREATE, SEVERAL], ids=["create", "batch"])


def _same(first: httpx.Response, second: httpx.Response) -> None:
    assert first.is_success, first.text
    assert second.status_code == first.status_code, second.text
    assert second.content == first.content
    for name in ("content-type", "location", "etag"):
        assert second.headers.get(name) == first.headers.get(name), name


@BOTH
async def test_a_repetition_gets_the_first_reply_and_changes_nothing(
    service: RunningService, path: str, body: dict[str, Any]
) -> None:
    agent = await service.agent("ada")
    first = await agent.post(path, json=body, headers=KEY)
    before = await everything(service)
    service.clock.advance(60)
    _same(first, await agent.post(path, json=body, headers=KEY))
    assert await everything(service) == before


async def test_a_create_with_a_key_answers_like_one_without(service: RunningService) -> None:
    agent = await service.agent("ada")
    response = await agent.post(MEMORY, json=draft(), headers=KEY)
    assert response.status_code == 201
    assert response.headers["location"] == f"{MEMORY}/{response.json()['id']}"
    assert response.headers["etag"] == '"1"'


@BOTH
async def test_a_repetition_after_a_restart_gets_the_first_reply(
    tmp_path: Path, path: str, body: dict[str, Any]
) -> None:
    async with open_service(tmp_path) as service:
        key = await service.key("ada")
        first = await service.client(key).post(path, json=body, headers=KEY)
    async with open_service(tmp_path) as service:
        again = await service.client(key).post(path, json=body, headers=KEY)
        _same(first, again)
        assert len((await everything(service)).entries) == len(body.get("entries", [1]))


async def test_a_changed_entry_does_not_change_the_kept_reply(service: RunningService) -> None:
    agent = await service.agent("ada")
    first = await agent.post(MEMORY, json=draft(), headers=KEY)
    path = f"{MEMORY}/{first.json()['id']}"
    changed = await agent.patch(path, json={"value": {"n": 2}}, headers={"If-Match": "1"})
    assert changed.is_success
    _same(first, await agent.post(MEMORY, json=draft(), headers=KEY))
    assert (await agent.get(path)).json()["version"] == 2


@BOTH
async def test_another_body_under_the_key_is_refused(
    service: RunningService, path: str, body: dict[str, Any]
) -> None:
    agent = await service.agent("ada")
    assert (await agent.post(path, json=body, headers=KEY)).is_success
    before = await everything(service)
    for other_path, other in (
        (MEMORY, draft("other")),
        (BATCH, {"entries": [draft("other")]}),
    ):
        response = await agent.post(other_path, json=other, headers=KEY)
        assert_problem(response, 422, "IDEMPOTENCY_KEY_REUSED")
        assert MARKER not in response.text
        assert "5b3f" not in response.text
    assert await everything(service) == before


async def test_at_the_same_moment_the_key_still_works_once(service: RunningService) -> None:
    agent = await service.agent("ada")
    replies: list[httpx.Response] = []

    async def send() -> None:
        replies.append(await agent.post(MEMORY, json=draft(), headers=KEY))

    async with anyio.create_task_group() as group:
        for _ in range(16):
            group.start_soon(send)
    for reply in replies:
        _same(replies[0], reply)
    assert len((await everything(service)).events) == 1


@pytest.mark.parametrize("end", ["deleted", "deleted-by-filter", "evicted", "expired", "unswept"])
async def test_a_reply_is_erased_with_its_entry(tmp_path: Path, end: str) -> None:
    async with open_service(tmp_path, episodic_capacity=1, erasure_deadline=0.2) as service:
        agent = await service.agent("ada")
        tier = "episodic" if end == "evicted" else "working"
        body = draft(value={"text": MARKER}, memory_type=tier, ttl="duration:PT1M")
        made = (await agent.post(MEMORY, json=body, headers=KEY)).json()
        if end == "deleted":
            assert (await agent.delete(f"{MEMORY}/{made['id']}")).is_success
        elif end == "deleted-by-filter":
            assert (await agent.request("DELETE", BATCH, params={"key": "progress"})).is_success
        elif end == "evicted":
            await make(agent, "other", memory_type="episodic")
        else:
            service.clock.advance(60)
        if end == "expired":
            assert await sweep(service.services) == 1
        again = await agent.post(MEMORY, json=body, headers=KEY)
        assert_problem(again, 410, "REPLY_ERASED")
        assert MARKER not in again.text
        assert await keys_of(agent, key="progress") == []
        other = await agent.post(MEMORY, json=draft("other"), headers=KEY)
        assert_problem(other, 422, "IDEMPOTENCY_KEY_REUSED")
        if end != "unswept":
            await until_erased(service)
            assert places_holding(tmp_path, MARKER.encode()) == []


async def test_one_deleted_entry_erases_the_reply_of_its_whole_batch(
    service: RunningService,
) -> None:
    agent = await service.agent("ada")
    reply = (await agent.post(BATCH, json=SEVERAL[1], headers=KEY)).json()
    assert (await agent.delete(f"{MEMORY}/{reply['entries'][0]['id']}")).is_success
    again = await agent.post(BATCH, json=SEVERAL[1], headers=KEY)
    assert_problem(again, 410, "REPLY_ERASED")
    assert await keys_of(agent) == ["b"]


async def test_keys_are_not_shared(service: RunningService) -> None:
    runner = await service.key("runner", permissions=list(Permission))
    clients = [
        await service.agent("ada"),
        await service.agent("other"),
        await service.agent("ada", tenant="elsewhere"),
        service.client(runner),
        service.client(runner, agent="third"),
    ]
    replies = [await client.post(MEMORY, json=draft(), headers=KEY) for client in clients]
    assert [reply.status_code for reply in replies] == [201] * len(clients)
    assert len({reply.json()["id"] for reply in replies}) == len(clients)
    second = await service.agent("ada")
    _same(replies[0], await second.post(MEMORY, json=draft(), headers=KEY))


async def test_a_reply_is_kept_for_a_day(service: RunningService) -> None:
    agent = await service.agent("ada")
    first = await agent.post(MEMORY, json=draft(), headers=KEY)
    service.clock.advance(DAY - 1)
    await sweep(service.services)
    _same(first, await agent.post(MEMORY, json=draft(), headers=KEY))
    service.clock.advance(2)
    await sweep(service.services)
    anew = await agent.post(MEMORY, json=draft(), headers=KEY)
    assert_problem(anew, 409, "ENTRY_EXISTS")
    assert (await agent.post(MEMORY, json=draft("other"), headers=KEY)).status_code == 201


async def test_a_refused_request_is_not_kept(service: RunningService) -> None:
    agent = await service.agent("ada")
    blocker = await make(agent)
    clash = await agent.post(MEMORY, json=draft(), headers=KEY)
    assert_problem(clash, 409, "ENTRY_EXISTS")
    batch = await agent.post(BATCH, json={"entries": [draft("x"), draft()]}, headers=KEY)
    assert_problem(batch, 409, "ENTRY_EXISTS")
    invalid = await agent.post(MEMORY, json=draft(ttl="x"), headers=KEY)
    assert_problem(invalid, 422, "VALIDATION_ERROR")
    assert (await agent.delete(f"{MEMORY}/{blocker['id']}")).is_success
    assert (await agent.post(MEMORY, json=draft(), headers=KEY)).status_code == 201


async def test_without_a_key_nothing_is_repeated(service: RunningService) -> None:
    agent = await service.agent("ada")
    assert (await agent.post(MEMORY, json=draft())).status_code == 201
    assert (await agent.post(MEMORY, json=draft())).status_code == 409


async def test_the_kept_reply_is_unreadable_on_disk(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        agent = await service.agent("ada")
        body = draft(value={"text": MARKER}, sensitivity="confidential")
        first = await agent.post(MEMORY, json=body, headers=KEY)
        _same(first, await agent.post(MEMORY, json=body, headers=KEY))
        assert places_holding(tmp_path, MARKER.encode()) == []
    assert places_holding(tmp_path, MARKER.encode()) == []


async def test_a_revoked_permission_stops_a_repetition_too(service: RunningService) -> None:
    agent = await service.agent("ada")
    assert (await agent.post(MEMORY, json=CREATE[1], headers=KEY)).is_success
    reader = await service.agent("ada", permissions=[Permission.READ])
    response = await reader.post(MEMORY, json=CREATE[1], headers=KEY)
    assert_problem(response, 403, "ACCESS_DENIED")
    assert MARKER not in response.text
