"""`memorywall tenants`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.cli.options import administer, data_option, json_option
from memorywall.cli.output import print_json, print_table
from memorywall.records.errors import ConfigurationError
from memorywall.wall.administration import create_tenant, list_tenants


@click.group()
def command() -> None:
    """Create and list tenants, between whom nothing is shared."""


@command.command()
@click.argument("name")
@data_option
def create(name: str, data: Path) -> None:
    """Make a tenant."""
    if not administer(data, lambda door: create_tenant(door, name), may_create=True):
        raise ConfigurationError("there is a tenant of this name already")
    click.echo(f"tenant {name} is there")


@command.command("list")
@data_option
@json_option
def list_(data: Path, as_json: bool) -> None:
    """List tenants."""
    names = administer(data, list_tenants)
    if as_json:
        print_json(names)
    else:
        print_table(["tenant"], ([name] for name in names))
