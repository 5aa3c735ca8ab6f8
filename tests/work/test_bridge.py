"""The compatibility route of the protocol's MCP bridge: any JSON under a name."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.http.checks import MEMORY, assert_problem, events_of, everything, make
from tests.support.service import RunningService
from tests.work.crew import Crew, ok, remember

pytestmark = pytest.mark.anyio

VALUES: list[Any] = [
    "text",
    "",
    "tëxt ☃ \u0000",
    0,
    -7,
    1.5,
    True,
    False,
    None,
    [],
    [1, "two", {"three": None}],
    {},
    {"total": 47},
    {"value": "wrapped"},
    {"value": None},
    {"value": {"value": {"value": 1}}},
    {"value": 1, "other": 2},
]


def _path(key: str = "k", namespace: str = "ns", agent: str = "a") -> str:
    return f"/api/v1/agents/{quote(agent)}/memory/{quote(namespace, safe='')}/{quote(key, safe='')}"


async def _put(client: httpx.AsyncClient, value: Any, key: str = "k", **body: Any) -> Any:
    return ok(await client.put(_path(key), json={"value": value, **body}))


@pytest.mark.parametrize("value", VALUES, ids=repr)
async def test_get_returns_the_put_value(service: RunningService, value: Any) -> None:
    a = await service.agent("a")
    put = await _put(a, value)
    assert put == {
        "agent_id": "a",
        "namespace": "ns",
        "key": "k",
        "value": value,
        "version": 1,
        "updated_at": "2026-02-02T02:40:00.000Z",
        "expires_at": None,
    }
    assert ok(await a.get(_path())) == put
    assert type(put["value"]) is type(value)
    (entry,) = ok(await a.get(MEMORY, params={"agent_id": "a"}))["entries"]
    assert (entry["memory_type"], entry["namespace"], entry["key"]) == ("working", "ns", "k")
    wrapped = not isinstance(value, dict) or set(value) == {"value"}
    assert entry["value"] == ({"value": value} if wrapped else value)


async def test_putting_again_replaces(service: RunningService) -> None:
    a = await service.agent("a")
    for number, value in enumerate(VALUES, start=1):
        put = await _put(a, value)
        assert (put["value"], put["version"]) == (value, number)
    assert len((await everything(service)).entries) == 1
    kinds = [one["type"] for one in await events_of(a, "a")]
    assert kinds == ["memory.created"] + ["memory.updated"] * (len(VALUES) - 1)


async def test_a_value_lives_as_long_as_was_asked_for(service: RunningService) -> None:
    a = await service.agent("a")
    put = await _put(a, "short", ttl_seconds=60)
    assert put["expires_at"] == "2026-02-02T02:41:00.000Z"
    service.clock.advance(30)
    again = await _put(a, "longer", ttl_seconds=60)
    assert (again["expires_at"], again["version"]) == ("2026-02-02T02:41:30.000Z", 2)
    service.clock.advance(59.999)
    assert ok(await a.get(_path()))["value"] == "longer"
    service.clock.advance(0.001)
    assert_problem(await a.get(_path()), 404, "ENTRY_NOT_FOUND")
    fresh = await _put(a, "anew")
    assert (fresh["version"], fresh["expires_at"]) == (1, None)


async def test_put_without_ttl_removes_the_old_ttl(service: RunningService) -> None:
    a = await service.agent("a")
    await _put(a, "short", ttl_seconds=60)
    assert (await _put(a, "forever"))["expires_at"] is None
    service.clock.advance(10**7)
    assert ok(await a.get(_path()))["value"] == "forever"


@pytest.mark.parametrize("key", ["a b", "a.b", "ü", "k%41", "summary", "limits", "100%", "a+b"])
async def test_names_are_taken_as_they_are(service: RunningService, key: str) -> None:
    a = await service.agent("a")
    assert (await _put(a, 1, key))["key"] == key
    assert ok(await a.get(_path(key)))["key"] == key


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"value": 1, "ttl_seconds": 0}, 422),
        ({"value": 1, "ttl_seconds": 1.5}, 422),
        ({"value": 1, "ttl": 5}, 422),
        ({"value": "x" * 65_536}, 413),
        ([], 422),
    ],
)
async def test_what_cannot_be_put(service: RunningService, body: Any, status: int) -> None:
    a = await service.agent("a")
    assert_problem(await a.put(_path(), json=body), status)
    assert (await everything(service)).entries == ()


async def test_it_is_behind_the_same_wall(crew: Crew) -> None:
    await _put(crew.a, "secret")
    body = {"value": "stolen"}
    assert_problem(await crew.b.put(_path(), json=body), 403, "ACCESS_DENIED")
    response = await crew.b.get(_path())
    assert response.status_code in (403, 404), response.text
    assert "secret" not in response.text
    assert ok(await crew.a.get(_path()))["value"] == "secret"
    foreign = await crew.service.agent("a", tenant="other")
    assert_problem(await foreign.get(_path()), 404)
    unauthenticated = await crew.service.client().get(_path())
    assert_problem(unauthenticated, 401)


async def test_it_shows_what_work_opens(crew: Crew) -> None:
    task = await crew.task(assigned_agent="a")
    await remember(crew.a, task["id"], value={"value": 7})
    await crew.change(crew.chief, task["id"], assigned_agent="b")
    path = _path("progress", "invoices")
    assert ok(await crew.b.get(path))["value"] == 7
    assert_problem(await crew.b.put(path, json={"value": 8}), 403)
    assert_problem(await crew.a.put(path, json={"value": 8}), 403)


async def test_it_finds_working_memory_alone(service: RunningService) -> None:
    a = await service.agent("a")
    await make(a, "k", namespace="ns", memory_type="episodic")
    assert_problem(await a.get(_path()), 404, "ENTRY_NOT_FOUND")
    await _put(a, "working")
    assert len((await everything(service)).entries) == 2
