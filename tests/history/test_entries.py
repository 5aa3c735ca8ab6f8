"""64 clients write the same entries while the server is killed again and again."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import uvloop

from memorywall.records.principal import Permission
from tests.faults.support import assert_verified
from tests.history.anomalies import report
from tests.history.arena import open_arena
from tests.history.budget import Budget, disturb
from tests.history.entries import check_entries
from tests.history.entry_scene import CLIENTS, EntryScene, assert_eventful, open_namespace
from tests.history.line import Line
from tests.history.record import History, Recorder
from tests.support.extent import chosen_seed, extent

OPERATIONS = extent(1_200, long=1_000_000)
OPERATIONS_PER_KILL = 20_000


def test_no_write_is_lost_and_no_read_is_stale(tmp_path: Path) -> None:
    seed = chosen_seed()
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
    assert_eventful(history, OPERATIONS)
    assert kills >= 4
    assert_verified(tmp_path)


async def _play(data: Path, seed: int) -> tuple[History, int]:
    recorder, budget = Recorder(), Budget(OPERATIONS)
    async with open_arena(data, seed) as arena:
        keys = await arena.create_keys(CLIENTS, Permission.READ, Permission.WRITE)
        [curator] = await arena.create_keys(["curator"], Permission.WRITE, Permission.ADMIN)
        await arena.start()
        await asyncio.to_thread(open_namespace, arena.port, curator)
        lines = [Line(arena.port, key, arena.up) for key in keys]
        scene = EntryScene(lines, recorder, seed)
        moments = budget.moments(max(4, OPERATIONS // OPERATIONS_PER_KILL), random.Random(seed))
        async with asyncio.TaskGroup() as group:
            group.create_task(disturb(budget, moments, arena.kill_and_restart))
            group.create_task(scene.play(budget))
        # What is there after one more kill is what was really stored.
        await arena.kill_and_restart()
        await scene.finish()
        for line in lines:
            line.close()
        return recorder.history, arena.kills
