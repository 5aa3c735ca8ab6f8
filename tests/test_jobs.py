"""Background jobs: leased, resumable, and one tenant that fails stops no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from msgspec import structs

from memorywall.jobs import embed, flush, job_runner
from memorywall.jobs.expire_entries import EXPIRE_JOB
from memorywall.jobs.job_runner import (
    JobLostError,
    JobSpec,
    StepResult,
    run_everywhere,
    run_in_tenant,
)
from memorywall.recall.document import AuthorDateFields
from memorywall.records.decision import Target, Verb
from memorywall.records.errors import MemoryAccessError
from memorywall.records.principal import Maintenance, Permission
from memorywall.records.tier import Isolation
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.maintenance import maintain
from tests.support.embedder import WordEmbedder
from tests.support.rounds import sweep
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio


class _Steps:
    """A job of so many steps, which tells what it did, by tenant and cursor."""

    def __init__(self, steps: int, *, fails_in: str = "", fails_at: str = "") -> None:
        self.log: list[tuple[str, str]] = []
        self._steps = steps
        self.fails_in, self.fails_at = fails_in, fails_at

    @property
    def spec(self) -> JobSpec:
        return JobSpec(
            name="count",
            maintenance=Maintenance.EXPIRE,
            interval=lambda context: 10.0,
            is_needed=self._is_needed,
            step=self._step,
        )

    async def _is_needed(self, context: OperationContext) -> bool:
        return True

    async def _step(self, context: OperationContext, cursor: str) -> StepResult:
        if (context.tenant, cursor) == (self.fails_in, self.fails_at):
            raise ArithmeticError
        self.log.append((context.tenant, cursor))
        number = int(cursor or 0) + 1
        return StepResult(2, str(number), number < self._steps)


async def _two_tenants(service: RunningService) -> None:
    for tenant in ("acme", "globex"):
        await service.agent("ada", tenant=tenant)


async def test_job_runs_its_steps_and_stores_the_result(tmp_path: Path) -> None:
    steps = _Steps(3)
    async with open_service(tmp_path) as service:
        job = await run_in_tenant(service.services, "default", steps.spec)
        assert job is not None
        assert (job.done, job.error, job.holder, job.cursor) == (6, "", "", "")
        assert job.ran_at == service.services.now()
        assert steps.log == [("default", ""), ("default", "1"), ("default", "2")]
        assert await run_in_tenant(service.services, "default", steps.spec) is None
        assert await run_in_tenant(service.services, "default", steps.spec, early=True) is not None
        service.clock.advance(10)
        assert await run_in_tenant(service.services, "default", steps.spec) is not None


async def test_a_tenant_that_fails_stops_no_other(tmp_path: Path) -> None:
    steps = _Steps(2, fails_in="acme")
    async with open_service(tmp_path) as service:
        await _two_tenants(service)
        assert await run_everywhere(service.services, steps.spec) == 8
        assert {tenant for tenant, _ in steps.log} == {"default", "globex"}
        failed = await service.services.store.read("acme", lambda to: to.jobs.get("count"))
        assert failed is not None
        assert (failed.error, failed.holder, failed.done) == ("ArithmeticError", "", 0)


async def test_interrupted_job_resumes(tmp_path: Path) -> None:
    steps = _Steps(4, fails_in="default", fails_at="2")
    async with open_service(tmp_path) as service:
        with pytest.raises(ArithmeticError):
            await run_in_tenant(service.services, "default", steps.spec)
        steps.fails_in = ""
        await run_in_tenant(service.services, "default", steps.spec, early=True)
        assert [cursor for _, cursor in steps.log] == ["", "1", "2", "3"]


async def test_a_run_whose_lease_was_taken_over_commits_nothing(tmp_path: Path) -> None:
    steps = _Steps(2)
    async with open_service(tmp_path) as service:
        agent = await service.agent("ada")
        made = await agent.post("/api/v1/memory", json=draft("kept", ttl="duration:PT1M"))
        assert made.status_code == 201, made.text
        spec = steps.spec

        async def step(context: OperationContext, cursor: str) -> StepResult:
            # As if this process had been held up for longer than its lease.
            jobs = context.transaction.jobs
            late = await jobs.get("count")
            assert late is not None
            service.clock.advance(job_runner.LEASE_MILLISECONDS / 1000)
            now = service.services.now()
            assert await jobs.take("count", "another", now, now) is not None
            await context.transaction.entries.touch({made.json()["id"]: now})
            return StepResult(1, "", False)

        with pytest.raises(JobLostError):
            await run_in_tenant(service.services, "default", replace(spec, step=step))
        job = await service.services.store.read("default", lambda to: to.jobs.get("count"))
        assert job is not None
        assert (job.token, job.holder) == (1, "")


async def test_a_job_may_do_its_own_maintenance_and_nothing_else(tmp_path: Path) -> None:
    steps = _Steps(1)

    async def step(context: OperationContext, cursor: str) -> StepResult:
        target = Target(tenant=context.tenant, isolation=Isolation.AGENT, owner="ada")
        for verb in (Verb.READ, Verb.UPDATE, Verb.DELETE, Verb.ADMINISTER):
            with pytest.raises(MemoryAccessError):
                context.authorize(verb, target)
        other = structs.replace(target, maintenance=Maintenance.ERASE)
        with pytest.raises(MemoryAccessError):
            context.authorize(Verb.MAINTAIN, other)
        return StepResult(0, "", False)

    async with open_service(tmp_path) as service:
        assert await run_in_tenant(service.services, "default", replace(steps.spec, step=step))


async def test_paused_sweep_keeps_expired_entries(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        agent = await service.agent("ada")
        await agent.post("/api/v1/memory", json=draft("passing", ttl="duration:PT1M"))
        service.clock.advance(61)
        await service.services.store.write(
            "default", lambda to: to.jobs.pause(EXPIRE_JOB.name, True)
        )
        assert await sweep(service.services) == 0
        await service.services.store.write(
            "default", lambda to: to.jobs.pause(EXPIRE_JOB.name, False)
        )
        assert await sweep(service.services) == 1


async def test_administrators_of_the_tenant_control_jobs_over_http(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        admin = await service.agent("root", permissions=[*Permission])
        agent = await service.agent("ada")
        await agent.post("/api/v1/memory", json=draft("passing", ttl="duration:PT1M"))
        listed = await admin.get("/api/v1/jobs")
        assert [job["name"] for job in listed.json()["jobs"]] == [
            "embed",
            "end_leases",
            "end_sessions",
            "expire",
            "judge",
            "migrate_facts",
            "prune",
            "reseal",
            "seal",
            "segments",
        ]
        paused = await admin.post("/api/v1/jobs/expire/pause")
        assert (paused.status_code, paused.json()["paused"]) == (200, True)
        service.clock.advance(61)
        ran = await admin.post("/api/v1/jobs/expire/run")
        assert (ran.status_code, ran.json()["done"]) == (200, 0)
        assert (await admin.post("/api/v1/jobs/expire/resume")).json()["paused"] is False
        ran = await admin.post("/api/v1/jobs/expire/run")
        assert (ran.json()["done"], ran.json()["error"]) == (1, None)
        assert (await admin.post("/api/v1/jobs/other/run")).status_code == 404
        assert (await admin.post("/api/v1/jobs/embed/run")).status_code == 422
        for method, path in (("GET", ""), ("POST", "/expire/run"), ("POST", "/expire/pause")):
            refused = await agent.request(method, f"/api/v1/jobs{path}")
            assert refused.status_code == 403, refused.text


async def test_a_run_without_work_is_shown_and_not_stored(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        admin = await service.agent("root", permissions=[*Permission])

        async def shown() -> tuple[str | None, int]:
            jobs = (await admin.get("/api/v1/jobs")).json()["jobs"]
            (found,) = (job for job in jobs if job["name"] == "expire")
            return found["ran_at"], found["done"]

        assert await shown() == (None, 0)
        assert await run_everywhere(service.services, EXPIRE_JOB) == 0
        first = service.services.now()
        assert await shown() == (first, 0)
        assert await service.services.store.read("default", lambda to: to.jobs.list()) == []
        await admin.post("/api/v1/memory", json=draft("passing", ttl="duration:PT1M"))
        service.clock.advance(61)
        assert await run_everywhere(service.services, EXPIRE_JOB) == 1
        worked = service.services.now()
        assert await shown() == (worked, 1)
        service.clock.advance(1)
        ran = (await admin.post("/api/v1/jobs/expire/run")).json()
        assert (ran["ran_at"], ran["done"]) == (service.services.now(), 0)
        # A job that is paused looks for nothing to do.
        await admin.post("/api/v1/jobs/expire/pause")
        service.clock.advance(1)
        await run_everywhere(service.services, EXPIRE_JOB)
        assert await shown() == (worked, 1)


async def test_embedding_without_work_is_shown(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        admin = await service.agent("root", permissions=[*Permission])
        embedding = embed.EmbeddingJob(service.services, WordEmbedder(), AuthorDateFields())
        try:
            assert await embedding.embed_some() == 0
        finally:
            embedding.close()
        jobs = (await admin.get("/api/v1/jobs")).json()["jobs"]
        assert [job["ran_at"] for job in jobs if job["name"] == "embed"] == [service.services.now()]


def _fail_in(monkeypatch: pytest.MonkeyPatch, module: ModuleType, failing: str) -> list[str]:
    """Makes the maintenance of a job fail in one tenant; returns the list of the tenants that it
    ran in."""
    ran: list[str] = []

    async def failing_maintain(
        service: SharedServices, tenant: str, *arguments: Any, **options: Any
    ) -> Any:
        if tenant == failing:
            raise ArithmeticError
        ran.append(tenant)
        return await maintain(service, tenant, *arguments, **options)

    monkeypatch.setattr(module, "maintain", failing_maintain)
    return ran


async def test_a_tenant_whose_accesses_cannot_be_stored_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_service(tmp_path) as service:
        await _two_tenants(service)
        for tenant in ("acme", "globex"):
            agent = await service.agent("ada", tenant=tenant)
            body = draft("kept", memory_type="episodic")
            made = (await agent.post("/api/v1/memory", json=body)).json()
            await agent.get(f"/api/v1/memory/{made['id']}")
        tracker = service.services.usage_tracker
        assert {tenant for tenant, _ in tracker.owners()} == {"acme", "globex"}
        _fail_in(monkeypatch, flush, "acme")
        await flush.flush_accesses(service.services)
        assert {tenant for tenant, _ in tracker.owners()} == {"acme"}
        added = await flush.flush_uses(service.services)
        assert {tenant for tenant, uses in added.items() if uses} == {"globex"}
        left = tracker.drain_uses()
        assert [(tenant, list(uses.values())) for tenant, uses in left.items()] == [("acme", [1])]


async def test_a_tenant_that_cannot_be_embedded_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_service(tmp_path) as service:
        await _two_tenants(service)
        for tenant in ("acme", "globex"):
            agent = await service.agent("ada", tenant=tenant)
            await agent.post("/api/v1/memory", json=draft("kept"))
        ran = _fail_in(monkeypatch, embed, "acme")
        embedder = WordEmbedder()
        embedding = embed.EmbeddingJob(service.services, embedder, AuthorDateFields())
        try:
            with pytest.raises(ArithmeticError):
                await embedding.embed_some()
            assert "globex" in ran
            assert len(embedder.texts) == 1
            # The failed tenant pauses, and the others do not.
            agent = await service.agent("ada", tenant="globex")
            await agent.post("/api/v1/memory", json=draft("another"))
            assert await embedding.embed_some() == 1
            monkeypatch.undo()
            assert await embedding.embed_some() == 0
            service.clock.advance(5)
            assert await embedding.embed_some() == 1
        finally:
            embedding.close()
