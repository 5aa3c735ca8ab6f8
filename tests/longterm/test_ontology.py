"""Ontologies: what fits, what a version may change, and migrations that are killed half way."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memorywall.jobs.job_runner import run_in_tenant
from memorywall.jobs.job_table import JOBS
from memorywall.jobs.migrate_facts import MIGRATE_FACTS_JOB
from memorywall.longterm import migration
from memorywall.longterm.ontology import decode_ontology
from memorywall.records.principal import Permission
from memorywall_testing.base import make_entry
from tests.http.checks import MEMORY, NAMESPACES, assert_problem, everything
from tests.longterm.fact_requests import FACTS, PEOPLE, add, add_entity, declare, post, values
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio


async def _put(client: httpx.AsyncClient, ontology: dict[str, Any], version: int) -> httpx.Response:
    """The reply to the replacement of the ontology."""
    body = {"value": ontology, "namespace": "facts", "key": "ontology", "memory_type": "semantic",
            "kind": "ontology"}  # fmt: skip
    return await client.put(MEMORY, json=body, headers={"If-Match": str(version)})


async def _migrate(service: RunningService) -> None:
    await run_in_tenant(service.services, "default", MIGRATE_FACTS_JOB, early=True)


def test_what_is_sealed_stays_in_no_cache() -> None:
    value = b'{"version":"1.2.3"}'
    for sensitivity, is_kept in (
        ("internal", True),
        ("confidential", False),
        ("restricted", False),
    ):
        entry = make_entry(value=value, sensitivity=sensitivity)
        assert (decode_ontology(entry) is decode_ontology(entry)) is is_kept
        assert decode_ontology(entry).version == "1.2.3"


# What fits


@pytest.mark.parametrize(
    ("kind", "value", "rule"),
    [
        ("entity", {"name": "Rex", "class": "dog"}, "unknown_class"),
        ("entity", {"name": "Rex"}, "unknown_class"),
        ("entity", {"name": "Eve", "class": "person", "attributes": {"year": 2}}, "attributes"),
        ("entity", {"name": "Eve", "class": "student", "attributes": {"year": "2"}}, "attributes"),
        ("entity", {"name": "Eve", "class": "student", "attributes": {"year": True}}, "attributes"),
        ("entity", {"name": "Eve", "class": "student", "attributes": {"born": "May"}},
         "attributes"),
        ("fact", {"subject": "Ann", "relation": "hates", "object": "tea"}, "unknown_relation"),
        ("fact", {"subject": "Zed", "relation": "age", "object": 9}, "domain"),
        ("fact", {"subject": "Bern", "relation": "age", "object": 9}, "domain"),
        ("fact", {"subject": "Ann", "relation": "age", "object": "nine"}, "range"),
        ("fact", {"subject": "Ann", "relation": "boards_in", "object": "Bob"}, "range"),
        ("fact", {"subject": "Ann", "relation": "knows", "object": 7}, "range"),
        ("fact", {"subject": "Ann", "relation": "befriends", "object": "Bob",
                  "attributes": {"since": "long"}}, "attributes"),
        ("fact", {"subject": "Ann", "relation": "knows", "object": "Bob",
                  "attributes": {"since": "2020-01-01"}}, "attributes"),
    ],
)  # fmt: skip
async def test_what_does_not_fit_is_refused_by_a_rule(
    service: RunningService, kind: str, value: dict[str, Any], rule: str
) -> None:
    ada = await service.agent("ada")
    await declare(ada)
    for name, of in (("Ann", "student"), ("Bob", "person"), ("Bern", "city")):
        await add_entity(ada, name, of)
    before = await everything(service)
    problem = assert_problem(await post(ada, kind, value), 409, "REFUSED_BY_RULE")
    assert problem["rule"] == rule
    assert f"`{rule}`" in problem["detail"]
    assert await everything(service) == before


async def test_subtypes_inherit_and_are_inferred(service: RunningService) -> None:
    ada = await service.agent("ada")
    await declare(ada)
    born = {"attributes": {"born": "2000-02-29", "year": 2}}
    await add_entity(ada, "Ann", "student", **born)
    await add_entity(ada, "Bob", "person")
    await add_entity(ada, "Bern", "city")
    made = await add(ada, "Ann", "befriends", "Bob", attributes={"since": "2020-01-01"})
    assert made["value"]["ontology_version"] == "1.0.0"
    await add(ada, "Bob", "lives_in", "Bern")
    service.clock.advance(1)
    # One place at a time, over the relations below a functional one.
    await add(ada, "Bob", "boards_in", "Bern")
    assert await values(ada, "Ann", "knows", "?who") == ["Bob"]
    assert await values(ada, "?who", "is_a", "person") == ["Ann", "Bob"]
    assert await values(ada, "?who", "is_a", "thing") == ["Ann", "Bern", "Bob"]
    assert await values(ada, "Ann", "is_a", "?class") == ["person", "student", "thing"]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"entity_types": {"a": {"parent": "b"}}}, "parent"),
        ({"entity_types": {"a": {"parent": "b"}, "b": {"parent": "a"}}}, "ancestor"),
        ({"entity_types": {"number": {}}}, "literal type"),
        ({"entity_types": {f"t{n}": {"parent": f"t{n - 1}"} if n else {} for n in range(17)}},
         "16 levels"),
        ({"relation_types": {"r": {"domain": "dog"}}}, "domain"),
        ({"relation_types": {"r": {"range": "dog"}}}, "range"),
        ({"relation_types": {"is_a": {}}}, "is_a"),
        ({"version": "1.0"}, "version"),
        ({"version": "1.0.0", "migration": [{"action": "rename", "relation": "r"}]}, "to"),
        ({"migration": [{"action": "drop"}]}, "entity_type"),
        ({"migration": [{"action": "map", "relation": "r"}]}, "values"),
        ({"migration": [{"action": "retype", "entity_type": "a", "to": "text"}]}, "attribute"),
    ],
)  # fmt: skip
async def test_a_wrong_ontology_changes_nothing(
    service: RunningService, changed: dict[str, Any], named: str
) -> None:
    ada = await service.agent("ada")
    value = {"version": "1.0.0", **changed}
    problem = assert_problem(await post(ada, "ontology", value, key="ontology"), 422)
    assert named in problem["detail"]
    refused = assert_problem(await post(ada, "ontology", {"version": "1.0.0"}, key="other"), 422)
    assert "`key`" in refused["detail"]


# Versions


def _types(**relations: Any) -> dict[str, Any]:
    return {"relation_types": {"knows": {"range": "text"}, **relations}}


_DROP = {"migration": [{"action": "drop", "relation": "knows"}]}


@pytest.mark.parametrize(
    ("ontology", "rule"),
    [
        ({"version": "1.1.0", **_types(likes={})}, None),
        ({"version": "1.1.0", **_types(), "entity_types": {"person": {}}}, None),
        ({"version": "1.0.1", **_types(likes={})}, "ontology_version"),
        ({"version": "1.0.0", **_types(likes={})}, "ontology_version"),
        ({"version": "0.9.0", **_types(likes={})}, "ontology_version"),
        ({"version": "1.1.0", "relation_types": {}}, "breaking_ontology"),
        ({"version": "1.1.0", **_types(knows={"range": "date"})}, "breaking_ontology"),
        ({"version": "1.1.0", **_types(knows={"range": "text", "functional": True})},
         "breaking_ontology"),
        ({"version": "1.1.0", **_types(knows={"range": "text", "attributes":
          {"since": {"type": "date", "required": True}}})}, "breaking_ontology"),
        ({"version": "1.1.0", **_types(knows={"range": "text", "attributes":
          {"since": {"type": "date"}}})}, None),
        ({"version": "2.0.0", "relation_types": {}}, "migration"),
        ({"version": "2.0.0", "relation_types": {}, "migration":
          [{"action": "drop", "relation": "likes"}]}, "migration"),
        ({"version": "3.0.0", "relation_types": {}, **_DROP}, "ontology_version"),
        ({"version": "2.0.0", "relation_types": {}, **_DROP}, None),
    ],
)  # fmt: skip
async def test_what_a_version_may_change(
    service: RunningService, ontology: dict[str, Any], rule: str | None
) -> None:
    ada = await service.agent("ada")
    first = {"version": "1.0.0", **_types()}
    assert (await post(ada, "ontology", first, key="ontology")).status_code == 201
    await add(ada, "Ann", "knows", "Bob")
    response = await _put(ada, ontology, 1)
    if rule is None:
        assert response.status_code == 200, response.text
    else:
        assert assert_problem(response, 409, "REFUSED_BY_RULE")["rule"] == rule


async def test_an_ontology_that_contradicts_stored_facts_is_refused(
    service: RunningService,
) -> None:
    ada = await service.agent("ada")
    await add_entity(ada, "Rex", "dog")
    await add(ada, "Ann", "age", "nine")
    before = await everything(service)
    refused = await post(ada, "ontology", PEOPLE, key="ontology")
    problem = assert_problem(refused, 409, "REFUSED_BY_RULE")
    assert problem["rule"] == "contradicts_facts"
    assert "`domain` 1, `unknown_class` 1" in problem["detail"]
    assert "nine" not in problem["detail"]
    assert await everything(service) == before


# Migrations

_OLD = {
    "version": "1.4.0",
    "entity_types": {"human": {"attributes": {"age": {"type": "text"}}}, "pet": {}},
    "relation_types": {"lives_at": {}, "rates": {"range": "text"}, "owns": {}, "level": {}},
}
_NEW = {
    "version": "2.0.0",
    "entity_types": {"person": {"attributes": {"age": {"type": "number"}}}},
    "relation_types": {
        "lives_in": {"domain": "person", "functional": True},
        "rates": {"range": "number"},
        "level": {"range": "number"},
    },
    "migration": [
        {"action": "rename", "entity_type": "human", "to": "person"},
        {"action": "retype", "entity_type": "person", "attribute": "age", "to": "number"},
        {"action": "drop", "entity_type": "pet"},
        {"action": "rename", "relation": "lives_at", "to": "lives_in"},
        {"action": "retype", "relation": "rates", "to": "number"},
        {"action": "map", "relation": "level", "values": {"low": 1, "high": 2}},
        {"action": "drop", "relation": "owns"},
    ],
}


async def _fill(ada: httpx.AsyncClient, people: int = 2) -> None:
    made = await post(ada, "ontology", _OLD, key="ontology")
    assert made.status_code == 201, made.text
    for number in range(people):
        await add_entity(ada, f"human {number}", "human", attributes={"age": str(number)})
        await add(ada, f"human {number}", "lives_at", "Bern")
    await add_entity(ada, "Rex", "pet")
    await add(ada, "human 0", "rates", "4.5")
    await add(ada, "human 0", "owns", "Rex")
    await add(ada, "human 0", "level", "high")


async def _assert_migrated(ada: httpx.AsyncClient, people: int = 2) -> None:
    for kind, number in (("entity", people), ("fact", people + 2)):
        query = {"kind": kind, "limit": 1000}
        entries = (await ada.get(MEMORY, params=query)).json()["entries"]
        assert {one["value"]["ontology_version"] for one in entries} == {"2.0.0"}
        assert len(entries) == number
    assert await values(ada, "human 1", "lives_in", "?city") == ["Bern"]
    assert await values(ada, "human 0", "rates", "?n") == [4.5]
    assert await values(ada, "human 0", "level", "?n") == [2]
    assert len(await values(ada, "?who", "is_a", "person")) == people
    # What is dropped can be taken back.
    for kind in ("entity", "fact"):
        query = {"kind": kind, "state": "withdrawn"}
        assert (await ada.get(MEMORY, params=query)).json()["total"] == 1


async def test_a_migration_takes_each_declared_step(service: RunningService) -> None:
    ada = await service.agent("ada")
    await _fill(ada)
    before = await everything(service)
    checked = await ada.post(f"{FACTS}/check", json={"namespace": "facts", "ontology": _NEW})
    assert checked.json() == {"unchanged": 0, "changed": 6, "dropped": 2, "unfit": {}}
    assert await everything(service) == before
    stored = await _put(ada, _NEW, 1)
    assert (stored.status_code, stored.json()["status"]) == (200, "migrating"), stored.text
    refused = await post(ada, "fact", {"subject": "human 0", "relation": "rates", "object": 1})
    assert assert_problem(refused, 409)["rule"] == "migration_pending"
    assert MIGRATE_FACTS_JOB in JOBS
    await _migrate(service)
    await _assert_migrated(ada)
    query = {"kind": "ontology"}
    (ontology,) = (await ada.get(MEMORY, params=query)).json()["entries"]
    assert ontology["status"] == "current"
    await add(ada, "human 0", "rates", 1)


async def test_a_migration_that_contradicts_facts_is_refused(service: RunningService) -> None:
    ada = await service.agent("ada")
    await _fill(ada)
    await add(ada, "human 1", "rates", "very good")
    checked = await ada.post(f"{FACTS}/check", json={"namespace": "facts", "ontology": _NEW})
    assert checked.json()["unfit"] == {"range": 1}
    problem = assert_problem(await _put(ada, _NEW, 1), 409, "REFUSED_BY_RULE")
    assert problem["rule"] == "contradicts_facts"


class _KilledError(Exception):
    """The process ends here."""


@pytest.mark.parametrize("write", [0, 1, 2, 5, 9, 10])
async def test_a_migration_goes_on_after_it_was_killed(
    service: RunningService, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    """Each step is a transaction of three entries; the process ends before any write."""
    ada = await service.agent("ada")
    await _fill(ada, 4)
    assert (await _put(ada, _NEW, 1)).status_code == 200
    monkeypatch.setattr(migration, "PAGE", 3)
    written, store = 0, migration._store

    async def killed(*args: Any) -> None:
        nonlocal written
        if written == write:
            raise _KilledError
        written += 1
        await store(*args)

    monkeypatch.setattr(migration, "_store", killed)
    with pytest.raises(_KilledError):
        await _migrate(service)
    monkeypatch.setattr(migration, "_store", store)
    service.clock.advance(120)
    await _migrate(service)
    await _assert_migrated(ada, 4)
    after = await everything(service)
    service.clock.advance(120)
    await _migrate(service)
    assert await everything(service) == after


async def test_who_may_not_read_a_namespace_learns_nothing_of_its_ontology(
    service: RunningService,
) -> None:
    ada, bob = await service.agent("ada", permissions=[*Permission]), await service.agent("bob")
    await declare(ada)
    await add_entity(ada, "Ann", "person")
    change = {"permissions": {"default": "none", "allow": [{"agent": "ada", "access": "admin"}]}}
    hidden = await ada.patch(f"{NAMESPACES}/facts", json=change)
    assert hidden.status_code == 200, hidden.text
    for version in ("1.0.0", "1.0.1", "7.0.0"):
        asked = {"ontology": {**PEOPLE, "version": version, "relation_types": {}}}
        told = [
            await bob.post(f"{FACTS}/check", json={**asked, "namespace": one})
            for one in ("facts", "elsewhere")
        ]
        assert {one.status_code for one in told} == {200}
        assert told[0].text == told[1].text
    refused = await ada.post(f"{FACTS}/check", json={**asked, "namespace": "facts"})
    assert_problem(refused, 409, "REFUSED_BY_RULE")
