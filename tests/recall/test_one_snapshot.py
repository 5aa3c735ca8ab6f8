"""What a search may read and what it searches in are of one snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memorywall.recall import index as index_module
from memorywall.recall.loading import Loader
from memorywall.records.tier import Tier
from memorywall.storage.port import Transaction
from tests.recall.recall_service import RecallService, agent, open_recall
from tests.support.embedder import WordEmbedder

pytestmark = pytest.mark.anyio

ADA, EVE = agent("ada"), agent("eve")


class _Recorder:
    """Notes in which read transaction access was decided and the log was read."""

    def __init__(self, recall: RecallService, monkeypatch: pytest.MonkeyPatch) -> None:
        self.noted: list[tuple[int, str]] = []
        self._transactions = 0
        read, store = recall.services.store.read, recall.services.store
        access, log = index_module.load_shard_filters, Loader._read_log

        async def counted_read(tenant: str | None, script: Any, *, long: bool = False) -> Any:
            async def counted(transaction: Transaction) -> Any:
                self._transactions += 1
                return await script(transaction)

            return await read(tenant, counted, long=long)

        async def noted_access(*args: Any) -> Any:
            self.noted.append((self._transactions, "access"))
            return await access(*args)

        async def noted_log(loader: Loader, *args: Any) -> Any:
            self.noted.append((self._transactions, "log"))
            return await log(loader, *args)

        monkeypatch.setattr(store, "read", counted_read)
        monkeypatch.setattr(index_module, "load_shard_filters", noted_access)
        monkeypatch.setattr(Loader, "_read_log", noted_log)

    def take(self) -> list[tuple[int, str]]:
        """What was noted since the last call."""
        noted, self.noted = self.noted, []
        return noted


def _check(noted: list[tuple[int, str]]) -> None:
    """Every look at the log was in a transaction in which access was decided, and the last
    decision was made together with one."""
    assert noted
    of = {number: {what for one, what in noted if one == number} for number, _ in noted}
    assert all("access" in found for found in of.values())
    assert of[max(of)] == {"access", "log"}


@pytest.mark.parametrize("embeds", [False, True])
async def test_access_and_changes_are_read_in_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embeds: bool
) -> None:
    async with open_recall(tmp_path, WordEmbedder() if embeds else None) as recall:
        await recall.open_namespace(ADA, "plans", "read")
        await recall.write(ADA, "a secret plan", Tier.SEMANTIC, "plans")
        await recall.write(EVE, "a note of mine")
        recorder = _Recorder(recall, monkeypatch)
        assert len(await recall.ids(EVE, "plan note")) == 2
        _check(recorder.take())
        await recall.write(EVE, "another note")
        assert len(await recall.ids(EVE, "plan note")) == 3
        _check(recorder.take())


async def test_access_is_checked_again_after_the_query_is_embedded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_recall(tmp_path, WordEmbedder()) as recall:
        await recall.open_namespace(ADA, "plans", "read")
        await recall.write(ADA, "a secret plan", Tier.SEMANTIC, "plans")
        await recall.write(EVE, "a note of mine about a plan")
        assert len(await recall.ids(EVE, "plan")) == 2
        recorder = _Recorder(recall, monkeypatch)
        embed = recall.index.embed

        async def meanwhile(texts: Any) -> Any:
            monkeypatch.setattr(recall.index, "embed", embed)
            await recall.open_namespace(ADA, "plans", "none")
            await recall.write(
                ADA, "a secret plan of which eve hears nothing", Tier.SEMANTIC, "plans"
            )
            # Somebody else's search takes the shards further.
            assert len(await recall.ids(ADA, "plan")) == 2
            recorder.take()
            return await embed(texts)

        monkeypatch.setattr(recall.index, "embed", meanwhile)
        assert len(await recall.ids(EVE, "plan")) == 1
        _check(recorder.take())
