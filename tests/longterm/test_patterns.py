"""Patterns over facts: joins, negation, filters, order, limits and plans; walks."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import httpx
import pytest

from memorywall.longterm import fact_reader
from tests.http.checks import MEMORY, assert_problem
from tests.longterm.fact_requests import FACTS, add, add_entity, declare, rows, values, walk
from tests.support.extent import chosen_seed, extent
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio


async def _add_all(client: httpx.AsyncClient, facts: Any, namespace: str = "facts") -> None:
    """Creates facts of three words each, in batches."""
    elements = [
        {
            "namespace": namespace,
            "key": f"fact-{number}",
            "memory_type": "semantic",
            "kind": "fact",
            "value": {"subject": subject, "relation": relation, "object": obj},
        }
        for number, (subject, relation, obj) in enumerate(facts)
    ]
    for start in range(0, len(elements), 100):
        body = {"entries": elements[start : start + 100]}
        response = await client.post(f"{MEMORY}/batch", json=body)
        assert response.status_code == 200, response.text


_PEOPLE = (
    ("Ann", "knows", "Bob"), ("Ann", "knows", "Eve"), ("Bob", "knows", "Eve"),
    ("Eve", "knows", "Eve"), ("Ann", "age", 30), ("Bob", "age", 4), ("Eve", "age", 4.0),
    ("Ann", "born", "1990-05-01"), ("Bob", "born", "1990-05-01T02:00:00+02:00"),
    ("Eve", "born", "2001-01-01T00:00:00Z"), ("Ann", "is_nice", True), ("Bob", "likes", "30"),
)  # fmt: skip


async def test_literals_compare_rightly(service: RunningService) -> None:
    ada = await service.agent("ada")
    await _add_all(ada, _PEOPLE)

    async def who(relation: str, operator: str, value: Any) -> list[str]:
        tests = [{"variable": "?x", "operator": operator, "value": value}]
        found = await rows(ada, ("?p", relation, "?x"), filters=tests, order_by="?p")
        return [row["p"] for row in found]

    assert await values(ada, "?p", "age", 4) == ["Bob", "Eve"]
    assert await who("age", ">", 4) == ["Ann"]
    assert await who("age", "<=", 4.0) == ["Bob", "Eve"]
    # A text is no number, and a truth value neither.
    assert await who("likes", "=", 30) == []
    assert await who("likes", "!=", 30) == ["Bob"]
    assert await who("is_nice", ">=", 1) == []
    assert await values(ada, "?p", "is_nice", True) == ["Ann"]
    # A date is its beginning, an instant may have any offset.
    assert await values(ada, "?p", "born", "1990-05-01T00:00:00Z") == ["Ann", "Bob"]
    assert await who("born", "<", "1999-12-31") == ["Ann", "Bob"]
    assert await who("born", ">=", "2001-01-01T01:00:00+01:00") == ["Eve"]
    ordered = await rows(ada, ("?p", "born", "?x"), order_by="?x", descending=True, limit=1)
    assert [row["p"] for row in ordered] == ["Eve"]
    older = [{"variable": "?x", "operator": ">", "value": "?y"}]
    pair = (("Ann", "age", "?x"), ("?q", "age", "?y"))
    found = await rows(ada, *pair, filters=older, order_by="?q")
    assert [row["q"] for row in found] == ["Bob", "Eve"]


async def test_variables_are_shared_and_parts_negated(service: RunningService) -> None:
    ada = await service.agent("ada")
    await _add_all(ada, _PEOPLE)
    mutual = await rows(ada, ("?a", "knows", "?b"), ("?b", "knows", "?c"), ("?a", "knows", "?c"))
    assert sorted((one["a"], one["b"], one["c"]) for one in mutual) == [
        ("Ann", "Bob", "Eve"),
        ("Ann", "Eve", "Eve"),
        ("Bob", "Eve", "Eve"),
        ("Eve", "Eve", "Eve"),
    ]
    assert await rows(ada, ("?a", "knows", "?a")) == [{"a": "Eve"}]
    lonely = await rows(ada, ("?a", "age", "?n"), ("?who", "knows", "?a", True))
    assert [one["a"] for one in lonely] == ["Ann"]
    unlike = await rows(ada, ("Ann", "?r", "?x"), ("Bob", "?r", "?y", True))
    assert [one["r"] for one in unlike] == ["is_nice"]
    eight = [("Ann", "knows", "?a")] + [(f"?{a}", "knows", f"?{b}")
             for a, b in itertools.pairwise("abcdefgh")]  # fmt: skip
    assert len(await rows(ada, *eight)) == 2


async def test_a_pattern_reads_only_what_is_selective(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part with a few facts is read first, whatever the order of the parts."""
    ada = await service.agent("ada")
    many = [(f"person {one}", "lives_in", f"city {one % 7}") for one in range(300)]
    await _add_all(ada, [*many, ("Ann", "knows", "person 8"), ("Ann", "knows", "person 9")])
    monkeypatch.setattr(fact_reader, "MOST_READ", 6)
    parts = [("?p", "lives_in", "?c"), ("Ann", "knows", "?p")]
    for asked in itertools.permutations(parts):
        found = await rows(ada, *asked, order_by="?c")
        assert [row["c"] for row in found] == ["city 1", "city 2"]
    assert len(await rows(ada, ("?p", "lives_in", "?c"), limit=5)) == 5
    body = {"namespace": "facts", "patterns": [{"subject": "?p", "relation": "lives_in",
            "object": "?c"}]}  # fmt: skip
    refused = await ada.post(f"{FACTS}/query", json=body)
    assert "6 facts" in assert_problem(refused, 400, "SCAN_LIMIT")["detail"]


async def test_random_patterns_find_what_a_naive_search_finds(service: RunningService) -> None:
    chance = Random(chosen_seed())
    ada = await service.agent("ada")
    nodes = ["a", "b", "c", "d", 1, "2020-01-01"]
    for number in range(extent(3, long=100)):
        facts = sorted(
            {
                (chance.choice(nodes[:4]), chance.choice("rst"), chance.choice(nodes))
                for _ in range(25)
            },
            key=str,
        )
        await _add_all(ada, facts, f"random-{number}")
        for _ in range(12):
            parts = [_random_part(chance, nodes) for _ in range(chance.randint(1, 4))]
            bound = {one for part in parts for one in part if str(one).startswith("?")}
            if chance.random() < 0.5:
                negated = _random_part(chance, nodes)
                parts.append((*negated, True))
            found = await rows(ada, *parts, namespace=f"random-{number}", limit=1000)
            names = sorted(name[1:] for name in bound)
            expected = {tuple(row[name] for name in names) for row in _naive(facts, parts)}
            assert sorted((tuple(row[name] for name in names) for row in found), key=str) == sorted(
                expected, key=str
            ), parts


def _random_part(chance: Random, nodes: list[Any]) -> tuple[Any, str, Any]:
    variables = ["?x", "?y", "?z"]
    subject = chance.choice([*nodes[:4], *variables])
    return subject, chance.choice("rst"), chance.choice([*nodes, *variables, *variables])


def _naive(facts: list[Any], parts: list[Any]) -> list[dict[str, Any]]:
    """Every binding of the variables to a fact for each part, in the order of the parts."""
    solutions: list[dict[str, Any]] = [{}]
    for part in sorted(parts, key=len):
        extended = [
            bound for one in solutions for fact in facts if (bound := _bind(one, part, fact))
            is not None
        ]  # fmt: skip
        if len(part) == 4:
            matched = [one for one in solutions if any(_bind(one, part, each) is not None
                       for each in facts)]  # fmt: skip
            extended = [one for one in solutions if one not in matched]
        solutions = extended
    return solutions


def _bind(bound: dict[str, Any], part: Any, fact: Any) -> dict[str, Any] | None:
    bound = dict(bound)
    for wanted, found in zip(part, fact, strict=False):
        if isinstance(wanted, str) and wanted.startswith("?"):
            wanted = bound.setdefault(wanted[1:], found)
        if wanted != found:
            return None
    return bound


# Walks


async def test_walks_have_directions_relations_and_an_end(service: RunningService) -> None:
    ada = await service.agent("ada")
    await declare(ada)
    for name in ("Ann", "Bob", "Eve", "Dan", "Zoe"):
        await add_entity(ada, name, "person")
    await add_entity(ada, "Bern", "city")
    for pair in (("Ann", "Bob"), ("Bob", "Eve"), ("Eve", "Dan"), ("Dan", "Ann")):
        await add(ada, pair[0], "befriends", pair[1])
    await add(ada, "Zoe", "knows", "Dan")
    await add(ada, "Eve", "lives_in", "Bern")
    for name in ("Ann", "Zoe"):
        await add(ada, name, "age", 30)
    assert await walk(ada, "Ann", hops=2, direction="out") == {
        "Ann": 0,
        "Bob": 1,
        30: 1,
        "Eve": 2,
    }
    assert await walk(ada, "Ann", hops=1, direction="in") == {"Ann": 0, "Dan": 1}
    # A number links nothing.
    assert "Zoe" not in await walk(ada, "Ann", hops=2, relations=["age"])
    assert await walk(ada, "Zoe", hops=4, direction="out", relations=["knows"]) == {
        "Zoe": 0,
        "Dan": 1,
        "Ann": 2,
        "Bob": 3,
        "Eve": 4,
    }
    assert len(await walk(ada, "Ann", hops=4, limit=2)) == 3
    assert await walk(ada, "Nobody", hops=4) == {"Nobody": 0}
