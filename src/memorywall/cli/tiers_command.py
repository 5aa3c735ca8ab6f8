"""`memorywall tiers`."""

from __future__ import annotations

from typing import Any

import click

from memorywall.cli.client_command import Client, client_command, client_options, open_client
from memorywall.cli.options import json_option
from memorywall.cli.output import as_table, print_json
from memorywall.cli.table_options import given_options, table_options
from memorywall.records.tier import Eviction, Tier
from memorywall.wire.kinds import EvictRequest, EvictResponse, TierLimitsRequest, TierResponse

_TIERS = as_table(
    "tier=memory_type", "capacity|none", "per=capacity_scope", "ttl=default_ttl|none",
    "writes=admission", "reads=access", "eviction", "lasts=lifetime",
    ("versions", lambda tier: "kept" if tier.versioned else "not kept"),
)  # fmt: skip
_tier_argument = click.argument("memory_type", type=click.Choice([tier.value for tier in Tier]))


@click.group(invoke_without_command=True)
@client_options
@json_option
@click.pass_context
def command(context: click.Context, /, as_json: bool, **place: Any) -> None:
    """Show the tiers and their properties, narrow one for the tenant, or evict entries."""
    if context.invoked_subcommand is None:
        with open_client(**place) as client:
            (print_json if as_json else _TIERS)(client.tiers())


def _show_tier(tier: TierResponse) -> None:
    _TIERS([tier])


@client_command(command, _show_tier, name="set")
@_tier_argument
@click.option("--capacity", type=click.IntRange(min=0), help="Entries; at most the server's.")
@click.option("--default-ttl", help="The ttl of entries without one, such as 30d.")
@click.option(
    "--eviction",
    type=click.Choice([policy.value for policy in Eviction]),
    help="What a full tier does with one more entry.",
)
@table_options(TierLimitsRequest, "admission")
def set_(client: Client, memory_type: str, **limits: Any) -> TierResponse:
    """Narrow the tier MEMORY_TYPE for the tenant. Without an option, a property has the value of
    the server again."""
    return client.narrow_tier(memory_type, **limits)


def _show_evicted(told: EvictResponse) -> None:
    for entry_id in told.entry_ids:
        click.echo(entry_id)
    word = "would be evicted" if told.dry_run else "evicted"
    click.echo(f"{told.evicted:,} {word}, {told.remaining:,} remain", err=True)


@client_command(command, _show_evicted)
@_tier_argument
@table_options(EvictRequest, "target", "agent_id", "task_id", "namespace", "policy", "dry_run")
def evict(client: Client, memory_type: str, **options: Any) -> EvictResponse:
    """Evict entries of the tier MEMORY_TYPE until a target is left, for administrators of the
    tenant. Entries of governed kinds, such as turns, stay."""
    return client.evict(memory_type, **given_options(options))
