"""kill -9 of a server that embeds or writes index segments: nothing is missed, twice or wrong."""

from __future__ import annotations

import random
import signal
from itertools import combinations
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.settings import DEFAULT_TENANT
from tests.faults.support import WRITING, wait_until
from tests.http.checks import MEMORY
from tests.recall.recall_service import agent, open_recall
from tests.recall.test_segments import anew, described
from tests.support.backend import place_options
from tests.support.command_line import run_cli
from tests.support.embedder import WordEmbedder
from tests.support.extent import chosen_seed, extent
from tests.support.indexing_server import EMBEDDING, NOWHERE, POINTS, SEGMENTS
from tests.support.process import START_LIMIT, ServerProcess

pytestmark = pytest.mark.anyio

SEARCH = f"{MEMORY}/search"
FILLER = "The weather in the harbour was mild and the boats lay still. "
KNOWN = (
    *("kitten", "puppy", "sofa", "window", "tree", "brown", "budget", "refund", "invoice", "train"),
    *("volcano", "monday"),
)
MOST = 50


class _Memory:
    """What is acknowledged.

    said: the text of each entry, by its id
    gone: words of deleted entries
    """

    def __init__(self, chance: random.Random) -> None:
        self.said: dict[str, str] = {}
        self.gone: list[str] = []
        self._chance = chance
        self._meanings = list(combinations(KNOWN, 4))
        chance.shuffle(self._meanings)

    def write(self, client: httpx.Client, count: int) -> None:
        """Makes entries, each with a meaning and a word of its own, some of them long."""
        drafts = []
        for _ in range(count):
            word = "".join(self._chance.choices("bdfghklmnprtvz", k=12))
            text = f"{' '.join(self._meanings.pop())} parcel {word}"
            if self._chance.random() < 0.2:
                text = f"{FILLER * 12}{text}. {FILLER * 12}"
            # In one namespace the entries before and after would be found as well.
            draft = {"namespace": f"n-{word}", "key": "k", "memory_type": "episodic"}
            drafts.append({**draft, "value": {"text": text}})
        made = _answer(client.post(f"{MEMORY}/batch", json={"entries": drafts}))["entries"]
        self.said |= {one["id"]: one["value"]["text"] for one in made}

    def delete(self, client: httpx.Client) -> None:
        """Deletes an entry, and others where there are many: a search shows a hundred."""
        for entry_id in self._chance.sample(list(self.said), max(1, len(self.said) - MOST)):
            assert client.delete(f"{MEMORY}/{entry_id}").status_code == 204
            self.gone.append(self._word(self.said.pop(entry_id)))

    def check_words(self, client: httpx.Client) -> None:
        """Everything is found by words, once, and nothing that is gone."""
        everything = _search(client, "parcel", mode="lexical")
        assert sorted(_ids(everything)) == sorted(self.said)
        assert everything["searched"] == len(self.said) <= 100
        for entry_id, text in self._chance.sample(sorted(self.said.items()), 5):
            assert _ids(_search(client, self._word(text), mode="lexical")) == [entry_id]
        for word in self.gone:
            assert _ids(_search(client, word, mode="lexical")) == []

    def check_meaning(self, client: httpx.Client) -> None:
        """Everything is found by its meaning."""
        for entry_id, text in self.said.items():
            query = text.removeprefix(FILLER * 12).partition(" parcel")[0]
            found = _ids(_search(client, query, mode="dense"))
            assert len(set(found)) == len(found)
            # What a long text says besides is nearer to others.
            assert entry_id in (found if FILLER in text else found[:1])

    def _word(self, text: str) -> str:
        return text.partition(" parcel ")[2].partition(".")[0]


def _answer(answer: httpx.Response) -> Any:
    assert answer.status_code < 300, answer.text
    return answer.json()


def _search(client: httpx.Client, query: str, **asked: Any) -> Any:
    return _answer(client.post(SEARCH, json={"query": query, "limit": 100, **asked}))


def _ids(found: Any) -> list[str]:
    return [one["entry"]["id"] for one in found["results"]]


def _server(data: Path, point: str, arrival: int) -> ServerProcess:
    """A server that indexes nothing before it is permitted."""
    (data / "permitted").unlink(missing_ok=True)
    module = "tests.support.indexing_server"
    return ServerProcess(data, program=(module, point, str(arrival), str(data / "permitted")))


def _finish(server: ServerProcess, memory: _Memory, client: httpx.Client) -> None:
    """Lets a server embed everything and write segments, and stops it."""
    memory.check_words(client)
    (server.data / "permitted").touch()

    def nothing_is_pending() -> bool:
        return bool(_search(client, "parcel")["pending"] == 0)

    wait_until(nothing_is_pending, 30, "everything is embedded")
    _answer(client.post("/api/v1/jobs/segments/run"))
    memory.check_words(client)
    memory.check_meaning(client)
    assert server.terminate() == 0


def _kill(server: ServerProcess, memory: _Memory, client: httpx.Client, point: str) -> None:
    """Lets a server index, which ends at its point."""
    if memory.said:
        memory.check_words(client)
        memory.delete(client)
    memory.write(client, 8)
    memory.check_words(client)
    (server.data / "permitted").touch()
    if point in SEGMENTS:
        with pytest.raises(httpx.TransportError):
            client.post("/api/v1/jobs/segments/run")
    server.process.communicate(timeout=START_LIMIT)
    assert server.process.returncode == -signal.SIGKILL


async def test_what_a_killed_server_was_indexing_is_found(tmp_path: Path) -> None:
    seed = chosen_seed()
    chance = random.Random(seed)
    memory = _Memory(chance)
    data = tmp_path / "data"
    data.mkdir()
    key = ""
    # Embedding reads the entries until it has been finished once, and then the log.
    points = [*chance.choices(EMBEDDING, k=extent(1, long=6)), NOWHERE]
    for _ in range(extent(1, long=3)):
        points += chance.sample(POINTS, k=len(POINTS))
    for number, point in enumerate([*points, NOWHERE]):
        arrival = chance.randint(1, 2) + (point == SEGMENTS[-1])
        print(f"server {number}: {point}, arrival {arrival}")
        with _server(data, point, arrival) as server:
            key = key or server.create_key("ada", *WRITING, "--permission", "tenant.admin")
            with server.client(key) as client:
                if point == NOWHERE:
                    _finish(server, memory, client)
                else:
                    _kill(server, memory, client, point)
    await _check_segments(data, memory)
    printed = run_cli("verify", *place_options(data), check=False)
    assert printed.returncode == 0, printed.stdout + printed.stderr


async def _check_segments(data: Path, memory: _Memory) -> None:
    """A shard that is loaded from segments is the one that is loaded entry by entry."""
    ada = agent("ada")
    async with open_recall(data, WordEmbedder()) as recall:
        loaded, plain = anew(recall, segments_too=True), anew(recall, segments_too=False)
        shards = []
        for one in (loaded, plain):
            assert len(await one.ids(ada, "parcel", limit=100)) == len(memory.said)
            shards.append(one.index.tenant_index(DEFAULT_TENANT).shards[ada.id])
        assert described(shards[0]) == described(shards[1])
        assert len(shards[0].documents._packs) > 1
        assert not shards[1].documents._packs
        assert not shards[0].missing
