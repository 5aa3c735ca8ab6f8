"""`memorywall capacity`."""

from __future__ import annotations

import click

from memorywall.cli.options import administer, place_options, tenant_option
from memorywall.records.errors import ConfigurationError
from memorywall.settings import Settings
from memorywall.wall.administration import get_capacity, set_capacity


@click.command()
@place_options
@tenant_option
@click.option("--agent", required=True, help="The agent.")
@click.option("--default", "to_default", is_flag=True, help="Take the agent's own setting back.")
@click.argument("capacity", type=click.IntRange(min=1), required=False)
def command(
    place: Settings, tenant: str, agent: str, to_default: bool, capacity: int | None
) -> None:
    """Show how many episodic entries an agent may have, or set it to CAPACITY."""
    if to_default and capacity is not None:
        raise ConfigurationError("give a capacity or --default, not both")
    if to_default or capacity is not None:
        administer(place, lambda door: set_capacity(door, tenant, agent, capacity))
    click.echo(administer(place, lambda door: get_capacity(door, tenant, agent)))
