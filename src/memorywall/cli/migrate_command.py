"""`memorywall migrate`."""

from __future__ import annotations

import asyncio

import click

from memorywall.assembly import migrate_store
from memorywall.cli.store_option import store_option
from memorywall.records.errors import ConfigurationError


@click.command()
@store_option
def command(store: str | None) -> None:
    """Migrate the schema of a PostgreSQL database, as its owner.

    A server does this itself at its start, if its user has the right. Servers may run meanwhile.
    """
    if not store:
        raise ConfigurationError("give --store, the URL of the database's owner")
    applied = asyncio.run(migrate_store(store))
    for name in applied:
        click.echo(f"applied {name}")
    if not applied:
        click.echo("the schema is up to date")
