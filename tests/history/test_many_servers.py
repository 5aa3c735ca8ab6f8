"""64 clients, four server processes, one PostgreSQL database: together they are one honest server.

Every client talks to any of the servers, which are killed one by one in the midst of everything.
"""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import uvloop

from memorywall.records.principal import Permission
from tests.history.anomalies import report
from tests.history.budget import Budget, disturb
from tests.history.claim_scene import CLIENTS as CLAIMING_CLIENTS
from tests.history.claim_scene import ClaimScene, judge_claims
from tests.history.cluster import Cluster, Roamer, open_cluster
from tests.history.entries import check_entries
from tests.history.entry_scene import CLIENTS, EntryScene, assert_eventful, open_namespace
from tests.history.record import History, Kind, Recorder
from tests.history.terms import RealTerms
from tests.support.backend import own_database
from tests.support.extent import chosen_seed, extent
from tests.support.process import run_cli

SERVERS = extent(2, long=4)
OPERATIONS = extent(1_000, long=100_000)
CLAIM_OPERATIONS = extent(600, long=60_000)
KILLS = extent(1, long=24)
PERMISSIONS = (Permission.READ, Permission.WRITE)


def test_several_servers_lose_no_write_and_show_nothing_stale(tmp_path: Path) -> None:
    seed = chosen_seed()
    begun = time.perf_counter()
    with own_database() as store:
        history, kills = uvloop.run(_play_entries(tmp_path, seed, store))
        played = time.perf_counter()
        violations = check_entries(history)
        checked = time.perf_counter()
        print(
            f"{len(history.entries)} operations, {kills} kills in {played - begun:.0f} s,"
            f" checked in {checked - played:.0f} s: {history.counts()}"
        )
        assert not violations, f"seed {seed}: {report(violations)}"
        # A kill cuts off what one server has under way, which may be no create and no delete.
        assert_eventful(history, OPERATIONS, unanswered=(Kind.READ, Kind.UPDATE))
        assert kills >= KILLS
        _assert_verified(tmp_path, store)


async def _play_entries(data: Path, seed: int, store: str) -> tuple[History, int]:
    recorder, budget = Recorder(), Budget(OPERATIONS)
    async with open_cluster(data, seed, store, SERVERS) as cluster:
        keys = await cluster.create_keys(CLIENTS, *PERMISSIONS)
        [curator] = await cluster.create_keys(["curator"], Permission.WRITE, Permission.ADMIN)
        await cluster.start()
        await asyncio.to_thread(open_namespace, cluster.arenas[-1].port, curator)
        channels = _channels(cluster, keys, seed)
        scene = EntryScene(channels, recorder, seed)
        async with asyncio.TaskGroup() as group:
            group.create_task(_kill_now_and_then(cluster, budget, seed))
            group.create_task(scene.play(budget))
        await cluster.kill_and_restart_all()
        await scene.finish()
        for context in channels:
            context.close()
        return recorder.history, cluster.kills


def test_claims_hold_across_several_servers(tmp_path: Path) -> None:
    seed = chosen_seed()
    with own_database() as store:
        history, kills = uvloop.run(_play_claims(tmp_path, seed, store))
        assert kills >= KILLS
        judge_claims(history, seed, CLAIM_OPERATIONS)
        _assert_verified(tmp_path, store)


async def _play_claims(data: Path, seed: int, store: str) -> tuple[History, int]:
    recorder, budget = Recorder(), Budget(CLAIM_OPERATIONS)
    async with open_cluster(data, seed, store, SERVERS) as cluster:
        keys = await cluster.create_keys(CLAIMING_CLIENTS, *PERMISSIONS)
        await cluster.start()
        channels = _channels(cluster, keys, seed)
        scene = ClaimScene(channels, recorder, RealTerms(), seed)
        async with asyncio.TaskGroup() as group:
            group.create_task(_kill_now_and_then(cluster, budget, seed))
            group.create_task(scene.play(budget))
        await cluster.kill_and_restart_all()
        await scene.finish()
        for context in channels:
            context.close()
        return recorder.history, cluster.kills


def _channels(cluster: Cluster, keys: list[str], seed: int) -> list[Roamer]:
    return [Roamer(cluster.arenas, key, number, seed) for number, key in enumerate(keys)]


async def _kill_now_and_then(cluster: Cluster, budget: Budget, seed: int) -> None:
    moments = budget.moments(KILLS, random.Random(seed))
    await disturb(budget, moments, cluster.kill_and_restart_some)


def _assert_verified(data: Path, store: str) -> None:
    printed = run_cli("verify", "--data", str(data), "--store", store, check=False)
    assert printed.returncode == 0, printed.stdout + printed.stderr
