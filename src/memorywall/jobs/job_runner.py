"""Runs background jobs, tenant by tenant.

A job has a function for one bounded step in a transaction, and a record with its next run. A lease
with a fencing token, which each step checks in its own transaction, lets one process at a time run
the job. Each step stores the job's progress, so that another process can resume it after a crash.
The job runs as the system principal of its maintenance, which has no other permission.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from memorywall.jobs.tenant_failures import isolate_tenant
from memorywall.records.clock import format_instant
from memorywall.records.principal import Maintenance
from memorywall.records.scheduled_job import ScheduledJob
from memorywall.service.administration.tenants import list_tenants
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.maintenance import inspect, maintain

LEASE_MILLISECONDS = 60_000
"""The time after its last step for which a dead process still holds a job."""
_HOLDER = secrets.token_hex(8)


class JobLostError(Exception):
    """Another process has taken over the job; the current step was rolled back."""


class StepResult(NamedTuple):
    """The result of a step.

    done: the number of processed items
    cursor: the progress of the job
    has_more: whether there is a next step
    """

    done: int
    cursor: str
    has_more: bool


JobStep = Callable[[OperationContext, str], Awaitable[StepResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A background job.

    maintenance: the permission of its system principal
    interval: seconds from one run to the next
    is_needed: returns, without changes, whether a run would do something; an idle tenant costs only
        this read
    step: does a part of the work, from a cursor on, in one transaction
    prepare: returns the next step from a cursor on, after work that must be outside of a
        transaction, such as a request to a model; None if `step` needs none. It must end before the
        lease of the job does.
    """

    name: str
    maintenance: Maintenance
    interval: Callable[[SharedServices], float]
    is_needed: Callable[[OperationContext], Awaitable[bool]]
    step: JobStep
    prepare: Callable[[SharedServices, str, str], Awaitable[JobStep]] | None = None


async def run_everywhere(service: SharedServices, spec: JobSpec, *, early: bool = False) -> int:
    """Runs a job in all tenants in which it is due and needed; returns the number of processed
    items.

    A failure in a tenant is stored in its job and does not affect other tenants.

    early: whether to run the job even if it is not due
    """
    done = 0
    for tenant in await list_tenants(service):
        with isolate_tenant(spec.name, tenant):
            job = await run_in_tenant(service, tenant, spec, early=early)
            done += 0 if job is None else job.done
    return done


async def run_in_tenant(
    service: SharedServices,
    tenant: str,
    spec: JobSpec,
    *,
    early: bool = False,
    holder: str = _HOLDER,
) -> ScheduledJob | None:
    """Runs a job in one tenant to completion; None if it must not run or has nothing to do.

    Raises the error of a step after storing it, and JobLostError.
    """
    try:
        return await _try_in_tenant(service, tenant, spec, early=early, holder=holder)
    except Exception:
        service.job_runs.note_error(spec.name)
        raise


async def _try_in_tenant(
    service: SharedServices, tenant: str, spec: JobSpec, *, early: bool, holder: str
) -> ScheduledJob | None:
    if not await inspect(service, tenant, spec.maintenance, spec.is_needed):
        service.job_runs.note_idle(spec.name, tenant, service.clock.now())
        return None

    async def take(context: OperationContext) -> ScheduledJob | None:
        until = format_instant(context.moment + LEASE_MILLISECONDS)
        return await context.transaction.jobs.take(
            spec.name, holder, context.now, until, early=early
        )

    job = await maintain(service, tenant, spec.maintenance, take)
    if job is None:
        return None
    run = _Run(service, tenant, spec, job, service.clock.now())
    try:
        await run.all_steps()
    except Exception as error:
        # The error of the step matters more than an error of this statement.
        with suppress(Exception):
            await run.finish(type(error).__name__)
        raise
    service.job_runs.note(spec.name, service.clock.now())
    return await run.finish("")


class _Run:
    """One run of a job under its lease."""

    def __init__(
        self, service: SharedServices, tenant: str, spec: JobSpec, job: ScheduledJob, started: int
    ) -> None:
        self._services = service
        self._tenant = tenant
        self._spec = spec
        self._job = job
        self._started = started
        self._done = 0

    async def all_steps(self) -> None:
        """Runs steps until none is left."""
        result = StepResult(0, self._job.cursor, True)
        while result.has_more:
            cursor, work = result.cursor, self._spec.step
            if self._spec.prepare is not None:
                work = await self._spec.prepare(self._services, self._tenant, cursor)

            async def step(
                context: OperationContext, cursor: str = cursor, work: JobStep = work
            ) -> StepResult:
                result = await work(context, cursor)
                until = format_instant(context.moment + LEASE_MILLISECONDS)
                jobs, name, token = context.transaction.jobs, self._spec.name, self._job.token
                # After a completed run the next one starts from the beginning.
                noted = result.cursor if result.has_more else ""
                if not await jobs.keep(name, token, noted, until):
                    raise JobLostError
                return result

            result = await maintain(
                self._services, self._tenant, self._spec.maintenance, step, long=True
            )
            self._done += result.done

    async def finish(self, error: str) -> ScheduledJob | None:
        """Ends the lease and stores the result of the run."""

        async def script(context: OperationContext) -> ScheduledJob | None:
            # A little early, so that a process that checks once per interval always finds the job
            # due.
            due = self._started + round(self._spec.interval(self._services) * 900)
            jobs, name = context.transaction.jobs, self._spec.name
            await jobs.finish(
                name,
                self._job.token,
                due=format_instant(due),
                done=self._done,
                error=error,
                now=context.now,
            )
            return await jobs.get(name)

        return await maintain(self._services, self._tenant, self._spec.maintenance, script)


def find_spec(specs: Iterable[JobSpec], name: str) -> JobSpec | None:
    """Returns the job with this name, or None."""
    return next((spec for spec in specs if spec.name == name), None)
