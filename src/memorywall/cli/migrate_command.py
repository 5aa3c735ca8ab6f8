"""`memorywall migrate`."""

from __future__ import annotations

import asyncio

import click

from memorywall.assembly import migrate_store
from memorywall.cli.setting_options import configured_by
from memorywall.configuration.reader import Configuration
from memorywall.records.errors import ConfigurationError


@click.command()
@configured_by("database_url")
def command(configuration: Configuration) -> None:
    """Migrate the schema of a PostgreSQL database, as its owner.

    A server does this itself at its start, if its user has the right. Servers may run meanwhile.
    """
    store = configuration.settings.database_url
    if store is None:
        raise ConfigurationError("give --store, the URL of the database's owner")
    applied = asyncio.run(migrate_store(store))
    for name in applied:
        click.echo(f"applied {name}")
    if not applied:
        click.echo("the schema is up to date")
