"""Namespaces of people: one name whether or not the entry is sealed and the request is bound."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import pytest

from memorywall.records.principal import Permission
from memorywall.sdk.client import AsyncClient
from tests.http.checks import MEMORY, assert_problem
from tests.http.test_changes import CHANGES
from tests.support.service import RunningService, draft
from tests.support.stored import rows

pytestmark = pytest.mark.anyio

ZOE = {"X-Subject": "zoe"}
NAME = "user/zoe/notes"
NAMESPACES = f"{MEMORY}/namespaces"
PLAIN, SEALED = {"sensitivity": "public"}, {"sensitivity": "restricted"}
SHARED = {"memory_type": "semantic", "namespace": "notes"}


@pytest.fixture
async def ada(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("ada", permissions=tuple(Permission)) as client:
        yield client


def _body(bound: bool, key: str = "k", **fields: Any) -> dict[str, Any]:
    """An entry in the namespace of zoe."""
    body: dict[str, Any] = draft(key, **{**SHARED, "subjects": ["zoe"], **fields})
    return body if bound else {**body, "namespace": NAME}


def _headers(bound: bool) -> dict[str, str]:
    return ZOE if bound else {}


async def _post(
    client: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str]
) -> dict[str, Any]:
    response = await client.post(MEMORY, json=body, headers=headers)
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    assert made["namespace"] == NAME
    return made


@pytest.mark.parametrize("second_bound", [True, False], ids=["then bound", "then not bound"])
@pytest.mark.parametrize("first_bound", [True, False], ids=["bound", "not bound"])
@pytest.mark.parametrize("sealings", [(PLAIN, SEALED), (SEALED, PLAIN)], ids=["plain", "sealed"])
async def test_a_key_is_unique_over_both_forms(
    ada: httpx.AsyncClient,
    sealings: tuple[dict[str, str], dict[str, str]],
    first_bound: bool,
    second_bound: bool,
) -> None:
    first, second = sealings
    made = await _post(ada, _body(first_bound, **first), _headers(first_bound))
    body, headers = _body(second_bound, **second), _headers(second_bound)
    refused = assert_problem(await ada.post(MEMORY, json=body, headers=headers), 409)
    assert refused["current"]["id"] == made["id"]
    batch = {"entries": [_body(second_bound, key="free", **second), body]}
    refused = assert_problem(await ada.post(f"{MEMORY}/batch", json=batch, headers=headers), 409)
    assert refused["index"] == 1
    put = await ada.put(MEMORY, json=body, headers={**headers, "If-None-Match": "*"})
    assert_problem(put, 409)
    assert_problem(await ada.put(MEMORY, json=body, headers=headers), 428)
    page = (await ada.get(MEMORY, params={"namespace": NAME})).json()
    assert [(one["id"], one["namespace"]) for one in page["entries"]] == [(made["id"], NAME)]


async def test_two_elements_of_a_batch_have_two_names(ada: httpx.AsyncClient) -> None:
    batch = {"entries": [_body(True, **PLAIN), _body(True, **SEALED)]}
    refused = assert_problem(await ada.post(f"{MEMORY}/batch", json=batch, headers=ZOE), 409)
    assert refused["index"] == 1
    assert (await ada.get(MEMORY, params={"namespace": NAME})).json()["total"] == 0


async def test_a_change_of_the_sensitivity_keeps_the_name_unique(ada: httpx.AsyncClient) -> None:
    """An entry about nobody keeps its name in clear text when it is sealed."""
    made = await _post(ada, _body(False, subjects=[]), {})
    path = f"{MEMORY}/{made['id']}"
    changed = await ada.patch(path, json=SEALED, headers={"If-Match": "1"})
    assert (changed.status_code, changed.json()["namespace"]) == (200, NAME)
    for sealing in (PLAIN, SEALED):
        for bound in (True, False):
            body = _body(bound, **sealing)
            assert_problem(await ada.post(MEMORY, json=body, headers=_headers(bound)), 409)
    sealed = await _post(ada, _body(False, key="sealed", **SEALED), {})
    path = f"{MEMORY}/{sealed['id']}"
    assert_problem(await ada.patch(path, json=PLAIN, headers={"If-Match": "1"}), 422)


async def test_an_expired_entry_of_the_other_form_frees_its_name(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    await _post(ada, _body(True, ttl="duration:PT1S", **SEALED), ZOE)
    service.clock.advance(2_000)
    await _post(ada, _body(True, **PLAIN), ZOE)
    assert rows(service, "SELECT count(*) FROM entries") == [(1,)]


async def test_a_race_for_a_name_has_one_winner(ada: httpx.AsyncClient) -> None:
    statuses: list[int] = []

    async def write(number: int) -> None:
        body = _body(number % 4 < 2, **(PLAIN if number % 2 else SEALED))
        response = await ada.post(MEMORY, json=body, headers=_headers(number % 4 < 2))
        statuses.append(response.status_code)

    async with anyio.create_task_group() as group:
        for number in range(16):
            group.start_soon(write, number)
    assert sorted(statuses) == [201, *[409] * 15]


@pytest.mark.parametrize("bound", [True, False], ids=["bound", "not bound"])
@pytest.mark.parametrize("sealing", [PLAIN, SEALED], ids=["plain", "sealed"])
async def test_the_name_of_a_reply_works_in_requests_about_memory(
    service: RunningService, ada: httpx.AsyncClient, sealing: dict[str, str], bound: bool
) -> None:
    made = await _post(ada, _body(True, value={"text": "the color red"}, **sealing), ZOE)
    await ada.post(MEMORY, json=draft("other", namespace="user/yan/notes"))
    headers, entry_id = _headers(bound), made["id"]
    for name in (NAME, "user/zoe/n*"):
        page = (await ada.get(MEMORY, params={"namespace": name}, headers=headers)).json()
        assert [one["id"] for one in page["entries"]] == [entry_id]
        count = {"namespace": name, "count_only": "true"}
        assert (await ada.get(MEMORY, params=count, headers=headers)).json()["total"] == 1
        exported = await ada.get(f"{MEMORY}/export", params={"namespace": name}, headers=headers)
        assert exported.text.count(entry_id) == 1
        wanted = {"after": "0", "namespace": name}
        events = (await ada.get(CHANGES, params=wanted, headers=headers)).json()["events"]
        assert [one["data"]["entry_id"] for one in events] == [entry_id]
        if sealing is PLAIN:
            search = {"query": "which color", "namespace": name}
            hits = (await ada.post(f"{MEMORY}/search", json=search, headers=headers)).json()
            assert [one["entry"]["id"] for one in hits["results"]] == [entry_id]
    for tier in ({}, {"memory_type": "semantic"}):
        named = {"namespace": NAME, "key": "k", **tier}
        found = await ada.get(f"{MEMORY}/by-name", params=named, headers=headers)
        assert found.json()["entry"]["id"] == entry_id
    gone = await ada.delete(f"{MEMORY}/batch", params={"namespace": NAME}, headers=headers)
    assert gone.json() == {"deleted": 1}
    if sealing is SEALED:
        assert not any("zoe" in name for (name,) in rows(service, "SELECT name FROM namespaces"))


@pytest.mark.parametrize("sealing", [PLAIN, SEALED], ids=["plain", "sealed"])
async def test_permissions_of_a_name_hold_for_both_forms(
    service: RunningService, ada: httpx.AsyncClient, sealing: dict[str, str]
) -> None:
    eve = await service.agent("eve")
    await _post(ada, _body(True, **sealing), ZOE)
    path = f"{NAMESPACES}/{NAME}"
    closed = {"permissions": {"default": "none"}}
    replied = await ada.patch(path, json=closed)
    assert (replied.status_code, replied.json()["namespace"]) == (200, NAME)
    other = SEALED if sealing is PLAIN else PLAIN
    body = _body(False, key="other", **other)
    assert_problem(await eve.post(MEMORY, json=body), 403)
    await _post(ada, body, {})
    assert (await ada.get(path)).json()["permissions"]["default"] == "none"
    listed = (await ada.get(NAMESPACES)).json()["namespaces"]
    assert [one["namespace"] for one in listed] == [NAME]
    assert (await eve.get(MEMORY, params={"namespace": NAME})).json()["total"] == 0
    granted = {"permissions": {"allow": [{"agent": "eve", "access": "read"},
                                         {"agent": "ada", "access": "admin"}]}}  # fmt: skip
    assert (await ada.patch(path, json=granted)).status_code == 200
    page = (await eve.get(MEMORY, params={"namespace": NAME})).json()
    assert sorted(one["key"] for one in page["entries"]) == ["k", "other"]
    # A name that was listed before the other form existed still means both forms.
    for (name,) in rows(service, "SELECT name FROM namespaces"):
        assert (await ada.patch(f"{NAMESPACES}/{name}", json=closed)).status_code == 200
        assert (await ada.get(path)).json()["permissions"]["default"] == "none"
        reopened = {"permissions": {"default": "read"}}
        assert (await ada.patch(f"{NAMESPACES}/{name}", json=reopened)).status_code == 200
        assert (await ada.get(path)).json()["permissions"]["default"] == "read"


async def test_a_schema_and_an_index_of_a_name_hold_for_both_forms(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    await _post(ada, _body(True, key="a", value={"n": 1}, **PLAIN), ZOE)
    schema = {"version": "1.0.0", "schema": {"properties": {"n": {"type": "integer"}}}}
    put = await ada.put(f"{MEMORY}/schemas/numbers/{NAME}", json=schema)
    assert put.status_code in (200, 201), put.text
    wrong = _body(True, key="b", value={"n": "1"}, **SEALED)
    assert_problem(await ada.post(MEMORY, json=wrong, headers=ZOE), 422)
    await _post(ada, _body(True, key="b", value={"n": 2}, **SEALED), ZOE)
    newer = {**schema, "version": "2.0.0", "schema": {"required": ["n"]}}
    put = await ada.put(f"{MEMORY}/schemas/numbers/{NAME}", json=newer)
    assert put.json()["namespace"] == NAME
    for sealing in (PLAIN, SEALED):
        wrong = _body(True, key="c", value={}, **sealing)
        assert_problem(await ada.post(MEMORY, json=wrong, headers=ZOE), 422)
    indexed = {"indexed_paths": ["value.n"]}
    assert (await ada.patch(f"{NAMESPACES}/{NAME}", json=indexed)).status_code == 200
    where = {"namespace": NAME, "where": "value.n = 2"}
    page = (await ada.get(MEMORY, params=where)).json()
    assert [one["key"] for one in page["entries"]] == ["b"]


async def test_a_key_of_a_namespace_reaches_both_forms(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    for key, sealing in (("a", PLAIN), ("b", SEALED)):
        await _post(ada, _body(True, key=key, memory_type="episodic", **sealing), ZOE)
    async with await service.agent("ada", namespaces=[NAME]) as narrow:
        page = (await narrow.get(MEMORY, params={"agent_id": "ada"})).json()
        assert sorted(one["key"] for one in page["entries"]) == ["a", "b"]


async def test_a_stored_form_names_no_new_entry(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    await _post(ada, _body(True, **SEALED), ZOE)
    ((stored,),) = rows(service, "SELECT name FROM namespaces")
    assert (await ada.get(MEMORY, params={"namespace": stored})).json()["total"] == 1
    body = draft("x", memory_type="semantic", namespace=stored)
    refused = assert_problem(await ada.post(MEMORY, json=body), 422)
    assert "name the person" in refused["detail"]
    assert (await _post(ada, {**body, "subjects": []}, ZOE))["subjects"] == ["zoe"]


async def test_the_bridge_finds_both_forms(ada: httpx.AsyncClient) -> None:
    await _post(ada, _body(True, memory_type="working", value={"value": 1}, **SEALED), ZOE)
    # A segment of a path has no slash; JSON-RPC takes any name.
    for method, value in (("put_bridged", {"value": 2}), ("get_bridged", {})):
        params = {"agent_id": "ada", "namespace": NAME, "key": "k", **value}
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        result = (await ada.post("/rpc", json=call)).json()["result"]
        assert (result["namespace"], result["value"]) == (NAME, 2)
    assert (await ada.get(MEMORY, params={"namespace": NAME})).json()["total"] == 1


async def test_a_client_updates_a_sealed_entry_by_name(service: RunningService) -> None:
    key = await service.key("ada")
    transport = httpx.ASGITransport(service.app)
    async with AsyncClient("http://memorywall.test", key, transport=transport) as client:
        zoe = client.for_user("zoe")
        await zoe.memory.set("notes", "k", {"n": 1}, "episodic", sensitivity="restricted")
        found = await client.memory.get(NAME, "k")
        assert found is not None
        assert (found.value, found.namespace) == ({"n": 1}, NAME)
        await client.memory.set(NAME, "k", {"n": 2}, "episodic")
        assert [one.value for one in await zoe.memory.query(namespace="notes")] == [{"n": 2}]
