"""Earlier versions, the tiers as data, and eviction by administrators."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from memorywall.records.principal import Permission
from memorywall.tiers import TIERS
from tests.http.checks import MEMORY, assert_problem
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

FACT = {"memory_type": "semantic", "namespace": "facts"}


@pytest.fixture
async def chief(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("chief", permissions=tuple(Permission)) as client:
        yield client


async def _fact(
    service: RunningService, client: httpx.AsyncClient, key: str = "k", **fields: Any
) -> dict[str, str]:
    """A fact with three versions, a minute apart; returns the instants between them."""
    made = (await client.post(MEMORY, json=draft(key, **{**FACT, **fields}))).json()
    path, instants = f"{MEMORY}/{made['id']}", {"path": f"{MEMORY}/{made['id']}"}
    for version in (1, 2):
        instants[f"after {version}"] = service.services.now()
        service.clock.advance(60)
        change = {"value": {"completed": version * 100}, "tags": [f"v{version + 1}"]}
        await client.patch(path, json=change, headers={"If-Match": str(version)})
    return instants


@pytest.mark.parametrize("sensitivity", ["internal", "restricted"])
async def test_earlier_version_is_read_by_number_and_by_instant(
    service: RunningService, chief: httpx.AsyncClient, sensitivity: str
) -> None:
    made = await _fact(service, chief, sensitivity=sensitivity)

    async def value(**asked: str) -> Any:
        response = await chief.get(made["path"], params=asked)
        return response.json().get("value", response.status_code)

    assert await value(version="1") == {"completed": 23}
    assert await value(version="2") == {"completed": 100}
    assert await value(version="3") == await value() == {"completed": 200}
    assert await value(as_of=made["after 1"]) == {"completed": 23}
    assert await value(as_of=made["after 2"]) == {"completed": 100}
    assert await value(as_of=service.services.now()) == {"completed": 200}
    assert await value(version="4") == 404
    absent = assert_problem(await chief.get(made["path"], params={"version": 4}), 404, "NOT_FOUND")
    assert absent["detail"] == "the entry has not had a version of this number yet"
    assert await value(as_of="2020-01-01T00:00:00Z") == await value(as_of="2020-01-01") == 404
    await chief.delete(made["path"])
    assert await value(version="1") == 404


async def test_a_name_and_an_export_take_an_instant(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    made = await _fact(service, chief, sensitivity="restricted")
    await chief.post(MEMORY, json=draft("later", **FACT))
    named = {"namespace": "facts", "key": "k"}

    async def found(**asked: str) -> Any:
        response = await chief.get(f"{MEMORY}/by-name", params={**named, **asked})
        body = response.json()
        return body["entry"]["value"] if "entry" in body else response.status_code

    assert await found(version="1") == {"completed": 23}
    assert await found(as_of=made["after 2"]) == {"completed": 100}
    assert await found(version="4") == 404
    assert await found(as_of="2020-01-01T00:00:00Z") == 404

    async def exported(**asked: str) -> list[tuple[str, int]]:
        response = await chief.get(f"{MEMORY}/export", params={"namespace": "facts", **asked})
        entries = [json.loads(line) for line in response.text.splitlines()]
        return [(one["key"], one["version"]) for one in entries]

    assert await exported() == [("later", 1), ("k", 3)]
    assert await exported(as_of=made["after 2"]) == [("k", 2)]
    assert await exported(as_of=made["after 2"], where='tags contains "v3"') == []
    assert await exported(as_of="2020-01-01T00:00:00Z") == []


async def test_an_export_as_of_an_instant_has_every_entry_once(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    made = []
    for start in range(0, 600, 100):
        drafts = [draft(f"k{number:03}", **FACT) for number in range(start, start + 100)]
        made += (await chief.post(f"{MEMORY}/batch", json={"entries": drafts})).json()["entries"]
    then = service.services.now()
    service.clock.advance(60)
    for one in made[::3]:
        path = f"{MEMORY}/{one['id']}"
        await chief.patch(path, json={"value": {}, "tags": ["x"]}, headers={"If-Match": "1"})
    for asked, expected in (
        ({"as_of": then}, made),
        ({"as_of": then, "tags": "x"}, []),
        ({"as_of": service.services.now(), "tags": "x"}, made[::3]),
    ):
        params = {"namespace": "facts", **asked}
        lines = (await chief.get(f"{MEMORY}/export", params=params)).text.splitlines()
        assert [json.loads(one)["key"] for one in lines] == [one["key"] for one in expected[::-1]]


async def test_a_version_and_an_instant_are_refused_together_and_a_future_instant_alone(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    made = await _fact(service, chief)
    named = {"namespace": "facts", "key": "k"}
    now = service.services.now()
    # A clock that is a minute ahead is no future.
    service.clock.advance(60_001)
    later = service.services.now()
    service.clock.advance(-60_001)
    for path, asked in ((made["path"], {}), (f"{MEMORY}/by-name", named)):
        both = await chief.get(path, params={**asked, "version": "1", "as_of": now})
        detail = assert_problem(both, 400)["detail"]
        assert "`version`" in detail
        assert "`as_of`" in detail
    for path, asked in ((made["path"], {}), (f"{MEMORY}/by-name", named),
                        (f"{MEMORY}/export", {}), (MEMORY, {}),
                        (MEMORY, {"count_only": "true"})):  # fmt: skip
        refused = await chief.get(path, params={**asked, "as_of": later})
        assert "`as_of`" in assert_problem(refused, 400)["detail"]
        assert (await chief.get(path, params={**asked, "as_of": now})).status_code == 200
    body = {"query": "k", "as_of": later}
    refused = await chief.post(f"{MEMORY}/search", json=body)
    assert "`as_of`" in assert_problem(refused, 422)["detail"]


async def test_query_as_of_returns_entries_of_that_instant(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    made = await _fact(service, chief)
    await chief.post(MEMORY, json=draft("later", **FACT))

    async def found(**asked: str) -> list[tuple[str, int]]:
        page = (await chief.get(MEMORY, params={"namespace": "facts", **asked})).json()
        assert page["total"] == len(page["entries"])
        return [(one["key"], one["version"]) for one in page["entries"]]

    assert await found() == [("later", 1), ("k", 3)]
    assert await found(as_of=made["after 2"]) == [("k", 2)]
    assert await found(as_of=made["after 2"], tags="v2") == [("k", 2)]
    assert await found(as_of=made["after 2"], tags="v3") == []
    assert await found(as_of="2020-01-01T00:00:00Z") == []


async def test_search_as_of_shows_what_was_known_then(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    made = await _fact(service, chief, value={"fact": "the parcel is blue"})
    await chief.post(MEMORY, json=draft("later", value={"fact": "a blue parcel"}, **FACT))

    async def found(query: str, **asked: Any) -> list[tuple[str, int]]:
        body = {"query": query, "namespace": "facts", **asked}
        response = await chief.post(f"{MEMORY}/search", json=body)
        assert response.status_code == 200, response.text
        return [
            (one["entry"]["key"], one["entry"]["version"]) for one in response.json()["results"]
        ]

    first, second = made["after 1"], made["after 2"]
    assert await found("blue parcel") == [("later", 1)]
    assert await found("blue parcel", as_of=first) == [("k", 1)]
    assert await found("blue parcel", as_of=first, explain=True) == [("k", 1)]
    assert await found("100", as_of=second) == [("k", 2)]
    assert await found("100", as_of=second, tags=["v2"]) == [("k", 2)]
    assert await found("100", as_of=second, tags=["v3"]) == []
    assert await found("blue", as_of=second) == []
    assert await found("blue", as_of="2020-01-01T00:00:00Z") == []
    now = service.services.now()
    assert await found("200 blue", as_of=now) == await found("200 blue") != []


async def test_search_as_of_shows_no_version_that_may_not_be_read(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    blue, red = {"fact": "a blue parcel"}, {"fact": "a red parcel"}
    instants = {}
    for key, then, now in (("bob now", "ann", "bob"), ("bob then", "bob", "ann")):
        body = draft(key, value=blue, subjects=[then], **FACT)
        path = f"{MEMORY}/{(await chief.post(MEMORY, json=body)).json()['id']}"
        instants[key] = service.services.now()
        service.clock.advance(60)
        change = {"value": red, "subjects": [now]}
        assert (await chief.patch(path, json=change, headers={"If-Match": "1"})).status_code == 200
    sealed = draft("sealed", value=blue, sensitivity="confidential", **FACT)
    path = f"{MEMORY}/{(await chief.post(MEMORY, json=sealed)).json()['id']}"
    service.clock.advance(60)
    instants["sealed"] = service.services.now()
    service.clock.advance(60)
    await chief.patch(path, json={"value": red}, headers={"If-Match": "1"})
    closed = {"permissions": {"default": "none"}}
    assert (await chief.patch(f"{MEMORY}/namespaces/facts", json=closed)).status_code == 200
    ada = await service.agent("ada")
    for key, instant in instants.items():
        asked = {"query": "blue", "as_of": instant}
        for client, headers in ((chief, {"X-Subject": "ann"}), (ada, {})):
            reply = await client.post(f"{MEMORY}/search", json=asked, headers=headers)
            assert reply.json()["results"] == [], (key, headers)
    asked = {"query": "blue", "as_of": instants["bob now"]}
    seen = (await chief.post(f"{MEMORY}/search", json=asked)).json()["results"]
    assert [one["entry"]["key"] for one in seen] == ["bob now"]


async def test_unversioned_tier_keeps_no_versions(chief: httpx.AsyncClient) -> None:
    made = (await chief.post(MEMORY, json=draft("k"))).json()
    path = f"{MEMORY}/{made['id']}"
    await chief.patch(path, json={"tags": ["x"]}, headers={"If-Match": "1"})
    assert_problem(await chief.get(path, params={"version": "1"}), 404)


async def test_tiers_are_shown_as_they_are_obeyed(chief: httpx.AsyncClient) -> None:
    tiers = (await chief.get("/api/v1/tiers")).json()["tiers"]
    assert [one["memory_type"] for one in tiers] == [tier.value for tier in TIERS]
    by_name = {one["memory_type"]: one for one in tiers}
    assert by_name["episodic"]["eviction"] == "lru"
    assert by_name["semantic"]["versioned"]
    assert by_name["working"]["capacity_scope"] == "task"


async def test_administrator_evicts_down_to_a_target(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    async with await service.agent("ada") as ada:
        for number in range(4):
            body = draft(f"k{number}", memory_type="episodic", pinned=number == 0)
            await ada.post(MEMORY, json=body)
            service.clock.advance(1)
        path = "/api/v1/tiers/episodic/evict"
        asked = {"target": 2, "agent_id": "ada", "policy": "oldest"}
        assert_problem(await ada.post(path, json=asked), 403)
        tried = (await chief.post(path, json={**asked, "dry_run": True})).json()
        assert (tried["evicted"], tried["remaining"]) == (2, 2)
        done = (await chief.post(path, json=asked)).json()
        assert done == {**tried, "dry_run": False}
        page = (await ada.get(MEMORY)).json()
        assert [one["key"] for one in page["entries"]] == ["k3", "k0"]
        pinned = (await chief.post(path, json={**asked, "target": 0})).json()
        assert (pinned["evicted"], pinned["remaining"]) == (1, 1)
    assert_problem(await chief.post(path, json={"target": 0, "namespace": "x"}), 422)
    absent = assert_problem(await chief.post("/api/v1/tiers/none/evict", json=asked), 404)
    assert (absent["error"], absent["detail"]) == ("NOT_FOUND", "there is no tier of this name")


@pytest.mark.parametrize(
    ("method", "path", "noun"),
    [
        ("PUT", "/api/v1/tiers/none", "tier"),
        ("GET", "/api/v1/schemas/none", "kind"),
        ("GET", "/api/v1/memory/namespaces/none", "namespace"),
        ("GET", "/api/v1/memory/schemas/none/none", "namespace"),
    ],
)
async def test_what_is_missing_and_no_entry_is_named(
    chief: httpx.AsyncClient, method: str, path: str, noun: str
) -> None:
    body = {"json": {}} if method == "PUT" else {}
    absent = assert_problem(await chief.request(method, path, **body), 404, "NOT_FOUND")
    assert absent["detail"] == f"there is no {noun} of this name"
