"""Another model embeds a store: nothing is missed meanwhile, and models are never mixed."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memorywall.jobs import embed, write_segments
from memorywall.jobs.job_runner import run_in_tenant
from memorywall.jobs.write_segments import SEGMENTS_JOB
from memorywall.recall.document import meanings_of
from memorywall.recall.embedding_lag import embedding_lag
from memorywall.recall.stored_vectors import decode, encode
from memorywall.records.entry import Entry
from memorywall.records.recall import Mode
from memorywall.records.tier import Tier
from memorywall.settings import DEFAULT_TENANT
from memorywall.storage.port import Transaction
from tests.recall.recall_service import RecallService, agent, open_recall
from tests.support import stored
from tests.support.embedder import DIMENSIONS, WordEmbedder
from tests.support.extent import chosen_seed, extent

pytestmark = pytest.mark.anyio

ADA = agent("ada")
FILLER = "The weather in the harbour was mild and the boats lay still. "
KNOWN = ("kitten", "sofa", "window", "tree", "budget", "refund", "invoice", "volcano")


class _Servers:
    """Servers over one store, some of which have embedders of different models.

    entries: what must be found, by the word that only this entry contains
    """

    def __init__(self, opened: RecallService, second: RecallService) -> None:
        self.opened = opened
        self.second = second
        self.entries: dict[str, Entry] = {}
        self.steps = 0
        self.written = 0
        self.models: set[tuple[bool, bool]] = set()

    async def write(self, chance: random.Random) -> None:
        """Writes an entry, every third of which is a long text."""
        self.written += 1
        word = "".join(chance.choices("bdfghklmnprtvz", k=12))
        text = f"{chance.choice(KNOWN)} {word}"
        if self.written % 3 == 0:
            text = f"{FILLER * 20}{text}. {FILLER * 20}"
        tier = chance.choice((Tier.EPISODIC, Tier.SEMANTIC))
        self.entries[word] = await self.opened.write(ADA, text, tier, key=word)

    async def check(self) -> None:
        """Searches with both models, in processes that run and in new ones."""
        self.steps += 1
        fresh = self.opened.anew(), self.second.anew()
        for server in (self.opened, self.second, *fresh):
            for word, entry in self.entries.items():
                assert entry.id in await server.ids(ADA, word, mode=Mode.LEXICAL), word
                # Words alone score an entry without a vector, as well as both score the others.
                assert entry.id in await server.ids(ADA, word, mode=Mode.HYBRID, limit=10), word
            self._check_vectors(server)
        for server in fresh:
            server.index.close()

    def _check_vectors(self, server: RecallService) -> None:
        """Every vector in memory is that of the server's own model for the entry."""
        assert server.embedder is not None
        by_id = {entry.id: entry for entry in self.entries.values()}
        found = 0
        for shard in server.index.tenant_index(DEFAULT_TENANT).shards.values():
            assert shard.vectors is not None
            for entry_id in by_id.keys() - shard.missing.keys():
                number = shard.number(entry_id)
                if number is None:
                    continue
                found += 1
                texts = meanings_of(by_id[entry_id], server.index.fields)
                rows = server.embedder.embed(texts)
                numbers, _ = decode(b"".join(encode(rows)), DIMENSIONS)
                assert np.array_equal(shard.vectors._numbers[number], numbers[0])
                passages = shard.vectors.passages(number, rows[0])
                assert passages == pytest.approx((rows[1:] @ rows[0]).tolist(), abs=0.03)
        self.models.add((server.embedder is self.second.embedder, found > 0))


async def test_no_hit_is_lost_while_another_model_embeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = chosen_seed()
    chance = random.Random(seed)
    monkeypatch.setattr(embed, "_CHANGES", 4)
    monkeypatch.setattr(write_segments, "SEGMENT_SIZE", 5)
    monkeypatch.setattr(write_segments, "_LEAST", 2)
    async with open_recall(tmp_path, WordEmbedder("one")) as opened:
        second = RecallService(opened.services, opened.clock, WordEmbedder("other"))
        servers = _Servers(opened, second)
        for _ in range(extent(14, long=35)):
            await servers.write(chance)
        await opened.embed()
        opened.clock.advance(3_600)
        assert await run_in_tenant(opened.services, DEFAULT_TENANT, SEGMENTS_JOB, early=True)
        await servers.check()
        assert servers.models == {(False, True), (True, False)}
        maintain: Callable[..., Awaitable[Any]] = embed.maintain
        begun = servers.steps

        async def lag(to: Transaction) -> int:
            return await embedding_lag(to, "test:other@64")

        async def first_vectors(to: Transaction) -> dict[str, bytes]:
            return await to.recall.vectors("test:one@64", before)

        before = [entry.id for entry in servers.entries.values()]

        async def watched(*arguments: Any) -> Any:
            result = await maintain(*arguments)
            await servers.check()
            if await opened.services.store.read(DEFAULT_TENANT, lag):
                # Until all is embedded, servers with the first model search its vectors.
                assert await opened.services.store.read(DEFAULT_TENANT, first_vectors)
            if chance.random() < 0.3 and servers.written < extent(17, long=50):
                # Some come while the job runs, and some go.
                await servers.write(chance)
                word = chance.choice(list(servers.entries))
                await opened.remove(ADA, servers.entries.pop(word))
                await servers.check()
            return result

        with monkeypatch.context() as step_by_step:
            step_by_step.setattr(embed, "maintain", watched)
            await second.embed()
        # What came last.
        await second.embed()
        # At least the lease and the vectors of each batch, and the removal of the first model's.
        assert servers.steps - begun >= 8
        await servers.check()
        page = await second.search(ADA, "kitten volcano")
        assert (page.model, page.pending) == (second.embedder and second.embedder.model, 0)
        assert servers.models == {(one, other) for one in (False, True) for other in (False, True)}
        models = stored.rows(tmp_path, "SELECT DISTINCT model FROM entry_vectors")
        assert models == [("test:other@64",)]
        second.close()
