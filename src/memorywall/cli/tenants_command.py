"""`memorywall tenants`."""

from __future__ import annotations

import click

from memorywall.cli.options import administer, json_option, place_options
from memorywall.cli.output import print_json, print_table
from memorywall.records.errors import ConfigurationError
from memorywall.settings import Settings
from memorywall.wall.administration import create_tenant, list_tenants


@click.group()
def command() -> None:
    """Create and list tenants, between whom nothing is shared."""


@command.command()
@click.argument("name")
@place_options
def create(name: str, place: Settings) -> None:
    """Make a tenant."""
    if not administer(place, lambda door: create_tenant(door, name), may_create=True):
        raise ConfigurationError("there is a tenant of this name already")
    click.echo(f"tenant {name} is there")


@command.command("list")
@place_options
@json_option
def list_(place: Settings, as_json: bool) -> None:
    """List tenants."""
    names = administer(place, list_tenants)
    if as_json:
        print_json(names)
    else:
        print_table(["tenant"], ([name] for name in names))
