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
        from memorywall.assembly import migrate_store

        applied = asyncio.run(migrate_store(settings.database_url))
        said = "\n".join(f"applied {name}" for name in applied)
        click.echo(said or "the schema is up to date")
    elif not configuration.is_given("data"):
        raise ConfigurationError("give --data, or --store, the URL of the database's owner")
    if settings.encryption_key is None and not settings.key_file.exists():
        click.echo("names were not looked at: the key-encryption key is not here")
        return
    report = administer(settings, _rename)
    click.echo(f"renamed {report.entries} entries and {report.namespaces} namespaces")
    for problem in report.problems:
        click.echo(problem, err=True)
    if report.problems:
        sys.exit(1)


async def _rename(service: SharedServices) -> RenameReport:
    from tqdm import tqdm

    from memorywall.jobs.rename_names import count_entries, rename_everywhere

    size = await count_entries(service)
    with tqdm(total=size, unit="entries", desc="names", leave=False, disable=None) as bar:
        return await rename_everywhere(service, bar.update)
