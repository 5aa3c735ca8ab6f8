"""Schemas of namespaces: who sets them, what they refuse, and what readers of a version get."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from memorywall.kinds import json_schema
from memorywall.records.principal import Permission
from memorywall.service.requests import schema_cache
from memorywall.storage.port import Transaction
from memorywall.storage.sql.record_table import VALUE_SCHEMAS
from tests.http.checks import (
    ADMINISTRATOR,
    BATCH,
    EVERY_PERMISSION,
    MARKER,
    MEMORY,
    NAMESPACES,
    assert_problem,
    everything,
    make,
)
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

SCHEMAS = "/api/v1/memory/schemas"
FIRST: dict[str, Any] = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "plan": {"enum": ["free", "paid"]}},
    "additionalProperties": False,
}
SECOND: dict[str, Any] = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "object", "required": ["first"]}},
}
OLD, NEW = {"name": "Ada"}, {"name": {"first": "Ada"}}


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    """The administrator of the namespace `team/people`, which has the schema `person`."""
    client = await service.agent("ada", permissions=ADMINISTRATOR)
    await _put(client)
    return client


async def _put(
    client: httpx.AsyncClient,
    schema: dict[str, Any] = FIRST,
    version: str = "1.0.0",
    name: str = "person",
    namespace: str = "team/people",
    **more: Any,
) -> dict[str, Any]:
    body = {"schema": schema, "version": version, **more}
    response = await client.put(f"{SCHEMAS}/{name}/{namespace}", json=body)
    assert response.status_code == 200, response.text
    shown: dict[str, Any] = response.json()
    return shown


def _person(value: Any = OLD, **fields: Any) -> dict[str, Any]:
    return {"namespace": "team/people", "memory_type": "semantic", "value": value, **fields}


async def _refused(response: httpx.Response, pointer: str, version: str = "1.0.0") -> str:
    document = assert_problem(response, 422, "SCHEMA_VIOLATION")
    assert (document["schema"], document["schema_version"]) == ("person", version)
    assert document["pointer"] == pointer
    assert MARKER not in response.text
    detail: str = document["detail"]
    return detail


async def _check(client: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    response = await client.get(f"{SCHEMAS}/check", params={"namespace": "team/people", **query})
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


async def test_every_kind_of_write_is_checked(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    made = await make(ada, "a", **_person())
    before = await everything(service)
    wrong = _person(value={"name": "x", "note": MARKER})
    create = await ada.post(MEMORY, json=draft("b", **wrong))
    assert "`additionalProperties`" in await _refused(create, "")
    typed = _person(value={"name": [MARKER]})
    detail = await _refused(await ada.post(MEMORY, json=draft("b", **typed)), "/name")
    assert detail == "`/name` of the value violates `type` of the schema `person` 1.0.0"
    put = {"namespace": "team/people", "key": "b", "memory_type": "semantic", "value": {}}
    assert "(`name`)" in await _refused(await ada.put(MEMORY, json=put), "")
    put = {**put, "key": "a"}
    await _refused(await ada.put(MEMORY, json=put, headers={"If-Match": "1"}), "")
    one, match = f"{MEMORY}/{made['id']}", {"If-Match": "1"}
    await _refused(await ada.patch(one, json={"value": {"name": None}}, headers=match), "/name")
    merge = {**match, "Content-Type": "application/merge-patch+json"}
    text = json.dumps({"value": {"plan": MARKER}})
    await _refused(await ada.patch(one, content=text, headers=merge), "/plan")
    elements = [draft("c", **_person()), draft("d", **_person(value={}))]
    refused = await ada.post(BATCH, json={"entries": elements})
    await _refused(refused, "")
    assert refused.json()["index"] == 1
    assert await everything(service) == before
    assert (await ada.patch(one, json={"value": {"name": "Eve"}}, headers=match)).is_success


async def test_a_change_of_other_fields_is_not_checked(ada: httpx.AsyncClient) -> None:
    made = await make(ada, "a", **_person())
    await _put(ada, SECOND, "2.0.0")
    one = f"{MEMORY}/{made['id']}"
    tagged = await ada.patch(one, json={"tags": ["x"]}, headers={"If-Match": "1"})
    assert tagged.json()["tags"] == ["x"]
    same = await ada.patch(one, json={"value": OLD}, headers={"If-Match": "2"})
    await _refused(same, "/name", "2.0.0")


async def test_only_matching_keys_and_this_namespace_are_checked(ada: httpx.AsyncClient) -> None:
    await _put(ada, {"required": ["sum"]}, "0.1.0", "bill", "bills", key_pattern="b-[0-9]*")
    for key, namespace in (("b-x", "bills"), ("B-1", "bills"), ("b-1", "bills/more")):
        await make(ada, key, namespace=namespace, memory_type="semantic", value={})
    wrong = draft("b-12", namespace="bills", memory_type="procedural", value={})
    assert_problem(await ada.post(MEMORY, json=wrong), 422, "SCHEMA_VIOLATION")
    # Memory of an agent has no schemas, whatever its namespace is called.
    await make(ada, "b-1", namespace="bills", memory_type="episodic", value={})
    # Every schema that applies is checked.
    await _put(ada, {"required": ["tax"]}, "1.0.0", "tax", "bills")
    wrong = draft("b-12", namespace="bills", memory_type="semantic", value={"sum": 1})
    document = assert_problem(await ada.post(MEMORY, json=wrong), 422, "SCHEMA_VIOLATION")
    assert document["schema"] == "tax"


async def test_shared_state_is_checked(service: RunningService) -> None:
    chief = await service.agent("chief", permissions=EVERY_PERMISSION)
    await _put(chief, name="person", namespace="shared/global", key_pattern="person-*")
    agent = await service.agent("worker", permissions=ADMINISTRATOR)
    state = {"namespace": "shared/global", "memory_type": "shared"}
    await _refused(await agent.post(MEMORY, json=draft("person-1", value={}, **state)), "")
    await make(agent, "person-1", value=OLD, **state)
    await make(agent, "other", value={}, **state)
    body = {"schema": {}, "version": "1.0.1", "key_pattern": "person-*"}
    assert_problem(await agent.put(f"{SCHEMAS}/person/shared/global", json=body), 403)
    own = await chief.put(f"{SCHEMAS}/person/shared/agent/worker", json=body)
    assert_problem(own, 422, "VALIDATION_ERROR")


async def test_only_an_administrator_of_the_namespace_sets_a_schema(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    member = await service.agent("member", permissions=ADMINISTRATOR)
    path = f"{SCHEMAS}/person/team/people"
    body = {"schema": {}, "version": "1.1.0"}
    before = await everything(service)
    assert_problem(await member.put(path, json=body), 403, "ACCESS_DENIED")
    assert_problem(await member.delete(path), 403, "ACCESS_DENIED")
    assert (await member.get(path)).json()["schema"] == FIRST
    closed = {"permissions": {"default": "none"}}
    assert (await ada.patch(f"{NAMESPACES}/team/people", json=closed)).is_success
    query = {"namespace": "team/people"}
    assert_problem(await member.get(path), 403, "ACCESS_DENIED")
    assert_problem(await member.get(SCHEMAS, params=query), 403, "ACCESS_DENIED")
    assert_problem(await member.get(f"{SCHEMAS}/check", params=query), 403, "ACCESS_DENIED")
    foreign = await service.agent("ada", tenant="elsewhere", permissions=EVERY_PERMISSION)
    assert_problem(await foreign.get(path), 404)
    assert_problem(await foreign.get(f"{SCHEMAS}/check", params=query), 404)
    await make(foreign, "a", **_person(value={}))
    permissions = (Permission.READ, Permission.TENANT_ADMIN)
    chief = await service.agent("chief", permissions=permissions)
    assert (await chief.put(path, json=body)).is_success
    assert before.entries == ()


async def test_versions_go_up_and_only_a_major_one_may_break(ada: httpx.AsyncClient) -> None:
    path = f"{SCHEMAS}/person/team/people"

    async def put(schema: dict[str, Any], version: str, **more: Any) -> httpx.Response:
        return await ada.put(path, json={"schema": schema, "version": version, **more})

    assert (await put(FIRST, "1.0.0")).status_code == 200
    wider = {**FIRST, "properties": {**FIRST["properties"], "age": {"type": "integer"}}}
    assert_problem(await put(wider, "1.0.0"), 422, "VALIDATION_ERROR")
    assert_problem(await put(wider, "0.9.0"), 422, "VALIDATION_ERROR")
    assert (await put(wider, "1.1.0")).json()["version"] == "1.1.0"
    await make(ada, "a", **_person(value={"name": "Ada", "age": 36}))
    document = assert_problem(await put(FIRST, "1.2.0"), 422, "BREAKING_SCHEMA_CHANGE")
    assert "`/additionalProperties/not`" in document["detail"]
    refused = await put(wider, "1.2.0", key_pattern="a*")
    assert "key_pattern" in assert_problem(refused, 422, "BREAKING_SCHEMA_CHANGE")["detail"]
    assert (await put(SECOND, "2.0.0")).status_code == 200
    # An older major version may still be loosened.
    assert (await put({}, "1.2.0")).status_code == 200
    listed = (await ada.get(SCHEMAS, params={"namespace": "team/people"})).json()["schemas"]
    assert [one["version"] for one in listed] == ["1.2.0", "2.0.0"]
    assert (await ada.get(path)).json()["schema"] == SECOND
    assert (await ada.get(path, params={"version": 1})).json()["version"] == "1.2.0"
    assert_problem(await ada.get(path, params={"version": 3}), 404)
    for version in ("1", "v1.0.0", "1.0.0-rc.1", "01.0.0", "1.0.0\n"):
        assert "`version`" in assert_problem(await put(FIRST, version), 422)["detail"]


async def test_a_deleted_schema_checks_nothing_and_can_begin_again(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    path = f"{SCHEMAS}/person/team/people"
    await _put(ada, SECOND, "2.0.0")
    assert (await ada.delete(path)).status_code == 204
    assert_problem(await ada.delete(path), 404)
    assert_problem(await ada.get(path), 404)
    await make(ada, "a", **_person(value={"any": 1}))
    (namespace,) = (await everything(service)).namespaces
    assert namespace.schemas is None
    await _put(ada)
    await _refused(await ada.post(MEMORY, json=draft("b", **_person(value={}))), "")


async def test_check_lists_what_does_not_fit_and_may_be_read(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    for number in range(5):
        await make(ada, f"k{number}", **_person(), sensitivity="confidential")
    subject = {"subjects": ["ann"], "sensitivity": "internal"}
    await make(ada, "fits", **_person(value={"name": MARKER}, **subject))
    assert await _check(ada) == {"violations": [], "checked": 6, "next": None}
    await _put(ada, {"properties": {"name": {"maxLength": 2}}}, "2.0.0")
    found: list[str] = []
    before: dict[str, Any] = {}
    while True:
        page = await _check(ada, limit=2, **before)
        assert page["checked"] <= 2
        for one in page["violations"]:
            assert (one["schema_version"], one["pointer"]) == ("2.0.0", "/name")
            assert one["keyword"] == "maxLength"
        found += [one["key"] for one in page["violations"]]
        assert MARKER not in str(page)
        if page["next"] is None:
            break
        before = {"before": page["next"]}
    assert found == ["fits", "k4", "k3", "k2", "k1", "k0"]
    writer = (Permission.WRITE, Permission.TENANT_ADMIN)
    blind = await service.agent("blind", permissions=writer)
    shown = await blind.get(f"{SCHEMAS}/check", params={"namespace": "team/people"})
    assert shown.status_code == 403 or shown.json()["checked"] == 0


async def test_a_reader_of_a_version_gets_entries_that_fit_it(ada: httpx.AsyncClient) -> None:
    old = await make(ada, "old", **_person())
    await _put(ada, SECOND, "2.0.0")
    new = await make(ada, "new", **_person(value=NEW))
    for entry, fits, other in ((old, 1, 2), (new, 2, 1)):
        by_id = f"{MEMORY}/{entry['id']}"
        name = {"namespace": "team/people", "key": entry["key"]}
        shown = await ada.get(by_id, params={"schema_version": fits})
        assert shown.json() == (await ada.get(by_id)).json()
        found = await ada.get(f"{MEMORY}/by-name", params={**name, "schema_version": fits})
        assert found.json()["entry"]["id"] == entry["id"]
        for version in (other, 3):
            asked = {"schema_version": version}
            refused = await ada.get(by_id, params=asked)
            assert_problem(refused, 406, "SCHEMA_VERSION_MISMATCH")
            refused = await ada.get(f"{MEMORY}/by-name", params={**name, **asked})
            assert_problem(refused, 406, "SCHEMA_VERSION_MISMATCH")
        page = (await ada.get(MEMORY, params={"schema_version": fits})).json()
        assert [one["key"] for one in page["entries"]] == [entry["key"]]
        assert page["total"] == 2
    # Nothing promises the structure of an entry without a schema.
    plain = await make(ada, "plain", namespace="other", memory_type="semantic")
    refused = await ada.get(f"{MEMORY}/{plain['id']}", params={"schema_version": 1})
    assert_problem(refused, 406, "SCHEMA_VERSION_MISMATCH")
    query = {"namespace": "team/people", "schema_version": 1}
    assert_problem(await ada.delete(BATCH, params=query), 400)


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"requried": ["a"]}, "/requried"),
        ({"properties": {"a/b": {"type": "strin"}}}, "/properties/a~1b/type"),
        ({"properties": {"a": {"$ref": "https://example.com/x"}}}, "/properties/a/$ref"),
        ({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}, "recursive"),
        ({"properties": {"a": {"pattern": "(?=a)"}}}, "/properties/a/pattern"),
        ({"properties": {"a": {"pattern": "((a{99}){99}){99}"}}}, "/properties/a/pattern"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "/$schema"),
        ({"enum": [MARKER * 700]}, "bytes"),
        ({"enum": list(range(1_001))}, "1002 parts"),
    ],
)
async def test_a_schema_beyond_the_limits_is_refused(
    ada: httpx.AsyncClient, schema: dict[str, Any], place: str
) -> None:
    response = await ada.put(
        f"{SCHEMAS}/x/team/people", json={"schema": schema, "version": "1.0.0"}
    )
    assert place in assert_problem(response, 422, "VALIDATION_ERROR")["detail"]
    assert MARKER not in response.text


async def test_a_namespace_has_a_limited_number_of_schemas(
    ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memorywall.service.administration.namespace_schemas.MOST_SCHEMAS", 2)
    await _put(ada, SECOND, "2.0.0")
    body = {"schema": {}, "version": "1.0.0"}
    response = await ada.put(f"{SCHEMAS}/other/team/people", json=body)
    assert "at most 2" in assert_problem(response, 422)["detail"]
    await _put(ada, {}, "2.1.0")


async def test_without_the_package_nothing_is_written_unchecked(
    ada: httpx.AsyncClient, service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(json_schema, "import_module", missing)
    service.services.schemas._known.clear()
    refused = await ada.post(MEMORY, json=draft("a", **_person()))
    assert ".[schemas]" in assert_problem(refused, 503, "UNAVAILABLE")["detail"]
    body = {"schema": {}, "version": "2.0.0"}
    assert_problem(await ada.put(f"{SCHEMAS}/person/team/people", json=body), 503)
    await make(ada, "a", namespace="free", memory_type="semantic")


async def test_only_a_namespace_with_schemas_costs_a_statement(
    ada: httpx.AsyncClient, service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of the schemas, here by another server, is obeyed at once all the same."""
    read: list[str] = []
    first = _count_reads(service, read, monkeypatch)
    await make(ada, "a", namespace="free", memory_type="semantic")
    assert read == []
    for number in range(3):
        await make(ada, f"k{number}", **_person())
    assert read == ["team/people"]

    async def change(transaction: Transaction) -> None:
        (record,) = await first(transaction, "team/people")
        document = json.dumps({"required": ["other"]})
        await transaction.records(VALUE_SCHEMAS).replace(replace(record, document=document))
        namespace = await transaction.namespaces.get("team/people")
        assert namespace is not None
        await transaction.namespaces.save(replace(namespace, schemas="of another"))

    await service.services.store.write("default", change)
    for key in "xy":
        await _refused(await ada.post(MEMORY, json=draft(key, **_person())), "")
    # A digest that the stored schemas do not have is not kept.
    assert read == ["team/people"] * 3


def _count_reads(service: RunningService, read: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the cache tell which namespaces it reads; returns the function that reads them."""
    original = schema_cache.read_schemas

    async def counted(transaction: Transaction, namespace: str) -> Any:
        read.append(namespace)
        return await original(transaction, namespace)

    monkeypatch.setattr(schema_cache, "read_schemas", counted)
    service.services.schemas._known.clear()
    return original


async def test_schemas_go_with_their_namespace(service: RunningService) -> None:
    chief = await service.agent("chief", permissions=EVERY_PERMISSION)
    await _put(chief, {"title": MARKER}, namespace="user/ann/facts")
    assert (await chief.post("/api/v1/subjects/ann/forget")).is_success

    async def stored(transaction: Transaction) -> int:
        return len(await transaction.records(VALUE_SCHEMAS).page())

    assert await service.services.store.read("default", stored) == 0
