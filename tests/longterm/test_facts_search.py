"""Facts in searches: what no longer holds is in none, and what people say leads further."""

from __future__ import annotations

from random import Random
from typing import Any

import httpx
import pytest

from memorywall.records.clock import format_instant
from memorywall.records.principal import PrincipalKind
from tests.http.checks import ADMINISTRATOR, MEMORY
from tests.longterm.fact_requests import add, allow, post
from tests.support.extent import chosen_seed
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

_RELATIONS = {
    "lives_in": ("Graz", "Porto", "Leeds", "Turin", "Malmo", "Ghent", "Lyon"),
    "works_as": ("nurse", "welder", "baker", "auditor", "gardener", "driver"),
    "drives": ("a blue van", "a motorbike", "an old coupe", "a cargo bike"),
    "studies": ("Greek", "sailing", "statistics", "pottery", "law"),
}
_PEOPLE = [f"{first} {last}" for first in ("Amara", "Bruno", "Chiara", "Dmitri", "Elif")
           for last in ("Keller", "Rossi", "Volkov", "Demir", "Haddad")]  # fmt: skip
_CHANGES = 2_000
_FIRST, _DAY = 1_500_000_000_000, 86_400_000
"""The first instant, and the milliseconds from one change to the next."""


async def _search(client: httpx.AsyncClient, query: str, **asked: Any) -> list[dict[str, Any]]:
    response = await client.post(f"{MEMORY}/search", json={"query": query, **asked})
    assert response.status_code == 200, response.text
    return list(response.json()["results"])


async def test_no_default_search_shows_what_no_longer_holds(service: RunningService) -> None:
    """A world with 2,000 changes: each ends what held before, or is valid for a while."""
    chance = Random(chosen_seed())
    ada = await service.agent("ada")
    functional = {name: {"functional": True} for name in _RELATIONS}
    ontology = {"version": "1.0.0", "relation_types": functional}
    assert (await post(ada, "ontology", ontology, key="ontology")).status_code == 201
    present: dict[tuple[str, str], str] = {}
    elements = []
    for number in range(_CHANGES):
        person, relation = chance.choice(_PEOPLE), chance.choice(sorted(_RELATIONS))
        value = {"subject": person, "relation": relation, "object": chance.choice(
            [one for one in _RELATIONS[relation] if one != present.get((person, relation))]),
            "valid_from": format_instant(_FIRST + number * _DAY)}  # fmt: skip
        present[person, relation] = str(value["object"])
        elements.append({"namespace": "facts", "key": f"fact-{number}", "kind": "fact",
                         "memory_type": "semantic", "value": value})  # fmt: skip
    stored = 0
    for start in range(0, _CHANGES, 100):
        body = {"entries": elements[start : start + 100]}
        response = await ada.post(f"{MEMORY}/batch", json=body)
        assert response.status_code == 200, response.text
        stored += sum(one["kind"] == "fact" for one in response.json()["entries"])
    query = {"kind": "fact", "limit": 1000, "where": "not exists value.valid_until"}
    holds = {one["id"] for one in (await ada.get(MEMORY, params=query)).json()["entries"]}
    assert stored == _CHANGES
    assert 0 < len(holds) <= len(_PEOPLE) * len(_RELATIONS)
    shown = 0
    for person in _PEOPLE[::3]:
        for relation in _RELATIONS:
            results = await _search(ada, f"{person} {relation.replace('_', ' ')}")
            ids = {one["entry"]["id"] for one in results if one["entry"]["kind"] == "fact"}
            assert ids <= holds, (person, relation)
            assert len(results) <= 10
            shown += len(ids)
    assert shown > 100


async def test_the_graph_trusts_facts_of_people_more(service: RunningService) -> None:
    ada = await service.agent("ada", permissions=ADMINISTRATOR)
    ben = await service.agent("ben", kind=PrincipalKind.USER)
    await add(ada, "billing service", "maintained_by", "Dev Raman")
    await allow(ada, "write")
    homes = {
        0.25: await add(ben, "Dev Raman", "moved_to", "Leeds"),
        0.2: await add(ada, "Dev Raman", "moved_to", "Porto"),
        0.1: await add(ada, "Dev Raman", "moved_to", "Graz", confidence=0.5),
    }
    hits = await _search(ada, "who is the billing service maintained by?", explain=True)
    graph = {one["entry"]["id"]: one["explain"]["graph"] for one in hits}
    found = [graph[entry["id"]] for entry in homes.values()]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 3
