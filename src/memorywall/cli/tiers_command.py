"""`memorywall tiers`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from memorywall.cli.options import client_options, json_option, open_client
from memorywall.cli.output import print_json, print_table
from memorywall.cli.table_options import table_options
from memorywall.records.tier import Eviction, Tier
from memorywall.wire.kinds import EvictRequest, TierResponse


@click.group(invoke_without_command=True)
@client_options
@json_option
@click.pass_context
def command(
    context: click.Context,
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Show the tiers and their properties, narrow one for the tenant, or evict entries."""
    if context.invoked_subcommand is not None:
        return
    with open_client(url, key, agent, data) as client:
        tiers = client.tiers()
    if as_json:
        print_json(tiers)
    else:
        _print(tiers)


@command.command("set")
@client_options
@json_option
@click.argument("memory_type", type=click.Choice([tier.value for tier in Tier]))
@click.option("--capacity", type=click.IntRange(min=0), help="Entries; at most the server's.")
@click.option("--default-ttl", help="The ttl of entries without one, such as 30d.")
@click.option(
    "--eviction",
    type=click.Choice([policy.value for policy in Eviction]),
    help="What a full tier does with one more entry.",
)
@click.pass_context
def set_(
    context: click.Context,
    /,
    memory_type: str,
    capacity: int | None,
    default_ttl: str | None,
    eviction: str | None,
    **own: Any,
) -> None:
    """Narrow the tier MEMORY_TYPE for the tenant. Without an option, a property has the value of
    the server again."""
    options = _with_options_of_group(context, own)
    as_json = options.pop("as_json")
    with open_client(**options) as client:
        tier = client.narrow_tier(
            memory_type, capacity=capacity, default_ttl=default_ttl, eviction=eviction
        )
    if as_json:
        print_json(tier)
    else:
        _print([tier])


@command.command()
@client_options
@json_option
@click.argument("memory_type", type=click.Choice([tier.value for tier in Tier]))
@table_options(EvictRequest, "target", "agent_id", "task_id", "namespace", "policy", "dry_run")
@click.pass_context
def evict(context: click.Context, /, memory_type: str, **own: Any) -> None:
    """Evict entries of the tier MEMORY_TYPE until a target is left, for administrators of the
    tenant. Entries of governed kinds, such as turns, stay."""
    options = _with_options_of_group(context, own)
    client_names = ("url", "key", "agent", "data")
    place = {name: options.pop(name) for name in client_names}
    as_json = options.pop("as_json")
    asked = {name: value for name, value in options.items() if value is not None}
    with open_client(**place) as client:
        told = client.evict(memory_type, **asked)
    if as_json:
        print_json(told)
        return
    for entry_id in told.entry_ids:
        click.echo(entry_id)
    word = "would be evicted" if told.dry_run else "evicted"
    click.echo(f"{told.evicted:,} {word}, {told.remaining:,} remain", err=True)


def _with_options_of_group(context: click.Context, own: dict[str, Any]) -> dict[str, Any]:
    """The options of the command; those that the command line does not give after it are those
    before it."""
    before = {} if context.parent is None else context.parent.params
    return {
        name: value
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        else before.get(name, value)
        for name, value in own.items()
    }


def _print(tiers: Iterable[TierResponse]) -> None:
    print_table(
        ("tier", "capacity", "per", "ttl", "writes", "reads", "eviction", "lasts", "versions"),
        (
            (
                tier.memory_type.value,
                "none" if tier.capacity is None else tier.capacity,
                tier.capacity_scope.value,
                tier.default_ttl or "none",
                tier.admission.value,
                tier.access.value,
                tier.eviction.value,
                tier.lifetime.value,
                "kept" if tier.versioned else "not kept",
            )
            for tier in tiers
        ),
    )
