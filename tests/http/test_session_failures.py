"""Sessions under failures: a transaction that breaks off at any step, and several writers and
servers at the same time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.coordination import attachment_content
from memorywall.jobs.end_sessions import END_SESSIONS_JOB
from memorywall.jobs.job_runner import run_everywhere
from memorywall.records.errors import StorageFullError
from memorywall.sessions import checkpoints
from memorywall.settings import DATABASE_NAME
from tests.http.checks import assert_problem
from tests.http.test_sessions import Talk, begin
from tests.support.backend import store_of
from tests.support.damage import verified
from tests.support.extent import chosen_seed, extent
from tests.support.service import RunningService, open_service

pytestmark = pytest.mark.anyio

_STEPS = (
    (checkpoints, "change"),
    (checkpoints, "create_new_entry"),
    (checkpoints, "remove_entry"),
    (checkpoints, "make_checkpoint_entry"),
    (checkpoints, "store_counters"),
    (attachment_content, "store_content"),
)
"""What a checkpoint and a compaction write."""


class Breaking:
    """Lets the steps of a transaction fail from one of them on, after it has written."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.steps = 0
        self.fails_at: int | None = None
        for module, name in _STEPS:
            patch.setattr(module, name, self._wrap(getattr(module, name)))

    def _wrap(self, function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def step(*arguments: Any, **named: Any) -> Any:
            result = await function(*arguments, **named)
            self.steps += 1
            if self.fails_at is not None and self.steps >= self.fails_at:
                # The writer may try again what found the disk full.
                raise StorageFullError("the disk is full")
            return result

        return step

    async def at_every_step(self, attempt: Callable[[], Awaitable[bool]]) -> int:
        """Repeats an attempt with a failure at each step until it succeeds; returns the number of
        failures.

        attempt: returns whether it succeeded
        """
        for failures in range(100):
            self.steps, self.fails_at = 0, failures + 1
            if await attempt():
                assert self.steps == failures
                self.fails_at = None
                return failures
            assert self.steps >= self.fails_at
        raise AssertionError("it does not succeed")


async def _state(talk: Talk) -> list[Any]:
    resumable = await talk.do("GET", "/export")
    position = (await talk.client.get("/api/v1/memory/changes")).json()["next"]
    return [await talk.do("GET"), resumable, await talk.do("GET", "/checkpoints"), position]


async def test_a_checkpoint_that_finds_the_disk_full_changes_nothing(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = await begin(await service.agent("ada"), policy={"checkpoints_kept": 1})
    await talk.add("The repair must not cost more than 180 euros.")
    await talk.do("POST", "/checkpoints", trigger="periodic")
    await talk.add("It must be done by 3 May.")
    before = await _state(talk)
    breaking = Breaking(monkeypatch)
    # Too large for an entry, so that the attachment is written as well.
    wanted = {"working": [{"page": "x" * 80_000}], "state": {"step": 2}}

    async def attempt() -> bool:
        reply = await talk.ask("POST", "/checkpoints", **wanted)
        if reply.is_success:
            return True
        assert "disk is full" in assert_problem(reply, 507, "STORAGE_FULL")["detail"]
        assert await _state(talk) == before
        return False

    assert await breaking.at_every_step(attempt) >= 6
    resumed = await talk.do("POST", "/resume", replay=9)
    assert resumed["checkpoint"]["number"] == 2
    assert resumed["checkpoint"]["working"] == wanted["working"]
    assert "180 euros" in resumed["checkpoint"]["summary"]
    assert resumed["session"]["state"] == {"step": 2}


async def test_a_compaction_that_breaks_off_is_done_again_in_whole(
    tmp_path: Path, service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = {"checkpoint_turns": 4, "compaction_threshold": 0.01, "checkpoints_kept": 1}
    talk = await begin(await service.agent("ada"), policy=policy, token_budget=400)
    for round_ in range(2):
        for number in range(4):
            await talk.add(f"Invoice {round_}{number} must be paid by {number + 1} May.")
        if not round_:
            await run_everywhere(service.services, END_SESSIONS_JOB, early=True)
    before = await _state(talk)
    assert before[0]["counts"]["summarized_through"] == 4
    breaking = Breaking(monkeypatch)

    async def attempt() -> bool:
        if await run_everywhere(service.services, END_SESSIONS_JOB, early=True):
            return True
        assert await _state(talk) == before
        return False

    assert await breaking.at_every_step(attempt) >= 4
    assert (await talk.do("GET"))["counts"]["summarized_through"] == 8
    made = await talk.do("POST", "/checkpoints", trigger="periodic")
    assert all(f"{number}{second}" in made["summary"] for number in "01" for second in "0123")
    assert verified(tmp_path / DATABASE_NAME).problems == []


async def test_writers_and_servers_at_once_lose_and_double_no_turn(tmp_path: Path) -> None:
    seed = chosen_seed()
    turns = extent(8, long=200)
    async with AsyncExitStack() as stack:
        # A file has one server; a database may have several.
        servers = [
            await stack.enter_async_context(open_service(tmp_path))
            for _ in range(1 if store_of(tmp_path) is None else 2)
        ]
        key = await servers[0].key("ada")
        clients = [server.client(key) for server in servers for _ in range(2)]
        policy = {"checkpoint_turns": 5, "compaction_threshold": 0.01}
        talk = await begin(clients[0], policy=policy, token_budget=400)

        async def write(writer: int, client: httpx.AsyncClient) -> None:
            chance = random.Random(seed * 100 + writer)
            for number in range(turns):
                name = f"{writer}-{number}"
                # Some requests are repeated, as after a lost reply, also at the same time.
                repeated = chance.choice((1, 1, 2, 3))
                added = await asyncio.gather(
                    *(talk.by(client).add(name, client_id=name) for _ in range(repeated))
                )
                assert len({one["turns"][0]["sequence"] for one in added}) == 1
                if chance.random() < 0.2:
                    await talk.by(client).do("POST", "/checkpoints", trigger="periodic")

        async def compact(server: RunningService) -> None:
            for _ in range(turns):
                await run_everywhere(server.services, END_SESSIONS_JOB, early=True)

        await asyncio.gather(
            *(write(writer, client) for writer, client in enumerate(clients)),
            *(compact(server) for server in servers),
        )
        found = (await talk.do("GET", "/turns?limit=1000"))["turns"]
        names = [one["content"] for one in found]
        assert [one["sequence"] for one in found] == list(range(1, len(names) + 1))
        for writer in range(len(clients)):
            own = [name for name in names if name.startswith(f"{writer}-")]
            assert own == [f"{writer}-{number}" for number in range(turns)]
        assert len(names) == turns * len(clients)
        counts = (await talk.do("GET"))["counts"]
        assert (counts["turn_count"], counts["last_sequence"]) == (len(names), len(names))
        numbers = [one["number"] for one in (await talk.do("GET", "/checkpoints"))["checkpoints"]]
        assert len(set(numbers)) == len(numbers)
        resumed = await talk.do("POST", "/resume", replay=1_000)
        covered = resumed["checkpoint"]["summarized_through"]
        assert [one["content"] for one in resumed["turns"]] == names[covered:]
        assert verified(tmp_path / DATABASE_NAME).problems == []
