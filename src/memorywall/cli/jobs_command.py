"""`memorywall jobs`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from memorywall.cli.options import administer, place_options, print_result
from memorywall.cli.output import as_table
from memorywall.records.errors import ConfigurationError
from memorywall.records.principal import Maintenance
from memorywall.records.scheduled_job import ScheduledJob
from memorywall.settings import Settings
from memorywall.wire.jobs import JobResponse, job_view

if TYPE_CHECKING:
    from memorywall.sdk.client import Client
    from memorywall.service.requests.operation_context import OperationContext
    from memorywall.service.requests.services import SharedServices

    Place = Client | Settings

_tenant_option = click.option(
    "--tenant", help="Only this tenant of a store; all by default. A key is of one tenant."
)


@dataclass(frozen=True, slots=True)
class TenantJob:
    """A job of a tenant."""

    tenant: str
    job: JobResponse


def _state(one: TenantJob) -> str:
    return "paused" if one.job.paused else "running" if one.job.running else ""


show_jobs = as_table(
    "tenant", "job=job.name", ("state", _state), "last run=job.ran_at", "done=job.done",
    "error=job.error",
)  # fmt: skip


@click.group()
def command() -> None:
    """Show, run, pause and resume background jobs.

    Asks a server, or opens the store that --data or --store names, also beside a server. Only the
    server shows the last run of a job that found nothing to do.
    """


@command.command("list")
@place_options
@_tenant_option
@print_result(show_jobs)
def list_(place: Place, tenant: str | None) -> Sequence[TenantJob]:
    """List the background jobs of each tenant."""

    async def read(service: SharedServices, one: str) -> list[ScheduledJob]:
        from memorywall.jobs.job_control import list_jobs
        from memorywall.service.runner.maintenance import inspect

        return await inspect(service, one, Maintenance.ADMINISTER, list_jobs)

    return _control(place, tenant, read, lambda client: client.jobs.list())


@command.command()
@click.argument("name")
@place_options
@_tenant_option
def run(name: str, place: Place, tenant: str | None) -> None:
    """Run the job NAME now, even if it is not due."""

    async def run_job(service: SharedServices, one: str) -> list[ScheduledJob]:
        from memorywall.jobs import job_control
        from memorywall.service.runner.maintenance import inspect

        await job_control.run_job(service, one, name)
        find = partial(job_control.find_job, name=name)
        return [await inspect(service, one, Maintenance.ADMINISTER, find)]

    jobs = _control(place, tenant, run_job, lambda client: [client.jobs.run(name)])
    ran = [one.job.done for one in jobs if not (one.job.paused or one.job.running)]
    if ran:
        click.echo(f"{sum(ran):,} done")
    if paused := [one.tenant for one in jobs if one.job.paused]:
        raise ConfigurationError(
            f"{name} is paused in tenant {', '.join(paused)};"
            f" `memorywall jobs resume {name}` resumes it"
        )
    if len(ran) < len(jobs):
        raise ConfigurationError(f"another process runs {name} now")


@command.command()
@click.argument("name")
@place_options
@_tenant_option
def pause(name: str, place: Place, tenant: str | None) -> None:
    """Pause the job NAME; a run that has begun is not interrupted."""
    _set_paused(place, tenant, name, True)


@command.command()
@click.argument("name")
@place_options
@_tenant_option
def resume(name: str, place: Place, tenant: str | None) -> None:
    """Resume the job NAME."""
    _set_paused(place, tenant, name, False)


def _set_paused(place: Place, tenant: str | None, name: str, paused: bool) -> None:
    async def pause_job(context: OperationContext) -> ScheduledJob:
        from memorywall.jobs import job_control

        return await job_control.pause_job(context, name, paused)

    async def change(service: SharedServices, one: str) -> list[ScheduledJob]:
        from memorywall.service.runner.maintenance import maintain

        return [await maintain(service, one, Maintenance.ADMINISTER, pause_job)]

    def ask(client: Client) -> list[JobResponse]:
        return [client.jobs.pause(name) if paused else client.jobs.resume(name)]

    show_jobs(_control(place, tenant, change, ask))


def _control(
    place: Place,
    tenant: str | None,
    in_store: Callable[[SharedServices, str], Awaitable[Iterable[ScheduledJob]]],
    on_server: Callable[[Client], Iterable[JobResponse]],
) -> Sequence[TenantJob]:
    """Returns the jobs of the tenant of a server's client, or of one tenant or all of a store.

    in_store: returns the jobs of a tenant
    """
    if not isinstance(place, Settings):
        if tenant is not None:
            raise click.UsageError("--tenant is for --data and --store: a key is of one tenant")
        own = place.whoami().tenant
        return [TenantJob(own, job) for job in on_server(place)]

    async def work(service: SharedServices) -> list[TenantJob]:
        from memorywall.service.administration.tenants import known_tenant, list_tenants

        names = [await known_tenant(service, tenant)] if tenant else await list_tenants(service)
        return [
            TenantJob(name, job_view(job))
            for name in names
            for job in await in_store(service, name)
        ]

    return administer(place, work)
