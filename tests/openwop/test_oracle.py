"""Random operations of two tenants on the same references, against a model."""

from __future__ import annotations

import random
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
REFS = ("a", "b/c")
MOST_RUNS = 60


class Oracle:
    """What every memory has: ids, the newest first, with the instants of their expiry."""

    def __init__(self, service: RunningService, chance: random.Random) -> None:
        self.service = service
        self.chance = chance
        self.hosts: dict[str, Host] = {}
        self.stored: dict[tuple[str, str], list[tuple[str, int | None]]] = {
            (tenant, ref): [] for tenant in TENANTS for ref in REFS
        }
        self.ids = ["mem_none"]
        self.runs: list[tuple[str, dict[str, Any]]] = []

    async def open(self) -> None:
        for tenant in TENANTS:
            host = self.hosts[tenant] = await host_of(self.service, "ada", tenant)
            for number, ref in enumerate(REFS):
                await host.install(f"probe{number}", workflow("cross-tenant-probe", ref))

    def live(self, tenant: str, ref: str) -> list[str]:
        now = self.service.clock.now()
        return [one for one, expiry in self.stored[tenant, ref] if expiry is None or expiry > now]

    def add(self, tenant: str, ref: str, memory_id: str, expiry: int | None = None) -> None:
        self.stored[tenant, ref].insert(0, (memory_id, expiry))
        self.ids.append(memory_id)

    async def put(self, tenant: str, ref: str) -> None:
        fields, expiry = {}, None
        if self.chance.random() < 0.4:
            expiry = self.service.clock.now() + self.chance.randrange(1, 5_000)
            fields = {"expiresAt": format_instant(expiry)}
        entry = await self.hosts[tenant].put(ref, f"of {tenant}", **fields)
        self.add(tenant, ref, entry["id"], expiry)

    async def touch(self, tenant: str, ref: str) -> None:
        """Gets or deletes an id of anybody, in any memory."""
        named = self.chance.choice(self.ids)
        path, is_there = f"{memory(ref)}/{named}", named in self.live(tenant, ref)
        host = self.hosts[tenant]
        if self.chance.random() < 0.5:
            shown = await host.do("GET", path, status=200 if is_there else 404)
            missing = await host.do("GET", f"{memory(ref)}/mem_none", status=404)
            assert is_there or shown == missing
        else:
            await host.do("DELETE", path, status=204 if is_there else 404)
            kept = [one for one in self.stored[tenant, ref] if one[0] != named or not is_there]
            self.stored[tenant, ref] = kept

    async def wait(self, tenant: str, ref: str) -> None:
        self.service.clock.advance(self.chance.random() * 3)
        if self.chance.random() < 0.3:
            await run_everywhere(self.service.services, EXPIRE_JOB)

    async def run(self, tenant: str, ref: str) -> None:
        before, host = self.live(tenant, ref), self.hosts[tenant]
        body = {"workflowId": f"probe{REFS.index(ref)}"}
        run_id = (await host.do("POST", RUNS, body, 201))["runId"]
        run = await host.do("GET", f"{RUNS}/{run_id}")
        own = run["variables"]["ownerEntryId"]
        assert [one["id"] for one in run["variables"]["ownerProbe"]] == [own, *before]
        self.add(tenant, ref, own)
        self.runs.append((tenant, run))

    async def fork(self, tenant: str, ref: str) -> None:
        if not self.runs:
            return
        owner, run = self.chance.choice(self.runs)
        path, host = f"{RUNS}/{run['runId']}", self.hosts[tenant]
        if owner != tenant:
            await host.do("GET", path, status=404)
            await host.do("POST", f"{path}:fork", {"fromSeq": 0}, 404)
            return
        fork_id = (await host.do("POST", f"{path}:fork", {"fromSeq": 0}, 201))["runId"]
        fork = await host.do("GET", f"{RUNS}/{fork_id}")
        assert fork == {**run, "runId": fork_id}
        if len(self.runs) < MOST_RUNS:
            self.runs.append((tenant, fork))

    async def compact(self, tenant: str, ref: str) -> None:
        if self.chance.random() > 0.2:
            return
        live = set(self.live(tenant, ref))
        brief = [one for one in self.stored[tenant, ref] if one[1] is not None]
        lasting = live - {one for one, _ in brief}
        status = 200 if lasting else 422
        body = {"memoryRef": ref}
        found = await self.hosts[tenant].do("POST", "/v1/test/memory/compact", body, status)
        if lasting:
            assert set(found["payload"]["sourceIds"]) == lasting
            self.stored[tenant, ref] = brief
            self.add(tenant, ref, found["payload"]["outputId"])

    async def list(self, tenant: str, ref: str) -> None:
        entries = await self.hosts[tenant].list(ref)
        assert [one["id"] for one in entries] == self.live(tenant, ref)
        (other,) = set(TENANTS) - {tenant}
        assert f"of {other}" not in str(entries)


async def test_tenants_share_nothing_and_runs_are_repeated(tmp_path: Path) -> None:
    chance = random.Random(chosen_seed())
    async with open_service(tmp_path, openwop_test_seams=True) as service:
        oracle = Oracle(service, chance)
        await oracle.open()
        steps = [oracle.put, oracle.put, oracle.touch, oracle.touch, oracle.wait, oracle.run,
                 oracle.fork, oracle.compact, oracle.list]  # fmt: skip
        for _ in range(extent(120, long=20_000)):
            await chance.choice(steps)(chance.choice(TENANTS), chance.choice(REFS))
