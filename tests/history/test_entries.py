"""64 clients write the same entries while the server is killed again and again."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import secrets
import time
from pathlib import Path

import httpx
import uvloop

from memorywall.records.principal import Permission
from tests.faults.support import assert_verified
from tests.history.arena import Arena, open_arena
from tests.history.breaches import report
from tests.history.budget import Budget, disturb
from tests.history.entries import check_entries
from tests.history.line import Line
from tests.history.record import History, Kind, Outcome, Recorder
from tests.history.writers import EntryCaller, Known, Spot, Writer

OPERATIONS = 1_000_000 if os.environ.get("MEMORYWALL_CHAOS") else 100_000
OPERATIONS_PER_KILL = 20_000
CROWD, CROWD_SIZE = "crowd", 16
AGENTS = [f"agent-{number:02}" for number in range(12)]
CLIENTS_PER_AGENT = 4
SHARED = "history"
CLIENTS = [CROWD] * CROWD_SIZE + [agent for agent in AGENTS for _ in range(CLIENTS_PER_AGENT)]


def test_no_write_is_lost_and_no_read_is_stale(tmp_path: Path) -> None:
    seed = int(os.environ.get("MEMORYWALL_SEED") or secrets.randbits(32))
    print(f"MEMORYWALL_SEED={seed}")
    begun = time.perf_counter()
    history, kills = uvloop.run(_play(tmp_path, seed))
    played = time.perf_counter()
    violations = check_entries(history)
    checked = time.perf_counter()
    print(
        f"{len(history.entries)} operations, {kills} kills in {played - begun:.0f} s,"
        f" checked in {checked - played:.0f} s: {history.counts()}"
    )
    assert not violations, f"seed {seed}: {report(violations)}"
    _assert_eventful(history)
    assert kills >= 4
    assert_verified(tmp_path)


def _assert_eventful(history: History) -> None:
    """A history in which nothing collided would prove nothing."""
    ended = [
        (operation.kind, operation.reason or operation.outcome) for operation in history.entries
    ]
    share = len(ended) / 100_000
    assert len(ended) >= OPERATIONS
    for kind in (Kind.CREATE, Kind.READ, Kind.UPDATE, Kind.DELETE):
        assert ended.count((kind, Outcome.OK)) > 500 * share, kind
        assert ended.count((kind, Outcome.UNKNOWN)) > 0, kind
    assert ended.count((Kind.UPDATE, "VERSION_MISMATCH")) > 1_000 * share
    assert ended.count((Kind.CREATE, "ENTRY_EXISTS")) > 100 * share


async def _play(data: Path, seed: int) -> tuple[History, int]:
    recorder, known, budget = Recorder(), Known(), Budget(OPERATIONS)
    async with open_arena(data, seed) as arena:
        keys = await arena.create_keys(CLIENTS, Permission.READ, Permission.WRITE)
        [curator] = await arena.create_keys(["curator"], Permission.WRITE, Permission.ADMIN)
        await arena.start()
        await asyncio.to_thread(_open_namespace, arena, curator)
        lines = [Line(arena.port, key, arena.up) for key in keys]
        callers = [
            EntryCaller(line, recorder, known, agent, number)
            for number, (line, agent) in enumerate(zip(lines, CLIENTS, strict=True))
        ]
        writers = [
            Writer(caller, known, seed + number, _hot(agent), _spread(agent))
            for number, (caller, agent) in enumerate(zip(callers, CLIENTS, strict=True))
        ]
        moments = budget.moments(max(4, OPERATIONS // OPERATIONS_PER_KILL), random.Random(seed))
        async with asyncio.TaskGroup() as group:
            group.create_task(disturb(budget, moments, arena.kill_and_restart))
            for writer in writers:
                group.create_task(writer.run(budget))
        # What is there after one more kill is what was really stored.
        await arena.kill_and_restart()
        await _read_everything(dict(zip(CLIENTS, callers, strict=True)), known)
        for line in lines:
            line.close()
        return recorder.history, arena.kills


def _open_namespace(arena: Arena, key: str) -> None:
    """Lets everybody write the entries that all share."""
    changed = httpx.patch(
        f"http://127.0.0.1:{arena.port}/api/v1/memory/namespaces/{SHARED}",
        json={"permissions": {"default": "write"}},
        headers={"X-API-Key": key},
    )
    assert changed.status_code == 200, changed.text


def _hot(agent: str) -> list[Spot]:
    """Two names all clients want, and two that all clients of the crowd want."""
    hot = [Spot("semantic", SHARED, f"hot-{number}") for number in range(2)]
    if agent == CROWD:
        hot += [Spot("working", "hot", f"hot-{number}", CROWD) for number in range(2)]
    return hot


def _spread(agent: str) -> list[Spot]:
    """Names that clients meet on now and then: everybody's, and those of the agent's clients."""
    shared = [Spot("semantic", SHARED, f"key-{number}") for number in range(120)]
    own = [
        Spot(tier, "spread", f"key-{number}", agent)
        for tier in ("working", "session")
        for number in range(12)
    ]
    return shared[::6] + own + shared


async def _read_everything(callers: dict[str, EntryCaller], known: Known) -> None:
    """Reads every name by itself, and its entry by id."""
    for agent, caller in callers.items():
        spots = _hot(agent) + _spread(agent)
        for spot in dict.fromkeys(itertools.chain(spots)):
            await caller.find(spot)
            if spot in known.places:
                await caller.read(spot, known.places[spot][0])
