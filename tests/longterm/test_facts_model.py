"""Random histories of facts against a slow model of both clocks.

The model keeps everything that was known after each change, and reads all of it for each question:
what held at one instant, as it was known at another. 10,000 histories in the long version.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import httpx
import pytest

from memorywall.records.clock import format_instant
from tests.http.checks import MEMORY
from tests.longterm.fact_requests import post, rows, walk
from tests.support.extent import chosen_seed, extent
from tests.support.service import START, RunningService

pytestmark = [pytest.mark.anyio]

_FUNCTIONAL = ("lives_in", "boards_in")
_RELATIONS = (*_FUNCTIONAL, "knows")
_ONTOLOGY = {
    "version": "1.0.0",
    "relation_types": {
        "lives_in": {"functional": True},
        "boards_in": {"parent": "lives_in"},
        "knows": {},
    },
}
_NODES = ("Ann", "Bob", "Eve", "Bern", "Rome")
_HOUR = 3_600
_END = "~"


class _Fact(NamedTuple):
    """A fact as it is known at an instant; no beginning is "", no end is after everything."""

    subject: str
    relation: str
    object: str
    start: str
    end: str

    def holds_at(self, instant: str) -> bool:
        return self.start <= instant < self.end


class _Model:
    """What is known, and what was known after each change, by the ids of the facts."""

    def __init__(self) -> None:
        self._known: list[tuple[str, dict[str, _Fact]]] = [("", {})]

    @property
    def now(self) -> dict[str, _Fact]:
        return self._known[-1][1]

    def at(self, instant: str) -> dict[str, _Fact]:
        """What was known at an instant."""
        return next(facts for known, facts in reversed(self._known) if known <= instant)

    def change(self, instant: str, changes: dict[str, _Fact | None]) -> None:
        facts = {**self.now, **{one: fact for one, fact in changes.items() if fact is not None}}
        for one in [one for one, fact in changes.items() if fact is None]:
            del facts[one]
        self._known.append((instant, facts))

    def erase(self, fact_id: str) -> None:
        """Forgets a fact, and that it was ever known."""
        for _, facts in self._known:
            facts.pop(fact_id, None)

    def effect(self, new: _Fact, now: str) -> tuple[_Fact, dict[str, _Fact | None]] | None:
        """What the facts become when one is added, and the new one; None if it is set aside."""
        if new.relation not in _FUNCTIONAL:
            return new, {}
        line = {
            one: fact
            for one, fact in self.now.items()
            if fact.subject == new.subject and fact.relation in _FUNCTIONAL
        }
        if not new.start and new.end == _END and any(one.start <= now for one in line.values()):
            new = new._replace(start=now)
        others = {one: fact for one, fact in line.items() if fact.object != new.object}
        if new.end == _END:
            later = [fact.start for fact in others.values() if fact.start > new.start]
            new = new._replace(end=min(later, default=_END))
        changes: dict[str, _Fact | None] = {}
        for one, fact in others.items():
            if fact.start < new.end and new.start < fact.end:
                if fact.start >= new.start:
                    return None
                changes[one] = fact._replace(end=new.start)
        return new, changes

    def held(self, valid_at: str, as_of: str) -> list[_Fact]:
        return [fact for fact in self.at(as_of).values() if fact.holds_at(valid_at)]


class _History:
    """A random history in a namespace, which is asked after each change."""

    def __init__(
        self, service: RunningService, client: httpx.AsyncClient, chance: Random, namespace: str
    ) -> None:
        self._service = service
        self._client = client
        self._chance = chance
        self._namespace = namespace
        self._model = _Model()

    async def run(self, changes: int) -> None:
        place = {"namespace": self._namespace}
        made = await post(self._client, "ontology", _ONTOLOGY, key="ontology", **place)
        assert made.status_code == 201, made.text
        for _ in range(changes):
            self._service.clock.advance(_HOUR)
            kind = self._chance.random()
            known = sorted(self._model.now)
            if kind < 0.7 or not known:
                await self._add()
            elif kind < 0.85:
                await self._end(self._chance.choice(known))
            else:
                fact_id = self._chance.choice(known)
                assert (await self._client.delete(f"{MEMORY}/{fact_id}")).status_code == 204
                self._model.erase(fact_id)
            await self._ask()

    async def _add(self) -> None:
        chance, now = self._chance, self._service.services.now()
        start, end = ("" if chance.random() < 0.4 else self._instant() for _ in range(2))
        if start and end and end <= start:
            end = ""
        new = _Fact(
            chance.choice(_NODES[:3]), chance.choice(_RELATIONS), chance.choice(_NODES), start,
            end or _END,
        )  # fmt: skip
        value = {"subject": new.subject, "relation": new.relation, "object": new.object}
        value |= {"valid_from": start or None, "valid_until": end or None}
        response = await post(self._client, "fact", value, namespace=self._namespace)
        effect = self._model.effect(new, now)
        assert response.status_code == (202 if effect is None else 201), (new, response.text)
        if effect is not None:
            stored, changes = effect
            self._model.change(now, {**changes, response.json()["id"]: stored})

    async def _end(self, fact_id: str) -> None:
        """Ends a fact earlier, where that leaves something of it."""
        fact, end = self._model.now[fact_id], self._instant()
        if not fact.start < end < fact.end:
            return
        path = f"{MEMORY}/{fact_id}"
        entry = (await self._client.get(path)).json()
        body = {"value": {**entry["value"], "valid_until": end}}
        match = {"If-Match": str(entry["version"])}
        response = await self._client.patch(path, json=body, headers=match)
        assert response.status_code == 200, response.text
        self._model.change(self._service.services.now(), {fact_id: fact._replace(end=end)})

    async def _ask(self) -> None:
        chance, now = self._chance, self._service.services.now()
        as_of = chance.choice([None, min(self._instant(), now)])
        valid_at = chance.choice([None, self._instant()])
        held = self._model.held(valid_at or as_of or now, as_of or now)
        clocks = {"as_of": as_of, "valid_at": valid_at, "namespace": self._namespace}
        subject, relation = chance.choice(_NODES), chance.choice(["lives_in", "knows"])
        wanted = {"lives_in": _FUNCTIONAL, "knows": ("knows",)}[relation]
        found = await rows(self._client, (subject, relation, "?o"), limit=1000, **clocks)
        expected = {one.object for one in held if one.subject == subject and one.relation in wanted}
        assert sorted(row["o"] for row in found) == sorted(expected), (subject, relation, clocks)
        found = await rows(self._client, ("?s", "knows", "?o"), ("?o", relation, "?p"), **clocks)
        joined = {
            (one.subject, one.object, two.object)
            for one in held
            for two in held
            if one.relation == "knows" and two.relation in wanted and one.object == two.subject
        }
        assert sorted((row["s"], row["o"], row["p"]) for row in found) == sorted(joined), clocks
        hops = chance.randint(1, 4)
        reached = await walk(self._client, subject, hops=hops, **clocks)
        assert reached == dict(_reach(held, subject, hops)), (subject, hops, clocks)

    def _instant(self) -> str:
        """One of few instants, from before the history up to its present."""
        passed = (self._service.clock.now() - START) // 1000 // _HOUR
        back = self._chance.randint(-1, 8)
        return format_instant(START + (passed - back) * _HOUR * 1000)


def _reach(held: list[_Fact], start: str, hops: int) -> Iterator[tuple[Any, int]]:
    """The nodes that a walk in both directions reaches, with their distances."""
    seen, frontier = {start}, {start}
    yield start, 0
    for hop in range(1, hops + 1):
        near = {one.object for one in held if one.subject in frontier}
        frontier = (near | {one.subject for one in held if one.object in frontier}) - seen
        seen |= frontier
        yield from ((one, hop) for one in frontier)


async def test_random_histories_on_both_clocks(service: RunningService) -> None:
    chance = Random(chosen_seed())
    ada = await service.agent("ada")
    for number in range(extent(100, long=10_000)):
        await _History(service, ada, chance, f"history-{number}").run(8)
