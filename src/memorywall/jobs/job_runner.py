"""Runs background jobs, tenant by tenant.

A job is a function that does a bounded step in a transaction and a record that says when it is due.
It is leased: whichever process takes it runs it alone, under a fencing token that each step checks
in its own transaction. A step notes how far the job has come, so whoever takes it after a crash
goes on there. It runs as the system principal of its kind of maintenance, which may do nothing
else.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from memorywall.records.clock import format_instant
from memorywall.records.principal import Maintenance
from memorywall.records.scheduled_job import ScheduledJob
from memorywall.service.administration import list_tenants
from memorywall.service.context import ServiceContext
from memorywall.service.maintenance import inspect, maintain
from memorywall.service.operation_context import OperationContext

LEASE_MILLISECONDS = 60_000
"""For how long after its last step a process that is gone keeps a job from others."""
_log = logging.getLogger("memorywall.jobs")
_HOLDER = secrets.token_hex(8)


class JobLostError(Exception):
    """Another process has taken the job over; what this one was about to do was undone."""


class StepResult(NamedTuple):
    """What came of a step.

    done: how many things it has worked on
    cursor: how far the job has come
    has_more: whether there is a next step
    """

    done: int
    cursor: str
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A background job.

    maintenance: what its system principal may do
    interval: seconds from one run to the next
    is_needed: looks, without changing anything, whether a run would do something; a tenant in which
        nothing is to be done costs this one read
    step: does some of the work, from a cursor on, in one transaction
    """

    name: str
    maintenance: Maintenance
    interval: Callable[[ServiceContext], float]
    is_needed: Callable[[OperationContext], Awaitable[bool]]
    step: Callable[[OperationContext, str], Awaitable[StepResult]]


async def run_everywhere(service: ServiceContext, spec: JobSpec, *, early: bool = False) -> int:
    """Runs a job in all tenants where it is due and needed; returns how many things were done.

    A tenant in which it fails is noted in its job and stops no other.

    early: whether it is run even where it is not due
    """
    done = 0
    for tenant in await list_tenants(service):
        try:
            job = await run_in_tenant(service, tenant, spec, early=early)
        except Exception as error:
            _log.warning(
                "job failed",
                extra={"job": spec.name, "tenant": tenant, "error": type(error).__name__},
            )
        else:
            done += 0 if job is None else job.done
    return done


async def run_in_tenant(
    service: ServiceContext,
    tenant: str,
    spec: JobSpec,
    *,
    early: bool = False,
    holder: str = _HOLDER,
) -> ScheduledJob | None:
    """Runs a job in one tenant to its end; None where it was not to be run.

    Raises what a step raises, after it is noted, and JobLostError.
    """
    if not await inspect(service, tenant, spec.maintenance, spec.is_needed):
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
        # The error of the step matters more than one of this.
        with suppress(Exception):
            await run.finish(type(error).__name__)
        raise
    return await run.finish("")


class _Run:
    """One run of a job, under the lease with which it was taken."""

    def __init__(
        self, service: ServiceContext, tenant: str, spec: JobSpec, job: ScheduledJob, started: int
    ) -> None:
        self._context = service
        self._tenant = tenant
        self._spec = spec
        self._job = job
        self._started = started
        self._done = 0

    async def all_steps(self) -> None:
        """Runs steps until none is left."""
        result = StepResult(0, self._job.cursor, True)
        while result.has_more:
            cursor = result.cursor

            async def step(context: OperationContext, cursor: str = cursor) -> StepResult:
                result = await self._spec.step(context, cursor)
                until = format_instant(context.moment + LEASE_MILLISECONDS)
                jobs, name, token = context.transaction.jobs, self._spec.name, self._job.token
                # A run that ends starts the next one from the beginning.
                noted = result.cursor if result.has_more else ""
                if not await jobs.keep(name, token, noted, until):
                    raise JobLostError
                return result

            result = await maintain(
                self._context, self._tenant, self._spec.maintenance, step, long=True
            )
            self._done += result.done

    async def finish(self, error: str) -> ScheduledJob | None:
        """Ends the lease and notes what came of the run."""

        async def script(context: OperationContext) -> ScheduledJob | None:
            # A little early, so that a process that looks once an interval always finds it due.
            due = self._started + round(self._spec.interval(self._context) * 900)
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

        return await maintain(self._context, self._tenant, self._spec.maintenance, script)


def find_spec(specs: Iterable[JobSpec], name: str) -> JobSpec | None:
    """The job with this name, or None."""
    return next((spec for spec in specs if spec.name == name), None)
