"""Random operations of two tenants on the same references, all at once, against a model."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from memorywall.jobs.expire_entries import EXPIRE_JOB
from memorywall.jobs.job_runner import run_everywhere
from memorywall.records.clock import format_instant
from tests.openwop.host import RUNS, Host, host_of, memory, workflow
from tests.support.extent import chosen_seed, extent
from tests.support.service import RunningService, open_service

pytestmark = pytest.mark.anyio

TENANTS = ("default", "acme")
REFS = ("a", "b/c", *(f"team/{number}" for number in range(8)))
MOST_RUNS = 60
STEPS_AT_ONCE = 2
"""The steps of each memory between two changes of the clock."""


@dataclass
class Known:
    """What the lanes of both tenants know: ids of anybody's entries, and runs with their tenant."""

    ids: list[str] = field(default_factory=lambda: ["mem_none"])
    runs: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


class Lane:
    """The operations on one memory of a tenant, one after the other.

    stored: the ids of its entries, the newest first, with the instants of their expiry
    """

    def __init__(self, service: RunningService, host: Host, place: tuple[str, int],
                 known: Known, chance: random.Random) -> None:  # fmt: skip
        self.service = service
        self.host = host
        self.tenant, number = place
        self.ref = REFS[number]
        self.workflow = f"probe{number}"
        self.known = known
        self.chance = chance
        self.stored: list[tuple[str, int | None]] = []

    async def step(self) -> None:
        steps = [self.put, self.put, self.touch, self.touch, self.run, self.fork, self.compact,
                 self.list]  # fmt: skip
        await self.chance.choice(steps)()

    def live(self) -> list[str]:
        now = self.service.clock.now()
        return [one for one, expiry in self.stored if expiry is None or expiry > now]

    def add(self, memory_id: str, expiry: int | None = None) -> None:
        self.stored.insert(0, (memory_id, expiry))
        self.known.ids.append(memory_id)

    async def put(self) -> None:
        fields, expiry = {}, None
        if self.chance.random() < 0.4:
            expiry = self.service.clock.now() + self.chance.randrange(1, 5_000)
            fields = {"expiresAt": format_instant(expiry)}
        entry = await self.host.put(self.ref, f"of {self.tenant}", **fields)
        self.add(entry["id"], expiry)

    async def touch(self) -> None:
        """Gets or deletes an id of anybody."""
        named = self.chance.choice(self.known.ids)
        path, is_there = f"{memory(self.ref)}/{named}", named in self.live()
        if self.chance.random() < 0.5:
            shown = await self.host.do("GET", path, status=200 if is_there else 404)
            missing = await self.host.do("GET", f"{memory(self.ref)}/mem_none", status=404)
            assert is_there or shown == missing
        else:
            await self.host.do("DELETE", path, status=204 if is_there else 404)
            self.stored = [one for one in self.stored if one[0] != named or not is_there]

    async def run(self) -> None:
        before = self.live()
        run_id = (await self.host.do("POST", RUNS, {"workflowId": self.workflow}, 201))["runId"]
        run = await self.host.do("GET", f"{RUNS}/{run_id}")
        own = run["variables"]["ownerEntryId"]
        assert [one["id"] for one in run["variables"]["ownerProbe"]] == [own, *before]
        self.add(own)
        self.known.runs.append((self.tenant, run))

    async def fork(self) -> None:
        """Replays a run of anybody."""
        if not self.known.runs:
            return
        owner, run = self.chance.choice(self.known.runs)
        path = f"{RUNS}/{run['runId']}"
        if owner != self.tenant:
            await self.host.do("GET", path, status=404)
            await self.host.do("POST", f"{path}:fork", {"fromSeq": 0}, 404)
            return
        fork_id = (await self.host.do("POST", f"{path}:fork", {"fromSeq": 0}, 201))["runId"]
        fork = await self.host.do("GET", f"{RUNS}/{fork_id}")
        assert fork == {**run, "runId": fork_id}
        if len(self.known.runs) < MOST_RUNS:
            self.known.runs.append((self.tenant, fork))

    async def compact(self) -> None:
        if self.chance.random() > 0.2:
            return
        brief = [one for one in self.stored if one[1] is not None]
        lasting = set(self.live()) - {one for one, _ in brief}
        status = 200 if lasting else 422
        body = {"memoryRef": self.ref}
        found = await self.host.do("POST", "/v1/test/memory/compact", body, status)
        if lasting:
            assert set(found["payload"]["sourceIds"]) == lasting
            self.stored = brief
            self.add(found["payload"]["outputId"])

    async def list(self) -> None:
        entries = await self.host.list(self.ref)
        assert [one["id"] for one in entries] == self.live()
        (other,) = set(TENANTS) - {self.tenant}
        assert f"of {other}" not in str(entries)


async def test_tenants_share_nothing_and_runs_are_repeated(tmp_path: Path) -> None:
    chance, known, lanes = random.Random(chosen_seed()), Known(), list[Lane]()
    async with open_service(tmp_path, openwop_test_seams=True) as service:
        for tenant in TENANTS:
            host = await host_of(service, "ada", tenant)
            for number, ref in enumerate(REFS):
                await host.install(f"probe{number}", workflow("cross-tenant-probe", ref))
                own = random.Random(chance.random())
                lanes.append(Lane(service, host, (tenant, number), known, own))

        async def go_on(lane: Lane) -> None:
            for _ in range(STEPS_AT_ONCE):
                await lane.step()

        for _ in range(extent(480, long=20_000) // (STEPS_AT_ONCE * len(lanes))):
            await asyncio.gather(*map(go_on, lanes))
            service.clock.advance(chance.random() * 3)
            if chance.random() < 0.3:
                await run_everywhere(service.services, EXPIRE_JOB)
