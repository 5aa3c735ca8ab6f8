"""`memorywall tenants`."""

from __future__ import annotations

import click

from memorywall.cli.options import administer, json_option, storage_options
from memorywall.cli.output import print_json, print_table
from memorywall.records.errors import ConfigurationError
from memorywall.service.administration import create_tenant, list_tenants
from memorywall.settings import Settings


@click.group()
def command() -> None:
    """Create and list tenants, which are isolated from each other."""


@command.command()
@click.argument("name")
@storage_options
def create(name: str, storage: Settings) -> None:
    """Create a tenant."""
    if not administer(storage, lambda context: create_tenant(context, name), may_create=True):
        raise ConfigurationError("there is a tenant of this name already")
    click.echo(f"tenant {name} is there")


@command.command("list")
@storage_options
@json_option
def list_(storage: Settings, as_json: bool) -> None:
    """List tenants."""
    names = administer(storage, list_tenants)
    if as_json:
        print_json(names)
    else:
        print_table(["tenant"], ([name] for name in names))
