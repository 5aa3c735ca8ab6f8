"""64 clients of 16 agents want the same few claims: never two at a time, never a late write."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import httpx
import uvloop

from memorywall.assembly import open_memory
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.server.app import build_app
from memorywall.service.access.api_keys import ApiKeyAuthenticator
from memorywall.service.administration.tenants import create_key
from memorywall.settings import Settings
from tests.faults.support import assert_verified
from tests.history.arena import TENANT, open_arena
from tests.history.budget import Budget, disturb
from tests.history.claim_scene import CLIENTS, ClaimScene, judge_claims
from tests.history.claimants import TTL
from tests.history.line import Line, Reply, Request
from tests.history.record import History, Recorder
from tests.history.terms import Machine, RealTerms, SetTerms
from tests.support.extent import chosen_seed, extent

OPERATIONS = extent(800, long=300_000)
OPERATIONS_IN_PROCESS = extent(2_000, long=60_000)
OPERATIONS_PER_KILL = 7_000
OPERATIONS_PER_SETTING = 120
PERMISSIONS = (Permission.READ, Permission.WRITE)


class InProcess:
    """A channel to an application in this process."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def ready(self) -> None:
        """It always is."""

    async def exchange(self, request: Request) -> Reply:
        reply = await self._client.request(
            request.method, request.path, content=request.content(), headers=request.headers()
        )
        return Reply(reply.status_code, reply.content)


def test_claims_hold_while_the_server_is_killed(tmp_path: Path) -> None:
    seed = chosen_seed()
    history, kills = uvloop.run(_play_with_kills(tmp_path, seed))
    assert kills >= 4
    judge_claims(history, seed, OPERATIONS)
    assert_verified(tmp_path)


async def _play_with_kills(data: Path, seed: int) -> tuple[History, int]:
    recorder, budget = Recorder(), Budget(OPERATIONS)
    async with open_arena(data, seed) as arena:
        keys = await arena.create_keys(CLIENTS, *PERMISSIONS)
        await arena.start()
        lines = [Line(arena.port, key, arena.up) for key in keys]
        scene = ClaimScene(lines, recorder, RealTerms(), seed)
        moments = budget.moments(max(4, OPERATIONS // OPERATIONS_PER_KILL), random.Random(seed))
        async with asyncio.TaskGroup() as group:
            group.create_task(disturb(budget, moments, arena.kill_and_restart))
            group.create_task(scene.play(budget))
        await arena.kill_and_restart()
        await scene.finish()
        for line in lines:
            line.close()
        return recorder.history, arena.kills


def test_claims_hold_while_the_clock_is_set(tmp_path: Path) -> None:
    seed = chosen_seed()
    machine = Machine()
    history = uvloop.run(_play_with_settings(tmp_path, seed, machine))
    judge_claims(history, seed, OPERATIONS_IN_PROCESS)
    assert len(machine.settings) > 10
    assert machine.settings_back > 3


async def _play_with_settings(data: Path, seed: int, machine: Machine) -> History:
    recorder, budget, chance = Recorder(), Budget(OPERATIONS_IN_PROCESS), random.Random(seed)
    terms = SetTerms(machine)
    settings = Settings(sqlite_path=data / "memory.db")
    async with open_memory(settings, clock=machine.clock) as services:
        app = build_app(services, ApiKeyAuthenticator(services))
        clients = []
        for agent in CLIENTS:
            key, _ = await create_key(services, TENANT, agent, PrincipalKind.AGENT, PERMISSIONS)
            clients.append(
                httpx.AsyncClient(
                    transport=httpx.ASGITransport(app, raise_app_exceptions=True),
                    base_url="http://memorywall.test",
                    headers={"X-API-Key": key},
                )
            )
        scene = ClaimScene([InProcess(client) for client in clients], recorder, terms, seed)
        moments = budget.moments(OPERATIONS_IN_PROCESS // OPERATIONS_PER_SETTING, chance)
        async with asyncio.TaskGroup() as group:
            group.create_task(disturb(budget, moments, lambda: _set_clock(machine, chance)))
            group.create_task(scene.play(budget))
        await scene.finish()
        for client in clients:
            await client.aclose()
    terms.settle()
    return recorder.history


async def _set_clock(machine: Machine, chance: random.Random) -> None:
    """A little forward, just to the end of new claims, past the end of all; or back."""
    steps = [chance.randint(1, 200), TTL * 1_000, TTL * 1_000 - 1, chance.randint(1, 9_000)]
    if chance.random() < 0.3:
        machine.set_back(chance.choice(steps))
    else:
        machine.set_forward(chance.choice(steps))
