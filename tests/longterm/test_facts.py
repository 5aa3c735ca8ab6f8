"""Facts: validity and knowledge, functional relations, conflicts, aliases, access, bad input."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.records.principal import PrincipalKind
from tests.cli.shell import new_directory
from tests.http.checks import ADMINISTRATOR, MEMORY, assert_problem, everything
from tests.longterm.fact_requests import (
    add,
    add_entity,
    allow,
    declare,
    post,
    rows,
    values,
    walk,
)
from tests.support.backend import environment_of
from tests.support.command_line import run_cli
from tests.support.extent import extent
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

_T1, _T2, _T3, _T4 = (f"202{year}-01-01T00:00:00.000Z" for year in range(1, 5))
_FUNCTIONAL = {"version": "1.0.0", "relation_types": {"lives_in": {"functional": True},
               "likes": {}}}  # fmt: skip


async def _functional(client: httpx.AsyncClient, **fields: Any) -> None:
    response = await post(client, "ontology", _FUNCTIONAL, key="ontology", **fields)
    assert response.status_code == 201, response.text


async def _value(client: httpx.AsyncClient, entry_id: str) -> dict[str, Any]:
    entry = (await client.get(f"{MEMORY}/{entry_id}")).json()
    return {"state": entry.get("state", "live"), **entry["value"]}


# The line in time of a functional relation


async def test_a_newer_value_ends_the_older_one(service: RunningService) -> None:
    ada = await service.agent("ada")
    await _functional(ada)
    first = await add(ada, "Ann", "lives_in", "Bern")
    before = service.services.now()
    service.clock.advance(60)
    second = await add(ada, "ann", "lives_in", "Paris")
    now = service.services.now()
    assert second["value"]["valid_from"] == now
    assert (await _value(ada, first["id"]))["valid_until"] == now
    assert await values(ada, "Ann", "lives_in", "?city") == ["Paris"]
    assert await values(ada, "Ann", "lives_in", "?city", valid_at=before) == ["Bern"]
    # The interval is half open.
    assert await values(ada, "Ann", "lives_in", "?city", valid_at=now) == ["Paris"]
    # What was known then: nothing of Paris, and that Bern has no end.
    assert await values(ada, "Ann", "lives_in", "?city", as_of=before) == ["Bern"]
    known = {"as_of": before, "valid_at": now}
    assert await values(ada, "Ann", "lives_in", "?city", **known) == ["Bern"]
    assert await walk(ada, "Ann", **known) == {"Ann": 0, "Bern": 1}
    assert await walk(ada, "Ann") == {"Ann": 0, "Paris": 1}


async def test_earlier_values_are_put_into_the_line(service: RunningService) -> None:
    ada = await service.agent("ada", permissions=ADMINISTRATOR)
    await _functional(ada)
    await allow(ada, "write")
    late = await add(ada, "Ann", "lives_in", "Rome", valid_from=_T3)
    early = await add(ada, "Ann", "lives_in", "Bern", valid_from=_T1)
    assert early["value"]["valid_until"] == _T3
    middle = await add(ada, "Ann", "lives_in", "Paris", valid_from=_T2)
    assert middle["value"]["valid_until"] == _T3
    assert (await _value(ada, early["id"]))["valid_until"] == _T2
    # Two values from the same instant on: nothing decides, unless one has more authority.
    ben = await service.agent("ben", kind=PrincipalKind.USER)
    other = await add(ben, "Ann", "lives_in", "Oslo", valid_from=_T3)
    gone = await ada.get(f"{MEMORY}/{late['id']}")
    assert gone.json()["state"] == "superseded"
    assert gone.json()["provenance"]["superseded_by"] == other["id"]
    # The end of a value that a later one begins after stays.
    assert await values(ada, "Ann", "lives_in", "?c", valid_at="any") == ["Bern", "Oslo", "Paris"]
    expected = {_T1: "Bern", _T2: "Paris", _T3: "Oslo", _T4: "Oslo"}
    for instant, city in expected.items():
        assert await values(ada, "Ann", "lives_in", "?city", valid_at=instant) == [city]
    # A value within a longer one leaves what begins before and after.
    inside = await add(
        ben, "Ann", "lives_in", "Kiel", valid_from="2021-06-01T00:00:00Z", valid_until=_T3
    )
    assert inside["value"]["valid_until"] == _T3
    assert await values(ada, "Ann", "lives_in", "?c", valid_at=_T2) == ["Kiel"]
    assert await values(ada, "Ann", "lives_in", "?c", valid_at=_T1) == ["Bern"]


async def test_the_same_value_contradicts_nothing(service: RunningService) -> None:
    ada = await service.agent("ada")
    await _functional(ada)
    await add(ada, "Ann", "lives_in", "Bern", valid_from=_T1)
    again = await add(ada, "Ann", "lives_in", "bern ", valid_from=_T2)
    assert "valid_until" not in again["value"]
    # Other relations and other namespaces have nothing to do with each other.
    await add(ada, "Ann", "likes", "tea")
    await add(ada, "Ann", "likes", "milk")
    assert await values(ada, "Ann", "likes", "?what") == ["milk", "tea"]
    await _functional(ada, namespace="other")
    await add(ada, "Ann", "lives_in", "Paris", {"namespace": "other"})
    assert await values(ada, "Ann", "lives_in", "?city") == ["Bern", "Bern"][:1]


async def test_a_clock_that_jumps_back_leaves_a_line(service: RunningService) -> None:
    ada = await service.agent("ada")
    await _functional(ada)
    for number in range(6):
        service.clock.advance(-3_000 if number % 2 else 5_000)
        response = await post(
            ada, "fact", {"subject": "Ann", "relation": "lives_in", "object": f"city {number}"}
        )
        # A value that is known at the same instant as another one waits for a person.
        assert response.status_code in (201, 202), response.text
    service.clock.advance(3_600)
    held = [one["value"] for one in await _facts(ada)]
    ends = sorted((one.get("valid_from", ""), one.get("valid_until", "~")) for one in held)
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(ends)), ends
    assert len(await values(ada, "Ann", "lives_in", "?city")) == 1


async def _facts(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    asked = {"kind": "fact", "limit": 1000, **query}
    return list((await client.get(MEMORY, params=asked)).json()["entries"])


@pytest.mark.parametrize("sensitivity", ["internal", "restricted"])
async def test_many_values_of_one_key(service: RunningService, sensitivity: str) -> None:
    """10,000 in the long version: each ends the one before, and none is lost."""
    ada = await service.agent("ada")
    await _functional(ada)
    number = extent(120, long=10_000 if sensitivity == "internal" else 1_000)
    for start in range(0, number, 40):
        elements = [
            {
                "namespace": "facts",
                "key": f"k{one}",
                "memory_type": "semantic",
                "kind": "fact",
                "sensitivity": sensitivity,
                "value": {
                    "subject": "Ann",
                    "relation": "lives_in",
                    "object": f"city {one}",
                    "valid_from": f"{1000 + one // 28:04}-01-{one % 28 + 1:02}T00:00:00Z",
                },
            }
            for one in range(start, start + 40)
        ]
        response = await ada.post(f"{MEMORY}/batch", json={"entries": elements})
        assert response.status_code == 200, response.text
    assert await values(ada, "Ann", "lives_in", "?city") == [f"city {number - 1}"]
    held = await values(ada, "Ann", "lives_in", "?city", valid_at="1001-01-05T00:00:00Z")
    assert held == ["city 32"]
    assert (await ada.get(MEMORY, params={"kind": "fact", "count_only": "true"})).json()[
        "total"
    ] == number


# Conflicts


async def test_each_outcome_of_a_conflict(service: RunningService) -> None:
    ada = await service.agent("ada", permissions=ADMINISTRATOR)
    ben = await service.agent("ben", kind=PrincipalKind.USER)
    await _functional(ada)
    await allow(ada, "write")

    async def say(client: httpx.AsyncClient, city: str, **value: Any) -> httpx.Response:
        fact = {"subject": "Ann", "relation": "lives_in", "object": city, **value}
        return await post(client, "fact", fact)

    human = (await say(ben, "Bern", valid_from=_T1)).json()
    refused = assert_problem(await say(ada, "Paris", valid_from=_T2), 409, "REFUSED_BY_RULE")
    assert refused["rule"] == "lower_authority"
    deferred = await say(ada, "Paris", valid_from=_T2, confidence=0.96, evidence_count=4)
    assert deferred.status_code == 202
    proposal = deferred.json()
    assert proposal["kind"] == "proposal"
    assert proposal["value"]["rule"] == "review_suggested"
    assert proposal["value"]["contradicts"] == [human["id"]]
    again = await say(ada, "Paris", valid_from=_T2, confidence=0.96, evidence_count=4)
    assert (again.status_code, again.json()["id"]) == (202, proposal["id"])
    assert await values(ada, "Ann", "lives_in", "?city") == ["Bern"]
    assert (await say(ben, "Rome", valid_from=_T2)).status_code == 201
    unsure = await say(ben, "Oslo", valid_from=_T3, confidence=0.5)
    assert (unsure.status_code, unsure.json()["value"]["rule"]) == (202, "manual_resolution")
    assert await values(ada, "Ann", "lives_in", "?city") == ["Rome"]
    # A person overrules an agent, also about an earlier instant.
    await add(ada, "Bob", "lives_in", "Bern", valid_from=_T2)
    await add(ben, "Bob", "lives_in", "Paris", valid_from=_T2)
    assert await values(ada, "Bob", "lives_in", "?city") == ["Paris"]


async def test_an_update_is_a_conflict_with_what_it_replaces(service: RunningService) -> None:
    ada = await service.agent("ada", permissions=ADMINISTRATOR)
    ben = await service.agent("ben", kind=PrincipalKind.USER)
    await add(ada, "Bob", "likes", "tea")
    await allow(ada, "write")
    said = await add(ben, "Ann", "likes", "tea")
    path, tea = f"{MEMORY}/{said['id']}", said["value"]
    milk = {**tea, "object": "milk"}
    refused = await ada.patch(path, json={"value": milk}, headers={"If-Match": "1"})
    assert assert_problem(refused, 409, "REFUSED_BY_RULE")["rule"] == "lower_authority"
    sure = {**milk, "confidence": 0.99, "evidence_count": 9}
    deferred = await ada.patch(path, json={"value": sure}, headers={"If-Match": "1"})
    assert deferred.status_code == 202
    assert deferred.json()["value"]["replaces"] == said["id"]
    assert await values(ada, "Ann", "likes", "?what") == ["tea"]
    # Its end says nothing else.
    ended = {**tea, "valid_until": service.services.now()}
    assert (
        await ada.patch(path, json={"value": ended}, headers={"If-Match": "1"})
    ).status_code == 200
    service.clock.advance(1)
    changed = await ben.patch(path, json={"value": milk}, headers={"If-Match": "2"})
    assert changed.status_code == 200
    assert await values(ada, "Ann", "likes", "?what") == ["milk"]


# Names


async def test_an_alias_is_taken_back_by_deleting_it(service: RunningService) -> None:
    ada = await service.agent("ada")
    ann = await add_entity(ada, "Ann Smith", aliases=["Ann"])
    alias = await add_entity(ada, "Annie", alias_of=ann)
    await add(ada, "Ann", "likes", "tea")
    await add(ada, "annie", "likes", "milk")
    await add(ada, ann, "likes", "jazz")
    for name in ("Ann", "Annie", "Ann Smith", ann, alias):
        assert await values(ada, name, "likes", "?what") == ["jazz", "milk", "tea"], name
    assert await values(ada, "?who", "likes", "milk") == ["Ann Smith"]
    other = await add_entity(ada, "Bob")
    change = {"value": {"name": "Ann Smith", "alias_of": other}}
    refused = await ada.patch(f"{MEMORY}/{ann}", json=change, headers={"If-Match": "1"})
    assert "has aliases" in assert_problem(refused, 422)["detail"]
    before = service.services.now()
    service.clock.advance(1)
    await ada.delete(f"{MEMORY}/{alias}")
    assert await values(ada, "Ann", "likes", "?what") == ["jazz", "tea"]
    assert await values(ada, "Annie", "likes", "?what") == ["milk"]
    assert await values(ada, "?who", "likes", "milk") == ["annie"]
    assert await values(ada, "Ann", "likes", "?what", as_of=before) == ["jazz", "tea"]
    refused = await post(ada, "entity", {"name": "Nan", "alias_of": "mem_none"})
    assert "`value.alias_of`" in assert_problem(refused, 422)["detail"]


async def test_two_people_with_one_name_are_two(service: RunningService) -> None:
    ada = await service.agent("ada")
    await declare(ada)
    one, two = await add_entity(ada, "Ann", "person"), await add_entity(ada, "Ann", "person")
    await add_entity(ada, "Bern", "city")
    refused = await post(ada, "fact", {"subject": "Ann", "relation": "age", "object": 9})
    problem = assert_problem(refused, 409, "REFUSED_BY_RULE")
    assert problem["rule"] == "domain"
    assert "`subject_id`" in problem["detail"]
    await add(ada, one, "age", 9)
    await add(ada, two, "age", 40)
    assert await values(ada, one, "age", "?age") == [9]
    assert await values(ada, two, "age", "?age") == [40]
    assert len(await rows(ada, ("?who", "age", "?age"))) == 2
    assert await values(ada, "Ann", "age", "?age") == []
    found = (await _facts(ada))[0]["value"]
    assert (found["subject"], found["subject_id"] in (one, two)) == ("Ann", True)


# Access


async def test_each_row_is_one_that_the_caller_may_read(service: RunningService) -> None:
    ada = await service.agent("ada", permissions=ADMINISTRATOR)
    ben = await service.agent("ben")
    await add(ada, "Ann", "knows", "Bob")
    await add(ada, "Bob", "likes", "tea")
    assert await values(ben, "?a", "likes", "tea") == ["Bob"]
    await allow(ada, "none")
    assert await values(ben, "?a", "likes", "tea") == []
    assert await walk(ben, "Ann", hops=3) == {"Ann": 0}
    assert await walk(ada, "Ann", hops=3) == {"Ann": 0, "Bob": 1, "tea": 2}


async def test_a_request_sees_only_facts_about_its_people(service: RunningService) -> None:
    ada = await service.agent("ada")
    place = {"namespace": "user/ana/facts"}
    await add(ada, "Ana", "knows", "Bob", {**place, "subjects": ["ana"]})
    await add(ada, "Bob", "likes", "tea", {**place, "subjects": ["ana", "bob"]})
    await add(ada, "Bob", "likes", "jazz", place)
    pattern = {"subject": "Bob", "relation": "?r", "object": "?b"}
    found = {}
    for user in ("ana", "ana,bob", "bob"):
        namespace = "user/ana/facts" if "," in user else "facts"
        body = {"namespace": namespace, "patterns": [pattern], "user": user}
        response = await ada.post("/api/v1/facts/query", json=body)
        assert response.status_code == 200, response.text
        found[user] = sorted(row["values"]["b"]["value"] for row in response.json()["rows"])
    assert found == {"ana": ["jazz"], "ana,bob": ["jazz", "tea"], "bob": []}


@pytest.mark.parametrize("sensitivity", ["confidential", "restricted"])
async def test_sealed_facts_are_found_by_equality_and_walked(
    service: RunningService, sensitivity: str
) -> None:
    ada = await service.agent("ada")
    sealed = {"sensitivity": sensitivity}
    await add(ada, "Ann", "knows", "Bob", sealed)
    await add(ada, "Bob", "salary", 4_000, sealed, valid_until=_T4)
    await add(ada, "Bob", "salary", 5_000, sealed, valid_from=_T4)
    assert await values(ada, "Ann", "knows", "?who") == ["Bob"]
    assert await values(ada, "?who", "salary", 5_000) == ["Bob"]
    assert await values(ada, "Bob", "salary", "?much", valid_at=_T3) == [4_000]
    assert await walk(ada, "Ann", hops=2) == {"Ann": 0, "Bob": 1, 5000: 2}
    stored = [one.edges for one in (await everything(service)).entries]
    assert not any("bob" in target.lower() for edges in stored for _, target in edges)


# Bad input


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"relation": "r", "object": 1}, "`subject`"),
        ({"subject": "a", "relation": "r"}, "`object`"),
        ({"subject": "a", "relation": "r", "object": " "}, "`object`"),
        ({"subject": "a", "relation": "", "object": 1}, "relation"),
        ({"subject": "a", "relation": "r", "object": 1, "subject_id": "mem_9"}, "subject_id"),
        ({"subject": "a", "relation": "r", "object": {}}, "object"),
        ({"subject": "a", "relation": "r", "object": 1, "valid_from": "2025"}, "valid_from"),
        ({"subject": "a", "relation": "r", "object": 1, "valid_from": _T2, "valid_until": _T1},
         "`value.valid_until` must be after"),
        ({"subject": "a", "relation": "r", "object": 1, "valid_from": _T2, "valid_until": _T2},
         "`value.valid_until` must be after"),
        ({"subject": "a", "relation": "r", "object": 1, "confidence": 2}, "confidence"),
    ],
)  # fmt: skip
async def test_a_wrong_fact_changes_nothing(
    service: RunningService, value: dict[str, Any], named: str
) -> None:
    ada = await service.agent("ada")
    before = await everything(service)
    problem = assert_problem(await post(ada, "fact", value), 422)
    assert named in problem["detail"]
    assert await everything(service) == before


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("query", {"patterns": []}, 422),
        ("query", {"patterns": [{"subject": "?a", "object": "?b"}]}, 422),
        ("query", {"patterns": [{"subject": "?a", "relation": "r", "object": 1, "negated": True}]},
         422),
        ("query", {"patterns": [{"subject": "?a", "relation": "is_a", "object": "?b"}]}, 422),
        ("query", {"patterns": [{"subject": "?a", "relation": "r", "object": "?b"}] * 9}, 422),
        ("query", {"patterns": [{"subject": "?a", "relation": "r", "object": 1}],
                   "order_by": "?b"}, 422),
        ("query", {"patterns": [{"subject": "?a", "relation": "r", "object": 1}],
                   "as_of": "2999-01-01T00:00:00Z"}, 422),
        ("query", {"patterns": [{"subject": "?a", "relation": "r", "object": 1}],
                   "valid_at": "soon"}, 422),
        ("walk", {"start": ["a"], "hops": 5}, 422),
        ("walk", {"start": []}, 422),
        ("check", {"ontology": {"version": "1"}}, 422),
    ],
)  # fmt: skip
async def test_a_wrong_question_is_refused(
    service: RunningService, path: str, body: dict[str, Any], status: int
) -> None:
    ada = await service.agent("ada")
    response = await ada.post(f"/api/v1/facts/{path}", json={"namespace": "facts", **body})
    assert_problem(response, status)


# Moving facts to another store


def test_facts_are_exported_and_imported(tmp_path: Path) -> None:
    def run(data: Path, *words: str) -> str:
        place = ("--data", str(data), "--agent", "ada")
        return run_cli(*words, *place, env=environment_of(data)).stdout

    old, new = tmp_path / "old", tmp_path / "new"
    for data in (old, new):
        new_directory(data, "ada")
    ontology = {"version": "1.0.0", "entity_types": {"person": {}},
                "relation_types": {"knows": {"domain": "person"}}}  # fmt: skip
    stored = {"ontology": ("ontology", ontology), "ann": ("entity", {"name": "A", "class":
              "person"})}  # fmt: skip

    def put(data: Path, key: str, kind: str, value: dict[str, Any]) -> None:
        run(data, "put", "facts", key, json.dumps(value), "--type", "semantic", "--kind", kind)

    for key, (kind, value) in stored.items():
        put(old, key, kind, value)
    entities = json.loads(run(old, "query", "--kind", "entity", "--json"))["entries"]
    put(old, "b", "entity", {"name": "Annie", "alias_of": entities[0]["id"]})
    put(old, "c", "fact", {"subject_id": entities[0]["id"], "relation": "knows", "object": "Bob"})
    put(old, "d", "fact", {"subject": "Annie", "relation": "knows", "object": "Eve"})
    file = tmp_path / "facts.jsonl"
    lines = [run(old, "export", "--kind", kind) for kind in ("ontology", "entity", "fact")]
    # An export begins with the newest entry, and an alias follows what it is an alias of.
    lines[1] = "".join(reversed(lines[1].splitlines(keepends=True)))
    file.write_text("".join(lines), encoding="utf-8")
    run(new, "import", str(file))
    for data in (old, new):
        asked = ("facts", "query", "Annie knows ?who", "--order-by", "?who", "--json")
        found = json.loads(run(data, *asked))["rows"]
        assert [row["values"]["who"]["value"] for row in found] == ["Bob", "Eve"]
        printed = run(data, "facts", "walk", "Annie", "--relation", "knows")
        assert "Bob" in printed
        assert "Eve" in printed
    (tmp_path / "next.json").write_text(json.dumps({**ontology, "version": "1.1.0",
                                        "relation_types": {}}), encoding="utf-8")  # fmt: skip
    asked = ("facts", "check", f"@{tmp_path / 'next.json'}", "--data", str(new), "--agent", "ada")
    refused = run_cli(*asked, check=False, env=environment_of(new))
    assert "raise the major version" in refused.stderr
