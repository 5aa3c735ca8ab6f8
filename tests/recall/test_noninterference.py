"""What a caller may not read influences nothing: with it and without it, replies are the same.

Another tenant's data, and in one's own tenant what others keep to themselves.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memorywall import assembly
from memorywall.recall import numpy_scoring, python_scoring
from memorywall.recall.candidates import Score
from memorywall.records.clock import Clock
from memorywall.records.entry import Entry, Source
from memorywall.records.identifiers import IdSource
from memorywall.records.principal import Principal
from memorywall.records.recall import Mode
from memorywall.records.tier import Tier
from tests.recall.recall_service import RecallService, agent, open_recall, told
from tests.support.embedder import WordEmbedder
from tests.support.extent import extent

pytestmark = pytest.mark.anyio

A, B, C = agent("a"), agent("b"), agent("c")
FOREIGN = agent("a", "other"), agent("b", "other")
WORDS = ["ada", "grace", "invoice", "refund", "budget", "march", "monday", "kitten", "window", "7"]
AUTHORS = ["Ada Smith", "Ada Jones", "Budget", "Grace", "Otto"]
THINGS = ["Ada Smith", "kitten", "window seat", "budget"]
COMPOUNDS = ["Rechnung", "Fenster", "Dachfenster", "Rechnungsfenster", "Monatsrechnung"]
QUERIES = [
    "Rechnung Fenster Monatsrechnung",
    "refund of the invoice",
    "what did Ada say about the budget in March?",
    "Ada Smith and the kitten by the window on Monday",
    "invoice invoice refund kitten grace",
    "two days before the refund of the window seat, what did Ada say yesterday?",
    "what is the kitten? who said grace on Monday?",
    "2026",
]


class OwnIds(IdSource):
    """Ids of ours come from one row of numbers and those of others from a second, so that ours are
    the same whatever else there is.

    The key of a tenant's digests is made at the first write of any agent and is shown to nobody, so
    its id comes from the second row.
    """

    def __init__(self, clock: Clock) -> None:
        self.ours = IdSource(clock, random.Random(1).getrandbits)
        self.others = IdSource(clock, random.Random(2).getrandbits)
        self.is_ours = True

    def next(self, prefix: str) -> str:
        return (self.ours if self.is_ours and prefix != "dek" else self.others).next(prefix)


class World:
    """A recall with ids of its own."""

    def __init__(self, recall: RecallService) -> None:
        self.recall = recall

    @property
    def ids(self) -> OwnIds:
        ids = self.recall.services.ids
        assert isinstance(ids, OwnIds)
        return ids

    @asynccontextmanager
    async def by_others(self) -> AsyncIterator[None]:
        """Within it others write."""
        self.ids.is_ours = False
        yield
        self.ids.is_ours = True


@pytest.fixture
def own_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "IdSource", OwnIds)


def value(chance: random.Random) -> dict[str, Any]:
    """Something said, by somebody, at some time, with some outcome."""
    said: dict[str, Any] = {"text": " ".join(chance.choices(WORDS, k=chance.randint(2, 12)))}
    if chance.random() < 0.5:
        said["author"] = chance.choice(AUTHORS)
    if chance.random() < 0.5:
        said["date"] = f"2026-0{chance.randint(1, 3)}-1{chance.randint(0, 9)}"
    if chance.random() < 0.3:
        said["type"] = chance.choice(["correction", "negative_retrieval"])
    if chance.random() < 0.3:
        said["text"] += "?"
    if chance.random() < 0.3:
        said |= {name: chance.choice(THINGS) for name in ("subject", "object")}
    elif chance.random() < 0.2:
        said |= {"name": chance.choice(THINGS), "aliases": chance.sample(WORDS, k=2)}
    elif chance.random() < 0.2:
        said |= {"text": " ".join(chance.choices(COMPOUNDS, k=3)), "language": "de"}
    if chance.random() < 0.2:
        # Long texts have passages, which searches show.
        sentences = (f"{' '.join(chance.choices(WORDS, k=6))}. " for _ in range(40))
        said["text"] = said["text"] + "".join(sentences)
    return said


async def fill(
    recall: RecallService,
    chance: random.Random,
    who: list[Principal],
    count: int,
    places: list[str],
) -> list[tuple[Principal, Entry]]:
    """Entries of several, in all tiers."""
    tiers = [Tier.WORKING, Tier.SESSION, Tier.EPISODIC, Tier.SEMANTIC, Tier.PROCEDURAL]
    made = []
    for _ in range(count):
        one, tier = chance.choice(who), chance.choice(tiers)
        scope = {"session_id": chance.choice("xyz")} if tier is Tier.SESSION else {}
        place, key = chance.choice(places), f"at {recall.clock.now()}"
        entry = await recall.write(
            one, value(chance), tier, place, key=key, scope=scope, tags=["t"]
        )
        made.append((one, entry))
        recall.clock.advance(60)
    return made


async def change_some(
    recall: RecallService, chance: random.Random, made: list[tuple[Principal, Entry]]
) -> None:
    """Changes, re-labels and deletes some of what was made."""
    for who, entry in chance.sample(made, len(made) // 2):
        kind = chance.random()
        if kind < 0.4:
            await recall.change(who, entry, value=value(chance))
        elif kind < 0.6:
            await recall.change(who, entry, sensitivity="restricted")
        else:
            await recall.remove(who, entry)


async def replies(recall: RecallService, who: Principal) -> list[bytes]:
    """What several searches of every kind say."""
    return [
        told(await recall.search(who, query, explain=True, limit=limit, **conditions))
        for query in QUERIES
        for limit, conditions in (
            (10, {"mode": Mode.HYBRID}),
            (100, {"mode": Mode.LEXICAL}),
            (100, {"mode": Mode.DENSE}),
            (100, {"tiers": (Tier.SEMANTIC, Tier.PROCEDURAL)}),
            (5, {"tags": ("t",), "min_trust": 0.5}),
        )
    ]


@pytest.mark.parametrize("seed", range(extent(1, long=3)))
async def test_another_tenant_influences_nothing(tmp_path: Path, own_ids: None, seed: int) -> None:
    print("seed", seed)
    async with (
        open_recall(tmp_path / "alone", WordEmbedder()) as alone,
        open_recall(tmp_path / "shared", WordEmbedder()) as shared,
    ):
        twins = (World(alone), World(shared))
        chance = random.Random(f"others {seed}")
        others: list[tuple[Principal, Entry]] = []

        async def same_as_alone(
            step: Callable[[RecallService, random.Random], Any] | None = None,
        ) -> None:
            said = []
            for world in twins:
                if step is not None:
                    await step(world.recall, random.Random(seed))
                said.append(await replies(world.recall, A))
            assert said[0] == said[1]
            assert len(set(said[0])) > len(QUERIES)

        async with twins[1].by_others():
            await shared.tenant("other")
            for place in "pq":
                await shared.open_namespace(FOREIGN[0], place, "write")
            before = shared.clock.now()
            others += await fill(shared, chance, [*FOREIGN], 60, ["p", "q"])
            alone.clock.advance((shared.clock.now() - before) / 1000)

        ours: dict[RecallService, list[tuple[Principal, Entry]]] = {}

        async def write(recall: RecallService, same: random.Random) -> None:
            for place in "pq":
                await recall.open_namespace(A, place, "write")
            ours[recall] = await fill(recall, same, [A, B], 60, ["p", "q"])

        await same_as_alone(write)
        async with twins[1].by_others():
            before = shared.clock.now()
            others += await fill(shared, chance, [*FOREIGN], 40, ["p", "q"])
            await replies(shared, FOREIGN[0])
            alone.clock.advance((shared.clock.now() - before) / 1000)
        await same_as_alone()

        async def embed(recall: RecallService, _: random.Random) -> None:
            await recall.embed()

        await same_as_alone(embed)
        async with twins[1].by_others():
            await change_some(shared, chance, others)
            await shared.embed()
        await same_as_alone()

        async def change(recall: RecallService, same: random.Random) -> None:
            await change_some(recall, same, ours[recall])

        await same_as_alone(change)
        # A process that has just begun says the same.
        fresh = shared.anew()
        assert await replies(fresh, A) == await replies(alone, A)
        fresh.close()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("embedded", [False, True])
@pytest.mark.sampled(3)
async def test_unreadable_entry_has_no_influence(
    tmp_path: Path, own_ids: None, seed: int, embedded: bool
) -> None:
    """The same within one tenant: other agents' own memory, and namespaces closed to the caller."""
    print("seed", seed)
    embedder = WordEmbedder() if embedded else None
    async with (
        open_recall(tmp_path / "alone", embedder) as alone,
        open_recall(tmp_path / "shared", embedder) as shared,
    ):
        twins = (World(alone), World(shared))
        hidden = random.Random(f"hidden {seed}")
        for world in twins:
            await world.recall.open_namespace(B, "closed", "none", b="admin", c="write")
            await world.recall.open_namespace(B, "open", "write")

        async def hide(count: int) -> list[tuple[Principal, Entry]]:
            made = []
            async with twins[1].by_others():
                before = shared.clock.now()
                made = await fill(shared, hidden, [B, C], count, ["closed"])
                alone.clock.advance((shared.clock.now() - before) / 1000)
            if embedded:
                for world in twins:
                    await world.recall.embed()
            return made

        async def same() -> None:
            said = [await replies(world.recall, A) for world in twins]
            assert said[0] == said[1]

        made = await hide(40)
        ours = [
            await fill(world.recall, random.Random(seed), [A, B], 40, ["open"]) for world in twins
        ]
        await same()
        made += await hide(40)
        await same()
        async with twins[1].by_others():
            await change_some(shared, hidden, made)
        await same()
        for world, entries in zip(twins, ours, strict=True):
            await change_some(world.recall, random.Random(seed), entries)
        await same()
        fresh = shared.anew()
        assert await replies(fresh, A) == await replies(alone, A)
        fresh.close()


async def test_unreadable_author_removes_no_word_from_a_query(tmp_path: Path) -> None:
    async with open_recall(tmp_path) as recall:
        await recall.open_namespace(B, "closed", "none", b="admin")
        await recall.open_namespace(B, "open", "read", b="admin")
        entry = await recall.write(B, "the budget of the kitten", Tier.SEMANTIC, "open")
        await recall.write(B, {"text": "x", "author": "Budget"}, Tier.SEMANTIC, "closed")
        assert await recall.ids(A, "the budget of what") == [entry.id]
        # Who may see the author has asked for what that author said.
        found = await recall.search(B, "the budget of the kitten", explain=True)
        signals = found.hits[0].signals
        assert signals is not None
        assert signals.terms == ("kitten",)


async def test_many_equals_are_chosen_the_same_however_they_came(
    tmp_path: Path, own_ids: None
) -> None:
    """More equals than are looked at closely: those shown depend on nothing that is hidden."""
    async with (
        open_recall(tmp_path / "alone") as alone,
        open_recall(tmp_path / "shared") as shared,
    ):
        said = []
        for recall in (alone, shared):
            world = World(recall)
            await recall.open_namespace(B, "closed", "none", b="admin")
            await recall.open_namespace(B, "open", "read", b="admin")
            chance = random.Random(5)
            for _ in range(260):
                if recall is shared and chance.random() < 0.5:
                    async with world.by_others():
                        await recall.write(B, "budget", Tier.SEMANTIC, "closed")
                chance.random()
                await recall.write(B, "budget", Tier.SEMANTIC, "open", key=f"k{recall.clock.now()}")
                recall.clock.advance(1)
            said.append(told(await recall.search(A, "budget", limit=100, explain=True)))
        assert said[0] == said[1]


@pytest.mark.parametrize("way", [python_scoring.score, numpy_scoring.score])
async def test_ties_are_broken_equally_by_updated_and_new_shards(
    tmp_path: Path, way: Score
) -> None:
    async with open_recall(tmp_path) as recall:
        recall.index.score = way
        made = [await recall.write(A, "budget", Tier.SEMANTIC, "open") for _ in range(260)]
        await recall.ids(A, "budget")
        for entry in made[::3]:
            await recall.change(A, entry, tags=["t"])
        fresh = recall.anew()
        fresh.index.score = way
        for mode in (Mode.HYBRID, Mode.LEXICAL):
            found = await recall.search(A, "budget", limit=100, mode=mode, explain=True)
            assert told(found) == told(
                await fresh.search(A, "budget", limit=100, mode=mode, explain=True)
            )
        fresh.close()


@pytest.mark.parametrize("seed", range(extent(2, long=20)))
@pytest.mark.parametrize("embedded", [False, True])
async def test_memory_about_others_has_no_influence(
    tmp_path: Path, own_ids: None, seed: int, embedded: bool
) -> None:
    """The same for a caller that is bound to a person: entries about others are in the same shards
    and the same threads, and link and name the same things."""
    print("seed", seed)
    bound = replace(A, subjects=("p1",), subject_forms=("p1",))
    embedder = WordEmbedder() if embedded else None
    said = []
    for crowded in (False, True):
        async with open_recall(tmp_path / str(crowded), embedder) as recall:
            world, chance, hidden = World(recall), random.Random(seed), random.Random(-1 - seed)
            sources: list[Source] = []
            others: list[Source] = []
            for number in range(60):
                tier = chance.choice([Tier.SESSION, Tier.EPISODIC, Tier.SEMANTIC])
                scope = {"session_id": chance.choice("xy")} if tier is Tier.SESSION else {}
                made: dict[str, Any] = {"tier": tier, "scope": scope}
                if crowded:
                    async with world.by_others():
                        for part in range(hidden.randint(0, 3)):
                            derived = hidden.sample(others, min(len(others), 1))
                            more: dict[str, Any] = {"derived_from": [*derived, *sources[-1:]]}
                            entry = await recall.write(
                                A,
                                value(hidden),
                                key=f"h{number}-{part}",
                                subjects=["p2"],
                                **made,
                                **(more if hidden.random() < 0.5 else {}),
                            )
                            others.append(Source(id=entry.id, version=1))
                derived = chance.sample(sources, 1) if number and chance.random() < 0.3 else []
                entry = await recall.write(
                    A,
                    value(chance),
                    key=f"e{number}",
                    subjects=["p1"],
                    derived_from=derived,
                    **made,
                )
                sources.append(Source(id=entry.id, version=1))
                recall.clock.advance(1)
            if embedded:
                await recall.embed()
            said.append(await replies(recall, bound))
            fresh = recall.anew()
            assert await replies(fresh, bound) == said[-1]
            fresh.close()
    assert said[0] == said[1]
