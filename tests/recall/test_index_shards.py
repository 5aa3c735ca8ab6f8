"""What is held in memory: dropped and read again, followed from other processes, used by many."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memorywall.jobs import flush
from memorywall.jobs.flush import flush_uses
from memorywall.recall import index as index_module
from memorywall.recall import loading
from memorywall.records.entry import Entry
from memorywall.records.errors import UnavailableError
from memorywall.records.recall import Mode
from memorywall.records.tier import Tier
from memorywall.service.runner.operation_runner import OperationTransactions
from tests.recall.recall_service import RecallService, agent, open_recall, told
from tests.support.embedder import WordEmbedder
from tests.support.extent import extent

pytestmark = pytest.mark.anyio

AGENTS = [agent(f"agent-{number}") for number in range(6)]
A = AGENTS[0]
WORDS = ["kitten", "window", "sofa", "tree", "budget", "refund"]


@pytest.fixture
async def recall(tmp_path: Path) -> AsyncIterator[RecallService]:
    async with open_recall(tmp_path, WordEmbedder()) as opened:
        yield opened


async def fill(recall: RecallService, seed: int, count: int = 120) -> list[Entry]:
    """Entries of all agents in several threads, some changed, re-labelled, moved and deleted."""
    chance = random.Random(seed)
    await recall.open_namespace(A, "shared", "write")
    made = []
    for _ in range(count):
        who = chance.choice(AGENTS)
        tier = chance.choice([Tier.SESSION, Tier.EPISODIC, Tier.SEMANTIC])
        scope = {"session_id": chance.choice("xy")} if tier is Tier.SESSION else {}
        text = " ".join(chance.choices(WORDS, k=chance.randint(1, 8)))
        made.append(await recall.write(who, text, tier, "shared", scope=scope))
        recall.clock.advance(1)
        entry = chance.choice(made)
        owner = agent(entry.agent_id)
        kind = chance.random()
        if kind < 0.1:
            made.remove(entry)
            await recall.remove(owner, entry)
        elif kind < 0.3:
            made.remove(entry)
            changes: list[dict[str, Any]] = [
                {"value": {"text": chance.choice(WORDS)}},
                {"sensitivity": "restricted"},
                {"sensitivity": "public"},
                {"tags": ["sofa"]},
                {"scope": {"session_id": "z"}},
            ]
            made.append(await recall.change(owner, entry, **chance.choice(changes)))
    return made


async def replies(recall: RecallService) -> list[bytes]:
    return [
        told(await recall.search(who, query, explain=True, limit=50))
        for who in AGENTS
        for query in ("kitten by the window", "the budget", "a sofa refund")
    ]


@pytest.mark.parametrize("seed", range(extent(1, long=3)))
async def test_reloaded_shard_returns_the_same_results(tmp_path: Path, seed: int) -> None:
    print("seed", seed)
    async with open_recall(tmp_path, WordEmbedder(), index_cache_bytes=1) as small:
        whole = small.anew()
        whole.index._evict = lambda searched, owners: None  # type: ignore[method-assign]
        assert await replies(whole) == await replies(small)
        for step in range(3):
            await fill(small, seed * 10 + step)
            # One holds everything and follows; the other holds what it searches and reads it anew.
            assert await replies(whole) == await replies(small)
            await small.embed()
            assert await replies(whole) == await replies(small)
            assert small.index.measure()["shards"] <= 2
            assert whole.index.measure()["shards"] == len(AGENTS) + 1
        whole.close()


async def test_recently_used_shard_is_evicted_last(tmp_path: Path) -> None:
    async with open_recall(tmp_path, index_cache_bytes=4_000) as recall:
        for who in AGENTS:
            await recall.write(who, "kitten " + " ".join(f"word{n}" for n in range(3)))
            assert len(await recall.ids(who, "kitten", tiers=(Tier.EPISODIC,))) == 1
        held = recall.index.measure()
        assert held["bytes"] <= 4_000 or held["shards"] == 1
        assert 0 < held["shards"] < len(AGENTS)
        for who in AGENTS:
            assert len(await recall.ids(who, "kitten", tiers=(Tier.EPISODIC,))) == 1


@pytest.mark.parametrize("seed", range(extent(1, long=3)))
async def test_write_of_another_process_is_seen(recall: RecallService, seed: int) -> None:
    print("seed", seed)
    other = recall.anew()
    for step in range(3):
        await fill(recall, seed * 10 + step, 40)
        assert await replies(other) == await replies(recall)
        await recall.embed()
        assert await replies(other) == await replies(recall)
    other.close()


@pytest.mark.parametrize("far", [0, 30, 100_000])
async def test_a_slice_that_is_far_behind_catches_up(
    recall: RecallService, monkeypatch: pytest.MonkeyPatch, far: int
) -> None:
    monkeypatch.setattr(loading, "_TOO_FAR", far)
    monkeypatch.setattr(loading, "_CHANGES", 7)
    monkeypatch.setattr(loading, "_PAGE", 5)
    other = recall.anew()
    await fill(recall, 1, 20)
    await replies(other)
    await fill(recall, 2, 150)
    fresh = recall.anew()
    expected = await replies(fresh)
    assert await replies(other) == expected
    assert await replies(recall) == expected
    other.close()
    fresh.close()


async def test_fragmented_index_shard_is_rebuilt(recall: RecallService) -> None:
    entry = await recall.write(A, "kitten")
    for number in range(400):
        entry = await recall.change(A, entry, value={"text": f"kitten {number}"})
        if number % 40 == 0:
            assert await recall.ids(A, f"{number}", mode=Mode.LEXICAL) == [entry.id]
    assert await recall.ids(A, "399 kitten", mode=Mode.LEXICAL) == [entry.id]
    held = recall.index.tenant_index(A.tenant).shards[A.id]
    assert len(held) == 1
    assert len(held.documents) < 350


async def test_nobody_lets_go_of_what_another_tenant_is_about_to_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_recall(tmp_path, index_cache_bytes=1) as recall:
        await recall.tenant("other")
        foreign = agent("a", "other")
        entry = await recall.write(A, "kitten")
        await recall.write(foreign, "kitten")
        follow, waits, goes_on = loading.Loader.follow, asyncio.Event(), asyncio.Event()

        async def slow(
            self: loading.Loader, transactions: OperationTransactions, *rest: Any
        ) -> Any:
            if transactions.principal.tenant == A.tenant:
                waits.set()
                await goes_on.wait()
            return await follow(self, transactions, *rest)

        monkeypatch.setattr(loading.Loader, "follow", slow)
        search = asyncio.ensure_future(recall.ids(A, "kitten"))
        async with asyncio.timeout(20):
            await waits.wait()
            assert len(await recall.ids(foreign, "kitten")) == 1
            goes_on.set()
            assert await search == [entry.id]
        # And what is not about to be searched is let go of.
        assert len(await recall.ids(foreign, "kitten")) == 1
        assert recall.index.tenant_index(A.tenant).shards == {}


async def test_many_search_and_write_at_once(tmp_path: Path) -> None:
    """Two tenants, more than there is room for, and nobody waits for ever, fails or is missed."""
    async with open_recall(tmp_path, WordEmbedder(), index_cache_bytes=2_000) as recall:
        await recall.tenant("other")
        everybody = [*AGENTS, *(agent(one.id, "other") for one in AGENTS)]
        for who in everybody[:: len(AGENTS)]:
            await recall.open_namespace(who, "shared", "write")
        chance = random.Random(7)

        async def work(number: int) -> None:
            who = everybody[number % len(everybody)]
            for round_ in range(6):
                tier = chance.choice([Tier.EPISODIC, Tier.SEMANTIC])
                word = f"word{number}x{round_}"
                fields = {"key": f"{number}-{round_}"}
                entry = await recall.write(who, f"kitten {word}", tier, "shared", **fields)
                assert await recall.can_find(who, entry, word, mode=Mode.LEXICAL)
                entry = await recall.change(who, entry, value={"text": f"puppy {word}"})
                (hit, *_) = (await recall.search(who, word, mode=Mode.LEXICAL)).hits
                assert hit.entry == entry
                if chance.random() < 0.5:
                    await recall.remove(who, entry)
                    assert not await recall.can_find(who, entry, word, mode=Mode.LEXICAL)

        async def embed() -> None:
            while not done.is_set():
                await recall.embed()
                await asyncio.sleep(0.005)

        done = asyncio.Event()
        embedding = asyncio.ensure_future(embed())
        async with asyncio.timeout(120):
            await asyncio.gather(*(work(number) for number in range(24)))
        done.set()
        await embedding
        await recall.embed()
        fresh = recall.anew()
        for who in everybody:
            for query in ("puppy", "kitten"):
                asked = {"explain": True, "limit": 100}
                assert told(await recall.search(who, query, **asked)) == told(
                    await fresh.search(who, query, **asked)
                )
        fresh.close()


async def test_a_search_that_is_broken_off_leaves_all_in_order(
    recall: RecallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_CHANGES", 5)
    monkeypatch.setattr(loading, "_PAGE", 5)
    await fill(recall, 3, 60)
    await recall.embed()
    chance = random.Random(3)
    for step in range(40):
        if step % 8 == 0:
            await fill(recall, 100 + step, 15)
        search = asyncio.ensure_future(recall.search(chance.choice(AGENTS), "kitten sofa"))
        for _ in range(chance.randint(0, 30)):
            await asyncio.sleep(0)
        search.cancel()
        await asyncio.gather(search, return_exceptions=True)
    async with asyncio.timeout(30):
        fresh = recall.anew()
        assert await replies(recall) == await replies(fresh)
        fresh.close()


async def test_uses_are_counted_once_wherever_they_are_read_from(recall: RecallService) -> None:
    entry = await recall.write(A, "kitten")
    await recall.write(A, "kitten")
    other = recall.anew()

    async def use(one: RecallService) -> float:
        found = await one.search(A, "kitten", explain=True)
        signals = {hit.entry.id: hit.signals for hit in found.hits}[entry.id]
        assert signals is not None
        return signals.use

    assert await use(recall) == 0
    for _ in range(5):
        await recall.get(A, entry)
    await recall.index.used(await flush_uses(recall.services))
    seen = await use(recall)
    assert seen > 0
    # What is read from the store says the same as what was told.
    assert await use(recall.anew()) == seen
    assert await use(other) == seen
    assert recall.services.usage_tracker.drain_uses() != {}


async def test_uses_that_could_not_be_written_are_written_the_next_time(
    recall: RecallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flush, "_USES_AT_ONCE", 2)
    counted = {f"entry-{number}": number + 1 for number in range(5)}
    recall.services.usage_tracker.count(A.tenant, counted)
    write, written = recall.services.store.write, 0

    async def fail_at_the_second(*arguments: Any, **options: Any) -> Any:
        nonlocal written
        written += 1
        if written == 2:
            raise UnavailableError("not now")
        return await write(*arguments, **options)

    monkeypatch.setattr(recall.services.store, "write", fail_at_the_second)
    added = (await flush_uses(recall.services))[A.tenant]
    left = recall.services.usage_tracker.drain_uses()[A.tenant]
    assert (len(added), len(left)) == (2, 3), "one part was written"
    assert added | left == counted
    recall.services.usage_tracker.count(A.tenant, left)
    assert await flush_uses(recall.services) == {A.tenant: left}
    assert written == 4


async def test_the_size_of_shards_that_only_grow_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_LOOKED_AT_EVERY", 2)
    async with open_recall(tmp_path) as recall:
        for who in AGENTS:
            await recall.write(who, "kitten by the window")
            await recall.ids(who, "kitten")
        for number in range(20):
            await recall.write(AGENTS[0], f"budget {number} of a sofa")
        # A search of one agent updates the shards of all, and measures some of them.
        for _ in range(4 * len(AGENTS)):
            await recall.ids(AGENTS[1], "kitten")
        assert recall.index._bytes == recall.index.measure()["bytes"] > 0
