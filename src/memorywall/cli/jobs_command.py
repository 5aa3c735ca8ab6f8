"""`memorywall jobs`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from memorywall.cli.options import administer, json_option, storage_options
from memorywall.cli.output import print_json, print_table
from memorywall.jobs import job_control
from memorywall.records.principal import Maintenance
from memorywall.records.scheduled_job import ScheduledJob
from memorywall.service.administration import list_tenants
from memorywall.service.context import ServiceContext
from memorywall.service.maintenance import inspect, maintain
from memorywall.settings import Settings
from memorywall.wire.jobs import job_view

_tenant_option = click.option("--tenant", help="Only this tenant; all by default.")


@click.group()
def command() -> None:
    """Show, run, pause and resume background jobs."""


@command.command("list")
@storage_options
@_tenant_option
@json_option
def list_(storage: Settings, tenant: str | None, as_json: bool) -> None:
    """List the background jobs of each tenant."""

    async def work(service: ServiceContext) -> list[ScheduledJob]:
        found = []
        for name in await _tenants(service, tenant):
            found += await inspect(service, name, Maintenance.ADMINISTER, job_control.list_jobs)
        return found

    _print(administer(storage, work), as_json)


@command.command()
@click.argument("name")
@storage_options
@_tenant_option
def run(name: str, storage: Settings, tenant: str | None) -> None:
    """Run the job NAME now, even if it is not due."""

    async def work(service: ServiceContext) -> int:
        done = 0
        for one in await _tenants(service, tenant):
            job = await job_control.run_job(service, one, name)
            done += 0 if job is None else job.done
        return done

    click.echo(f"{administer(storage, work):,} done")


@command.command()
@click.argument("name")
@storage_options
@_tenant_option
def pause(name: str, storage: Settings, tenant: str | None) -> None:
    """Pause the job NAME; a run that has begun is not interrupted."""
    _set_paused(storage, tenant, name, True)


@command.command()
@click.argument("name")
@storage_options
@_tenant_option
def resume(name: str, storage: Settings, tenant: str | None) -> None:
    """Resume the job NAME."""
    _set_paused(storage, tenant, name, False)


def _set_paused(storage: Settings, tenant: str | None, name: str, paused: bool) -> None:
    async def work(service: ServiceContext) -> list[ScheduledJob]:
        return [
            await maintain(
                service,
                one,
                Maintenance.ADMINISTER,
                lambda context: job_control.pause_job(context, name, paused),
            )
            for one in await _tenants(service, tenant)
        ]

    _print(administer(storage, work), False)


async def _tenants(service: ServiceContext, tenant: str | None) -> list[str]:
    return await list_tenants(service) if tenant is None else [tenant]


def _print(jobs: Iterable[ScheduledJob], as_json: bool) -> None:
    if as_json:
        print_json([{"tenant": job.tenant, "job": job_view(job)} for job in jobs])
        return
    rows = (
        (
            job.tenant,
            job.name,
            "paused" if job.paused else "running" if job.holder else "",
            job.ran_at,
            job.done,
            job.error,
        )
        for job in jobs
    )
    print_table(["tenant", "job", "state", "last run", "done", "error"], rows)
