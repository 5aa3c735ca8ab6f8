"""`memorywall capacity`."""

from __future__ import annotations

import click

from memorywall.cli.options import administer, storage_options, tenant_option
from memorywall.records.errors import ConfigurationError
from memorywall.service.administration.tenants import get_capacity, set_capacity
from memorywall.settings import Settings


@click.command()
@storage_options
@tenant_option
@click.option("--agent", required=True, help="The agent.")
@click.option("--default", "to_default", is_flag=True, help="Reset the agent to the default.")
@click.argument("capacity", type=click.IntRange(min=1), required=False)
def command(
    storage: Settings, tenant: str, agent: str, to_default: bool, capacity: int | None
) -> None:
    """Show the episodic capacity of an agent, or set it to CAPACITY entries."""
    if to_default and capacity is not None:
        raise ConfigurationError("give a capacity or --default, not both")
    if to_default or capacity is not None:
        administer(storage, lambda context: set_capacity(context, tenant, agent, capacity))
    click.echo(administer(storage, lambda context: get_capacity(context, tenant, agent)))
