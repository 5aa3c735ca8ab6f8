"""`memorywall migrate`."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from memorywall.cli.options import administer
from memorywall.cli.setting_options import configured_by
from memorywall.configuration.reader import Configuration
from memorywall.records.errors import ConfigurationError

if TYPE_CHECKING:
    from memorywall.jobs.rename_names import RenameReport
    from memorywall.service.requests.services import SharedServices

_NO_KEY = (
    "names were not looked at, because the key-encryption key is not here: give it to rename what"
    " older versions stored in other forms than NFC"
)


@click.command()
@configured_by("data", "database_url")
def command(configuration: Configuration) -> None:
    """Migrate the schema of a PostgreSQL database, as its owner, and names to NFC.

    A server migrates the schema itself at its start, if its user has the right. Entries and
    namespaces whose names older versions stored in another form, such as NFD, are renamed, with
    events. Those whose new name is taken stay and are listed. Servers may run meanwhile, and the
    command may be repeated, also after an interruption. Exit code 1 when something stays.
    """
    settings = configuration.settings
    if settings.database_url is not None:
        _migrate_schema(settings.database_url)
    elif not configuration.is_given("data"):
        raise ConfigurationError("give --data, or --store, the URL of the database's owner")
    if settings.encryption_key is None and not settings.key_file.exists():
        click.echo(_NO_KEY, err=True)
        return
    report = administer(settings, _rename_everywhere)
    click.echo(f"renamed {report.entries} entries and {report.namespaces} namespaces")
    for problem in report.problems:
        click.echo(problem, err=True)
    if report.problems:
        sys.exit(1)


def _migrate_schema(url: str) -> None:
    from memorywall.assembly import migrate_store

    applied = asyncio.run(migrate_store(url))
    for name in applied:
        click.echo(f"applied {name}")
    if not applied:
        click.echo("the schema is up to date")


async def _rename_everywhere(service: SharedServices) -> RenameReport:
    from tqdm import tqdm

    from memorywall.jobs.rename_names import RenameReport, count_entries, rename_names
    from memorywall.service.administration.tenants import list_tenants

    total = RenameReport()
    for tenant in await list_tenants(service):
        size = await count_entries(service, tenant)
        with tqdm(total=size, unit="entries", desc=tenant, leave=False, disable=None) as bar:
            total = total.plus(await rename_names(service, tenant, bar.update))
    return total
