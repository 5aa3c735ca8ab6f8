"""Every condition of a search, by itself and together, against what it says in words."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from memorywall.records.entry import Entry, Source
from memorywall.records.errors import ValidationError
from memorywall.records.recall import LONGEST_QUERY, MOST_HITS, EntryOutcome, Mode
from memorywall.records.tier import Tier
from tests.recall.recall_service import RecallService, agent, open_recall, told
from tests.support.embedder import WordEmbedder

pytestmark = pytest.mark.anyio

A, B = agent("a"), agent("b")


async def write_all(recall: RecallService) -> list[Entry]:
    """Kittens of every sort."""
    for name in ("cats", "cats/black", "dogs"):
        await recall.open_namespace(B, name, "write")
    semantic, episodic = Tier.SEMANTIC, Tier.EPISODIC
    session, working = Tier.SESSION, Tier.WORKING
    made = [
        await recall.write(B, "kitten", semantic, "cats", key="b-cats", tags=["x"]),
        await recall.write(A, "kitten", semantic, "cats/black", key="a-black", tags=["x", "y"]),
        await recall.write(A, "kitten", Tier.PROCEDURAL, "dogs", key="a-dogs", tags=["y", "z"]),
        await recall.write(A, "kitten", session, key="s1", scope={"session_id": "one"}),
        await recall.write(A, "kitten", session, key="s2", scope={"session_id": "two"}, tags=["z"]),
        await recall.write(A, "kitten", working, key="w1", scope={"task_id": "t1"}),
        await recall.write(A, "kitten", working, key="w2", scope={"intent_id": "i1"}, pinned=True),
        await recall.write(A, {"text": "kitten", "outcome": "success"}, episodic, key="won"),
        await recall.write(A, {"text": "kitten", "success": False}, episodic, key="lost"),
        await recall.write(A, {"text": "kitten", "type": "correction"}, episodic, key="corrected"),
        await recall.write(A, {"text": "kitten", "confidence": 0.5}, episodic, key="unsure"),
    ]
    source = Source(id=made[0].id, version=1)
    made.append(await recall.write(A, "kitten", episodic, key="inferred", derived_from=[source]))
    return made


CASES: list[tuple[dict[str, Any], str]] = [
    ({"tiers": (Tier.SEMANTIC,)}, "b-cats a-black"),
    ({"tiers": (Tier.SEMANTIC, Tier.PROCEDURAL)}, "b-cats a-black a-dogs"),
    ({"tiers": (Tier.SESSION, Tier.WORKING)}, "s1 s2 w1 w2"),
    ({"tiers": (Tier.EPISODIC,)}, "won lost corrected unsure inferred"),
    ({"agent_id": "b"}, "b-cats"),
    ({"agent_id": "a", "tiers": (Tier.SEMANTIC,)}, "a-black"),
    ({"agent_id": "nobody"}, ""),
    ({"namespace": "cats"}, "b-cats"),
    ({"namespace": "cat"}, ""),
    ({"namespace_prefix": "cats"}, "b-cats a-black"),
    ({"namespace_prefix": "cats/"}, "a-black"),
    ({"namespace": "notes", "tiers": (Tier.SESSION,)}, "s1 s2"),
    ({"tags": ("x",)}, "b-cats a-black"),
    ({"tags": ("x", "y")}, "a-black"),
    ({"tags": ("x", "z")}, ""),
    ({"tags_any": ("x", "z")}, "b-cats a-black a-dogs s2"),
    ({"tags_any": ("x", "z"), "tags": ("y",)}, "a-black a-dogs"),
    ({"tags": ("absent",)}, ""),
    ({"task_id": "t1"}, "w1"),
    ({"intent_id": "i1"}, "w2"),
    ({"task_id": "t1", "intent_id": "i1"}, ""),
    ({"session_id": "one"}, "s1"),
    ({"session_id": "two", "tags": ("z",)}, "s2"),
    ({"pinned": True}, "w2"),
    ({"outcome": EntryOutcome.SUCCESS}, "won"),
    ({"outcome": EntryOutcome.FAILURE}, "lost"),
    ({"outcome": EntryOutcome.CORRECTION}, "corrected"),
    ({"min_trust": 0.6, "tiers": (Tier.SEMANTIC, Tier.PROCEDURAL)}, "b-cats a-black a-dogs"),
    ({"min_trust": 0.5, "tiers": (Tier.EPISODIC,)}, "won lost corrected"),
    ({"min_trust": 0.35, "tiers": (Tier.EPISODIC,)}, "won lost corrected inferred"),
    ({"min_trust": 0.7}, ""),
]


@pytest.mark.parametrize(("asked", "expected"), CASES)
@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.LEXICAL])
async def test_each_condition(
    recall: RecallService, asked: dict[str, Any], expected: str, mode: Mode
) -> None:
    await write_all(recall)
    assert await recall.keys(A, "kitten", mode=mode, **asked) == set(expected.split())


async def test_without_conditions_everything_is_found(recall: RecallService) -> None:
    made = await write_all(recall)
    assert await recall.keys(A, "kitten") == {one.key for one in made}


async def test_as_of_finds_only_entries_of_that_instant(recall: RecallService) -> None:
    async def keys(instant: str) -> set[str]:
        return await recall.keys(A, "kitten", reference_time=instant)

    start = recall.services.now()
    old = await recall.write(A, "kitten", key="old")
    changed = await recall.write(A, "kitten", key="changed")
    recall.clock.advance(3_600)
    await recall.change(A, changed, tags=["new"])
    await recall.write(A, "kitten", key="late")
    await recall.write(A, "kitten", key="short", ttl="duration:PT1H")
    window = {"valid_from": "2026-02-10T00:00:00Z", "valid_until": "2026-02-20T00:00:00+00:00"}
    await recall.write(A, {"text": "kitten", **window}, key="window")
    await recall.write(A, {"text": "kitten", "valid_until": "soon"}, key="odd")
    now = recall.services.now()
    assert await keys("2026-02-01T00:00:00.000Z") == set()
    assert await keys(start) == {old.key}
    assert await keys(now) == {"old", "changed", "late", "short", "odd"}
    assert await keys("2026-02-09T23:59:59.999Z") == {"old", "changed", "late", "odd"}
    assert await keys("2026-02-10T00:00:00.000Z") == {"old", "changed", "late", "odd", "window"}
    assert await keys("2026-02-20T00:00:00.000Z") == {"old", "changed", "late", "odd"}


@pytest.mark.parametrize("embedded", [False, True])
async def test_what_was_written_later_changes_no_score_as_of_an_instant(
    tmp_path: Path, embedded: bool
) -> None:
    async with open_recall(tmp_path, WordEmbedder() if embedded else None) as recall:
        made = []
        for number in range(8):
            value = {"text": f"kitten {number} {'window ' * (number % 3)}", "author": "Ada"}
            more = {"subject": "the sofa", "object": f"tree {number}"} if number % 2 else {}
            made.append(await recall.write(A, value | more, scope={"session_id": "s"}))
            made.append(await recall.write(A, value | more, Tier.SEMANTIC))
        if embedded:
            await recall.embed()
        instant = recall.services.now()
        asked: dict[str, Any] = {"explain": True, "limit": 100, "reference_time": instant}
        before = [
            told(await recall.search(A, query, **asked))
            for query in ("kitten by the window", "the sofa")
        ]
        recall.clock.advance(60)
        for _ in range(8):
            value = {"text": "kitten window", "subject": "the sofa", "aliases": ["x"]}
            await recall.write(A, value, scope={"session_id": "s"})
            await recall.write(A, value, Tier.SEMANTIC)
        # An entry of that instant that was changed since is found by words only.
        if not embedded:
            await recall.change(A, made[3], value={"text": "kitten window sofa window"})
        else:
            await recall.embed()
        after = [
            told(await recall.search(A, query, **asked))
            for query in ("kitten by the window", "the sofa")
        ]
        assert after == before


@pytest.mark.parametrize("limit", [1, 3, MOST_HITS])
async def test_the_limit_holds_and_takes_the_best(recall: RecallService, limit: int) -> None:
    for number in range(120):
        await recall.write(A, "kitten " * (1 + number % 7) + "window " * (number % 3))
    everything = await recall.ids(A, "kitten window", limit=MOST_HITS)
    assert len(everything) == MOST_HITS
    assert await recall.ids(A, "kitten window", limit=limit) == everything[:limit]
    scores = [hit.score for hit in (await recall.search(A, "kitten window", limit=limit)).hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("query", "limit"),
    [("", 1), (" \t", 1), ("x" * (LONGEST_QUERY + 1), 1), ("x", 0), ("x", 101)],
)
async def test_invalid_search_is_refused(recall: RecallService, query: str, limit: int) -> None:
    with pytest.raises(ValidationError):
        await recall.search(A, query, limit=limit)


async def test_common_term_counts_when_the_query_has_no_other(
    recall: RecallService,
) -> None:
    for number in range(150):
        await recall.write(A, f"kitten {number}")
    assert len(await recall.ids(A, "kitten", limit=100)) == 100
    (best, *_) = (await recall.search(A, "kitten 17", explain=True)).hits
    assert b"kitten 17" in best.entry.value


async def test_each_mode_searches_by_its_signal(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    async with open_recall(tmp_path, embedder) as recall:
        words = await recall.write(A, {"done": True}, Tier.SEMANTIC, "kitten-place", key="kitten")
        meant = await recall.write(A, "kitten", Tier.SEMANTIC, "other-place", key="k")
        await recall.embed()
        for mode, expected in [
            (Mode.LEXICAL, {words.id, meant.id}),
            (Mode.DENSE, {meant.id}),
            (Mode.HYBRID, {words.id, meant.id}),
        ]:
            found = await recall.search(A, "kitten", mode=mode, explain=True)
            assert {hit.entry.id for hit in found.hits} == expected, mode
            assert found.model == (None if mode is Mode.LEXICAL else embedder.model)
            for hit in found.hits:
                assert hit.signals is not None
                assert (hit.signals.lexical > 0) == (mode is not Mode.DENSE)
                is_meant = hit.entry.id == meant.id and mode is not Mode.LEXICAL
                assert (hit.signals.dense > 0) == is_meant
        embedder.failures = 2
        assert await recall.ids(A, "kitten", mode=Mode.DENSE) == []
        assert len(await recall.ids(A, "kitten", mode=Mode.HYBRID)) == 2


@pytest.mark.parametrize("seed", range(4))
async def test_the_shares_of_a_hit_make_its_score(tmp_path: Path, seed: int) -> None:
    print("seed", seed)
    chance = random.Random(seed)
    async with open_recall(tmp_path, WordEmbedder() if seed % 2 else None) as recall:
        for _ in range(60):
            text = " ".join(chance.choices(["kitten", "window", "sofa", "ada"], k=4))
            await recall.write(
                A,
                {
                    "text": text + ("?" if chance.random() < 0.3 else ""),
                    "author": chance.choice(["Ada", "Grace"]),
                    "date": f"2026-0{chance.randint(1, 9)}-05",
                },
                scope={"session_id": chance.choice("xyz")},
                tier=Tier.SESSION,
            )
        if seed % 2:
            await recall.embed()
        query = "what did Ada say about the kitten in March?"
        found = await recall.search(A, query, explain=True, limit=100)
        assert len(found.hits) > 20
        for hit in found.hits:
            one = hit.signals
            assert one is not None
            shares = one.lexical + one.dense + one.thread + one.author + one.date
            assert hit.score == pytest.approx(shares * one.prior * one.superseded, rel=1e-6)
            assert 0.9 <= one.prior <= 1.1
            assert all(0 <= part <= 1 for part in (one.recency, one.outcome, one.use))
            assert (one.author > 0) == (b'"Ada"' in hit.entry.value)
            assert (one.date > 0) == (b"2026-03" in hit.entry.value)
