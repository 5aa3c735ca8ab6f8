"""SQLite and PostgreSQL give the same ranking: order, scores and explanations of the same memory.

The test opens both stores, whatever the other tests run on.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from memorywall import assembly
from memorywall.jobs import write_segments
from memorywall.jobs.flush import flush_uses
from memorywall.jobs.job_runner import run_in_tenant
from memorywall.jobs.write_segments import SEGMENTS_JOB
from memorywall.records.clock import Clock
from memorywall.records.entry import Entry, Source
from memorywall.records.identifiers import IdSource
from memorywall.records.recall import Mode
from memorywall.records.tier import Tier
from memorywall.settings import DEFAULT_TENANT
from tests.recall.recall_service import RecallService, agent, open_recall, told
from tests.support.embedder import WordEmbedder
from tests.support.extent import chosen_seed, extent

pytestmark = pytest.mark.anyio

# Names that a collation of a language would order otherwise than their bytes.
A, B = agent("a"), agent("B")
PLACES = ("notes", "Notes.old", "ärzte", "zoo")
AUTHORS = ("Ada Smith", "Grace", "Österreicher")
SAID = (
    *("ada", "grace", "invoice", "refund", "budget", "kitten", "window", "monday"),
    *("march", "volcano", "train", "boxes", "readFile", "7kg"),
)
GERMAN = ("Rechnung", "Fenster", "Dachfenster", "Monatsrechnung", "Straße", "Äpfel")
THINGS = ("Ada Smith", "kitten", "window seat", "Grace", "budget")
LONG = "The weather in the harbour was mild and the boats lay still. "
QUERIES = (
    "refund of the invoice",
    "what did Ada say about the budget in March?",
    "what did Grace say two days before the refund?",
    "Ada Smith and the kitten by the window on Monday",
    "kitten",
    "Rechnung für das Fenster",
    "Dachfenster Äpfel Straße",
    "window seat",
    "volcano boxes of the train",
    "the weather in the harbour",
    "read file",
    "7 kg boxes",
    "invoise refnd",
    "in which order did the budget, the refund and the train come up?",
    "list every invoice",
    "yesterday",
    "2026-02-11",
    "What is the kitten? Who spoke of the volcano?",
    "who is nicknamed whiskers",
    "Österreicher",
)
CONDITIONS: tuple[dict[str, Any], ...] = (
    {},
    {"mode": Mode.LEXICAL, "limit": 100},
    {"mode": Mode.DENSE, "limit": 30},
    {"tiers": (Tier.SEMANTIC, Tier.SESSION), "tags": ("Ü",)},
)


class _IdsByPrefix(IdSource):
    """The ids of each prefix come from a row of their own, because the stores need different ids of
    other things."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._rows: dict[str, IdSource] = {}

    def next(self, prefix: str) -> str:
        if prefix not in self._rows:
            self._rows[prefix] = IdSource(self._clock, random.Random(prefix).getrandbits)
        return self._rows[prefix].next(prefix)


@pytest.fixture
async def stores(
    tmp_path_factory: pytest.TempPathFactory, database: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[list[RecallService]]:
    """A memory on SQLite and one on PostgreSQL, which give the same ids."""
    monkeypatch.setattr(assembly, "IdSource", _IdsByPrefix)
    monkeypatch.setattr(write_segments, "SEGMENT_SIZE", 8)
    monkeypatch.setattr(write_segments, "_LEAST", 2)
    async with AsyncExitStack() as opened:
        yield [
            await opened.enter_async_context(
                open_recall(tmp_path_factory.mktemp("store"), WordEmbedder(), database_url=url)
            )
            for url in (None, database)
        ]


def _value(chance: random.Random) -> dict[str, Any]:
    """A note, a fact, a name with other names, a German or a long text."""
    words = chance.choices(SAID, k=chance.randint(2, 12))
    value: dict[str, Any] = {"text": " ".join(words)}
    kind = chance.randrange(6)
    if kind == 0:
        value["date"] = f"2026-0{chance.randint(1, 3)}-1{chance.randint(0, 9)}"
    elif kind == 1:
        subject, other = chance.sample(THINGS, 2)
        value |= {"subject": subject, "predicate": "likes", "object": other}
    elif kind == 2:
        value |= {"name": chance.choice(THINGS), "aliases": ["whiskers", chance.choice(SAID)]}
    elif kind == 3:
        value = {"text": " ".join(chance.choices(GERMAN, k=4)), "language": "de"}
    elif kind == 4:
        around = LONG * chance.randint(10, 25)
        value["text"] = f"{around}{value['text'].capitalize()}. {around}"
    return value


async def _fill(recall: RecallService, seed: int, count: int) -> None:
    """Chat in sessions and all else; some of it is changed, sealed, superseded and deleted."""
    chance = random.Random(seed)
    for place in PLACES:
        await recall.open_namespace(A, place, "write")
    made: list[Entry] = []
    for number in range(count):
        who, fields = chance.choice((A, B)), {}
        tier = chance.choice((Tier.SESSION, Tier.EPISODIC, Tier.SEMANTIC))
        value = _value(chance)
        if tier is Tier.SESSION:
            fields["scope"] = {"session_id": chance.choice("xyZ")}
            value |= {"author": chance.choice(AUTHORS)}
        if number % 3 == 0 and made and made[-1].agent_id == who.id:
            fields["derived_from"] = [Source(id=made[-1].id, version=made[-1].version)]
        tags = chance.sample(["u", "Ü", "ü"], 2)
        made.append(
            await recall.write(who, value, tier, chance.choice(PLACES), tags=tags, **fields)
        )
        recall.clock.advance(chance.choice((0, 1, 3_600, 90_000)))
    for entry in chance.sample(made, count // 4):
        owner = agent(entry.agent_id)
        kind = chance.randrange(3)
        if kind == 0:
            await recall.remove(owner, entry)
        elif kind == 1:
            await recall.change(owner, entry, value=_value(chance))
        else:
            await recall.change(owner, entry, sensitivity="restricted")


async def _replies(recall: RecallService) -> list[tuple[str, bytes]]:
    return [
        (query, told(await recall.search(who, query, explain=True, **conditions)))
        for who in (A, B)
        for query in QUERIES
        for conditions in CONDITIONS
    ]


async def _segments(recall: RecallService) -> int:
    job = await run_in_tenant(recall.services, DEFAULT_TENANT, SEGMENTS_JOB, early=True)
    return 0 if job is None else job.done


async def test_both_stores_give_the_same_ranking(stores: list[RecallService]) -> None:
    seed = chosen_seed()

    async def compare(is_from_segments: bool) -> None:
        """Compares what new processes say."""
        said, packs = [], []
        for recall in stores:
            fresh = recall.anew()
            said.append(await _replies(fresh))
            shards = fresh.index.tenant_index(DEFAULT_TENANT).shards.values()
            packs.append(sum(len(shard.documents._packs) for shard in shards))
            fresh.close()
        for one, other in zip(*said, strict=True):
            assert one == other
        assert len({reply for _, reply in said[0]}) > len(QUERIES)
        assert packs[0] == packs[1]
        assert bool(packs[0]) == is_from_segments

    for step in range(extent(1, long=6)):
        for recall in stores:
            await _fill(recall, seed + step, 90)
        if step == 0:
            await compare(is_from_segments=False)
        work: Callable[[RecallService], Any]
        for work in (RecallService.embed, _flush, _segments):
            done = [await work(recall) for recall in stores]
            assert done[0] == done[1] > 0
        await compare(is_from_segments=True)


async def _flush(recall: RecallService) -> int:
    """Stores the uses, which decide the prior; returns 1."""
    await flush_uses(recall.services)
    return 1
