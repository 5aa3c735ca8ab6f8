"""Subjects: whom an entry is about, requests bound to one person, and forgetting a person."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from memorywall.records.errors import MemoryNotFoundError, ValidationError
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.sdk.client import AsyncClient
from memorywall.service.administration.tenants import create_key
from tests.http.checks import MEMORY, assert_problem
from tests.http.test_changes import CHANGES
from tests.support.damage import verified
from tests.support.service import RunningService, draft
from tests.support.stored import rows

pytestmark = pytest.mark.anyio

ANN, BOB = {"X-Subject": "ann"}, {"X-Subject": "bob"}
TOGETHER = {"X-Subject": "ann, bob"}
SEALED = {"sensitivity": "confidential"}
TABLES = ("entries", "edges", "entry_history", "namespaces", "events", "api_keys")


@pytest.fixture
async def ada(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("ada") as client:
        yield client


@pytest.fixture
async def chief(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("chief", permissions=tuple(Permission)) as client:
        yield client


async def _make(
    client: httpx.AsyncClient, key: str, headers: dict[str, str] | None = None, **fields: Any
) -> dict[str, Any]:
    response = await client.post(MEMORY, json=draft(key, **fields), headers=headers)
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


async def _seen(
    client: httpx.AsyncClient, headers: dict[str, str] | None = None, **wanted: str
) -> list[str]:
    page = (await client.get(MEMORY, params=wanted, headers=headers)).json()
    return sorted(one["key"] for one in page["entries"])


@pytest.mark.parametrize("sealing", [{}, SEALED], ids=["plain", "sealed"])
async def test_bound_request_sees_no_entries_about_others(
    ada: httpx.AsyncClient, sealing: dict[str, str]
) -> None:
    made = {
        key: await _make(ada, key, subjects=subjects, **sealing)
        for key, subjects in (("a", ["ann"]), ("ab", ["ann", "bob"]), ("b", ["bob"]), ("n", []))
    }
    assert made["ab"]["subjects"] == ["ann", "bob"]
    assert await _seen(ada, ANN) == ["a", "n"]
    assert await _seen(ada, BOB) == ["b", "n"]
    assert await _seen(ada) == ["a", "ab", "b", "n"]
    assert await _seen(ada, subject="ann") == ["a", "ab"]
    assert await _seen(ada, ANN, subject="bob") == []
    for key, status in (("a", 200), ("ab", 404), ("b", 404), ("n", 200)):
        path = f"{MEMORY}/{made[key]['id']}"
        assert (await ada.get(path, headers=ANN)).status_code == status
        absent = await ada.get(f"{MEMORY}/mem_absent", headers=ANN)
        if status == 404:
            assert (await ada.get(path, headers=ANN)).json() == absent.json()
            patched = await ada.patch(path, json={"tags": []}, headers={**ANN, "If-Match": "1"})
            assert patched.status_code == 404
            assert (await ada.delete(path, headers=ANN)).status_code == 404
    exported = (await ada.get(f"{MEMORY}/export", headers=ANN)).text
    assert exported.count('"key"') == 1
    deleted = await ada.delete(f"{MEMORY}/batch", params={"namespace": "*"}, headers=ANN)
    assert deleted.status_code in (200, 400)


async def test_bound_deletion_by_filter_keeps_entries_about_others(
    ada: httpx.AsyncClient,
) -> None:
    await _make(ada, "a", subjects=["ann"])
    await _make(ada, "b", subjects=["bob"])
    deleted = await ada.delete(
        f"{MEMORY}/batch", params={"memory_type": "working", "agent_id": "ada"}, headers=ANN
    )
    assert deleted.json() == {"deleted": 1}
    assert await _seen(ada) == ["b"]


@pytest.mark.parametrize("sealing", [{}, SEALED], ids=["plain", "sealed"])
async def test_two_people_have_a_name_each(
    service: RunningService, ada: httpx.AsyncClient, sealing: dict[str, str]
) -> None:
    for_ann = await _make(ada, "theme", ANN, **sealing)
    for_bob = await _make(ada, "theme", BOB, **sealing)
    assert for_ann["namespace"] == "user/ann/invoices"
    assert for_bob["namespace"] == "user/bob/invoices"
    assert for_ann["subjects"] == ["ann"]
    wanted = {"namespace": "invoices", "key": "theme"}
    page = (await ada.get(MEMORY, params=wanted, headers=ANN)).json()
    assert [one["id"] for one in page["entries"]] == [for_ann["id"]]
    assert page["entries"][0]["namespace"] == "user/ann/invoices"
    prefix = (await ada.get(MEMORY, params={"namespace": "inv*"}, headers=ANN)).json()
    assert [one["id"] for one in prefix["entries"]] == [for_ann["id"]]
    changed = await ada.patch(
        f"{MEMORY}/{for_ann['id']}", json={"tags": ["x"]}, headers={**ANN, "If-Match": "1"}
    )
    assert changed.json()["namespace"] == "user/ann/invoices"
    if sealing:
        stored = {name for (name,) in rows(service, "SELECT namespace FROM entries")}
        assert not any("ann" in name or "bob" in name for name in stored)


async def test_bound_write_is_stamped_and_stays_within_its_binding(ada: httpx.AsyncClient) -> None:
    general = await _make(ada, "n")
    path = f"{MEMORY}/{general['id']}"
    changed = await ada.patch(path, json={"tags": ["x"]}, headers={**ANN, "If-Match": "1"})
    assert changed.json()["subjects"] == ["ann"]
    refused = await ada.post(MEMORY, json=draft("x", subjects=["bob"]), headers=ANN)
    assert_problem(refused, 403)
    too_many = [f"person-{number}" for number in range(17)]
    refused = await ada.post(MEMORY, json=draft("x", subjects=too_many))
    assert "anonymise" in assert_problem(refused, 422)["detail"]
    for name in ("", "a/b", "~ann", "a,b", " ann"):
        assert_problem(await ada.post(MEMORY, json=draft("x", subjects=[name])), 422)


async def test_bound_request_may_only_use_memory(ada: httpx.AsyncClient) -> None:
    for path in ("/api/v1/agents/ada/events", "/api/v1/agents/ada/memory/summary",
                 "/api/v1/intents", "/api/v1/memory/namespaces"):  # fmt: skip
        assert_problem(await ada.get(path, headers=ANN), 403)
    assert (await ada.get("/api/v1/agents/me", headers=ANN)).status_code == 200


async def test_search_is_bound(ada: httpx.AsyncClient) -> None:
    for key, subject in (("a", "ann"), ("b", "bob")):
        await _make(ada, key, subjects=[subject], value={"text": f"the color {key} is preferred"})
    search = {"query": "which color is preferred"}
    found = (await ada.post(f"{MEMORY}/search", json=search, headers=ANN)).json()
    assert [one["entry"]["key"] for one in found["results"]] == ["a"]
    found = (await ada.post(f"{MEMORY}/search", json={**search, "subject": "bob"})).json()
    assert [one["entry"]["key"] for one in found["results"]] == ["b"]


async def test_derived_entry_inherits_subjects_and_the_lowest_origin(
    ada: httpx.AsyncClient,
) -> None:
    letter = await _make(ada, "letter", subjects=["ann"], origin="document", source="file:/a")
    note = await _make(ada, "note", subjects=["bob"], **SEALED)
    sources = [{"id": one["id"], "version": 1} for one in (letter, note)]
    made = await _make(ada, "summary", derived_from=sources)
    assert made["provenance"]["origin"] == "document"
    first, second = made["subjects"]
    assert first == "ann"
    assert second.startswith("~"), "the name beside a sealed source stays sealed"
    sealed = await _make(ada, "sealed", derived_from=sources, **SEALED)
    assert sealed["subjects"] == made["subjects"]
    assert await _seen(ada, subject="bob") == ["note", "sealed", "summary"]
    assert await _seen(ada, origin="document", source="file:/a") == ["letter"]
    refused = await ada.post(MEMORY, json=draft("x", origin="user"))
    assert "at most `agent`" in assert_problem(refused, 422)["detail"]


async def _limited(service: RunningService, *subjects: str) -> httpx.AsyncClient:
    """A client whose key is limited to these people."""
    await service.key("ada")
    text, _ = await create_key(
        service.services,
        "default",
        "ada",
        PrincipalKind.AGENT,
        (Permission.READ, Permission.WRITE),
        subjects,
    )
    return service.client(text)


async def test_key_is_limited_to_its_subject(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    for key, subjects in (("a", ["ann"]), ("ab", ["ann", "bob"]), ("b", ["bob"]), ("n", [])):
        await _make(ada, key, subjects=subjects)
    async with await _limited(service, "ann") as limited:
        assert_problem(await limited.get(MEMORY, headers=BOB), 403)
        assert_problem(await limited.get(MEMORY, headers=TOGETHER), 403)
        # A key that is limited to one person binds a request that names nobody.
        for headers in (ANN, {}):
            assert await _seen(limited, headers) == ["a", "n"]
        made = await _make(limited, "own")
        assert (made["namespace"], made["subjects"]) == ("user/ann/invoices", ["ann"])
        refused = await limited.get("/api/v1/intents")
        assert "without this limit" in assert_problem(refused, 403)["detail"]
        call = {"jsonrpc": "2.0", "id": 1, "method": "query_entries", "params": {}}
        assert (await limited.post("/rpc", json=call)).json()["result"]["total"] == 3
    async with await _limited(service, "ann", "bob") as limited:
        assert_problem(await limited.get(MEMORY), 403)
        assert_problem(await limited.get(MEMORY, headers={"X-Subject": "ann,eva"}), 403)
        assert await _seen(limited, TOGETHER) == ["a", "ab", "b", "n", "own"]
        assert await _seen(limited, BOB) == ["b", "n"]
    assert not any("ann" in str(row) for row in rows(service, "SELECT * FROM api_keys"))


@pytest.mark.parametrize("sealing", [{}, SEALED], ids=["plain", "sealed"])
async def test_request_is_bound_to_several_people(
    ada: httpx.AsyncClient, sealing: dict[str, str]
) -> None:
    texts = {"value": {"text": "the color red"}, **sealing}
    people = {"a": ["ann"], "ab": ["ann", "bob"], "abe": ["ann", "bob", "eva"], "e": ["eva"]}
    made = {key: await _make(ada, key, subjects=named, **texts) for key, named in people.items()}
    assert await _seen(ada, TOGETHER) == ["a", "ab"]
    for key, status in (("a", 200), ("ab", 200), ("abe", 404), ("e", 404)):
        reply = await ada.get(f"{MEMORY}/{made[key]['id']}", headers=TOGETHER)
        assert reply.status_code == status
    events = (await ada.get(CHANGES, params={"after": "0"}, headers=TOGETHER)).json()["events"]
    assert [one["data"]["key"] for one in events] == ["a", "ab"]
    if not sealing:
        search = {"query": "which color"}
        found = (await ada.post(f"{MEMORY}/search", json=search, headers=TOGETHER)).json()
        assert sorted(one["entry"]["key"] for one in found["results"]) == ["a", "ab"]
    own = await _make(ada, "own", TOGETHER, subjects=["bob"], **texts)
    assert (own["namespace"], own["subjects"]) == ("invoices", ["ann", "bob"])
    assert await _seen(ada, TOGETHER, namespace="invoices", key="own") == ["own"]
    assert await _seen(ada, ANN) == ["a"]
    changed = await ada.patch(
        f"{MEMORY}/{made['a']['id']}", json={"tags": []}, headers={**TOGETHER, "If-Match": "1"}
    )
    assert changed.json()["subjects"] == ["ann", "bob"]
    refused = await ada.post(MEMORY, json=draft("x", subjects=["eva"]), headers=TOGETHER)
    assert_problem(refused, 403)


async def test_names_of_a_binding_are_checked(ada: httpx.AsyncClient) -> None:
    once = await _make(ada, "k", {"X-Subject": "ann, ann"})
    assert once["namespace"] == "user/ann/invoices"
    most = [f"person-{number}" for number in range(16)]
    assert await _seen(ada, {"X-Subject": ",".join(most)}) == []
    for text in (",".join([*most, "ann"]), "", ",", "ann,", "ann,~bob", "ann,b/c", "a" * 129):
        refused = assert_problem(await ada.get(MEMORY, headers={"X-Subject": text}), 422)
        assert "X-User" in refused["detail"]


async def test_session_has_one_subject(ada: httpx.AsyncClient) -> None:
    sessions = "/api/v1/sessions"
    for body in ({}, {"subject": "ann"}, {"reuse": True}):
        refused = await ada.post(sessions, json=body, headers=TOGETHER)
        assert "one subject" in assert_problem(refused, 422)["detail"]
    refused = await ada.post(f"{sessions}/match", json={"text": "hello"}, headers=TOGETHER)
    assert_problem(refused, 422)
    session = (await ada.post(sessions, json={}, headers=ANN)).json()["id"]
    inside = {**ANN, "X-Session-ID": session}
    assert (await ada.get(MEMORY, headers=inside)).status_code == 200
    assert_problem(await ada.get(MEMORY, headers={**inside, **TOGETHER}), 404)


async def test_client_for_user_is_bound(service: RunningService) -> None:
    key = await service.key("ada")
    transport = httpx.ASGITransport(service.app)
    async with AsyncClient("http://memorywall.test", key, transport=transport) as client:
        ann, bob = client.for_user("ann"), client.for_user("bob")
        await ann.memory.set("prefs", "theme", {"dark": True}, "episodic")
        await bob.memory.set("prefs", "theme", {"dark": False}, "episodic")
        await ann.memory.set("prefs", "theme", {"dark": True, "font": 12}, "episodic")
        mine = await ann.memory.get("prefs", "theme")
        assert mine is not None
        assert (mine.value, mine.subjects) == ({"dark": True, "font": 12}, ("ann",))
        assert [one.namespace for one in await bob.memory.query()] == ["user/bob/prefs"]
        await bob.memory.delete("prefs", "theme")
        assert await client.memory.get("prefs", "theme") is None
        assert len(await client.memory.query(subject="ann")) == 1
        both = client.for_user("ann", "bob")
        await both.memory.set("plans", "trip", {"n": 1}, "episodic")
        await both.memory.set("plans", "trip", {"n": 2}, "episodic")
        shared = await both.memory.get("plans", "trip")
        assert shared is not None
        assert (shared.version, shared.subjects) == (2, ("ann", "bob"))
        with pytest.raises(MemoryNotFoundError):
            await ann.memory.get_by_id(shared.id)
        for users in ((), ("ann,bob",), (7,)):
            with pytest.raises(ValidationError):
                client.for_user(*users)  # type: ignore[arg-type]


@pytest.mark.parametrize("sealing", [{}, SEALED], ids=["plain", "sealed"])
async def test_forget_subject_erases_everything_about_it(
    service: RunningService,
    ada: httpx.AsyncClient,
    chief: httpx.AsyncClient,
    sealing: dict[str, str],
) -> None:
    one = await _make(ada, "one", ANN, **sealing)
    shared = {"memory_type": "semantic", "namespace": "facts", **sealing}
    two = await _make(chief, "two", subjects=["ann", "bob"], **shared)
    path = f"{MEMORY}/{two['id']}"
    await chief.patch(path, json={"value": {"n": 2}}, headers={"If-Match": "1"})
    sources = [{"id": one["id"], "version": 1}]
    drawn = await _make(ada, "drawn", derived_from=sources, **sealing)
    await _make(ada, "again", derived_from=[{"id": drawn["id"], "version": 1}], subjects=[])
    await _make(ada, "bob", subjects=["bob"])
    await _make(ada, "nobody")
    refused = await ada.post("/api/v1/subjects/ann/forget")
    assert_problem(refused, 403)
    gone = (await chief.post("/api/v1/subjects/ann/forget")).json()
    assert gone["entries"] == {"working": 3, "semantic": 1}
    assert gone["receipt"].startswith("evt_")
    assert "ann" not in str(gone)
    assert await _seen(ada) == ["bob", "nobody"]
    assert rows(service, "SELECT count(*) FROM entry_history") == [(0,)]
    assert rows(service, "SELECT relation, target FROM edges WHERE target = 'ann'") == []
    # The log keeps its order and its chain, and names nothing of what is gone.
    for agent, client in (("ada", ada), ("chief", chief)):
        page = (await client.get(f"/api/v1/agents/{agent}/events?limit=500")).json()
        keys = {event["data"].get("key") for event in page["events"]}
        assert keys.isdisjoint({"one", "two", "drawn", "again"})
    again = (await chief.post("/api/v1/subjects/ann/forget")).json()
    assert (again["entries"], again["receipt"]) == ({}, None)
    assert verified(service.services.settings.sqlite_path).problems == []


async def test_no_literal_derived_from_a_sealed_entry_is_in_clear_text(
    service: RunningService, ada: httpx.AsyncClient, chief: httpx.AsyncClient
) -> None:
    canary = "canary-4711"
    fields = {"memory_type": "semantic", "namespace": "facts", **SEALED}
    made = await _make(chief, "k", subjects=[canary], value={"type": canary}, **fields)
    changed = {"value": {"text": canary}}
    path = f"{MEMORY}/{made['id']}"
    shown = (await chief.patch(path, json=changed, headers={"If-Match": "1"})).json()
    assert shown["subjects"] == [canary]
    await _make(ada, "own", {"X-Subject": canary}, **SEALED)
    for table in TABLES:
        for row in rows(service, f"SELECT * FROM {table}"):
            assert canary not in str(row), table
