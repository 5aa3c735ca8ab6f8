"""`memorywall forget`."""

from __future__ import annotations

from dataclasses import replace

import click

from memorywall.cli.options import administer, place_options, require_database, tenant_option
from memorywall.cli.output import print_table
from memorywall.settings import Settings
from memorywall.wall.forgetting import forget
from memorywall.wall.limits import check_agent

_ERASE_WITHIN = 0.5
_PATIENCE = 120.0


@click.command()
@place_options
@tenant_option
@click.option("--agent", required=True, help="The agent.")
@click.option("--yes", is_flag=True, help="Do not ask before.")
def command(place: Settings, tenant: str, agent: str, yes: bool) -> None:
    """Forget an agent: delete all that is behind its wall and destroy its data keys.

    Its entries in every tier, its kept replies and its limits go for good, and its API keys are
    revoked. What it wrote to shared memory stays, and so does the event log. Run it again when it
    was interrupted.
    """
    check_agent("--agent", agent)
    require_database(place)
    if not yes:
        click.confirm(f"Forget {agent} of the tenant {tenant} for good?", abort=True)
    # Where no server runs there is nobody to be considerate of.
    place = replace(place, erase_within=_ERASE_WITHIN)
    gone = administer(
        place, lambda door: forget(door, tenant, agent, patience=_PATIENCE), erases=True
    )
    rows = [
        *((f"{tier.value} entries", number) for tier, number in gone.entries.items()),
        ("kept replies", gone.kept_replies),
        ("limits", gone.limits),
        ("API keys revoked", gone.api_keys),
        ("data keys destroyed", gone.data_keys),
    ]
    print_table(("what", "gone"), rows)
    if not gone.erased:
        click.echo("The next start of the server overwrites the rest of the bytes.", err=True)
    click.echo(
        "Shared memory, intents with their archives, the event log and backups keep what they"
        " hold; see What is gone when in docs/operations.md.",
        err=True,
    )
