"""`memorywall tiers`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.cli.options import client_options, json_option, open_client
from memorywall.cli.output import print_json, print_table


@click.command()
@client_options
@json_option
def command(
    url: str | None, key: str | None, agent: str | None, data: Path | None, as_json: bool
) -> None:
    """Show the tiers and their properties."""
    with open_client(url, key, agent, data) as client:
        tiers = client.tiers()
    if as_json:
        print_json(tiers)
        return
    print_table(
        ("tier", "capacity", "per", "ttl", "writes", "reads", "eviction", "lasts", "versions"),
        (
            (
                tier.memory_type.value,
                "none" if tier.capacity is None else tier.capacity,
                tier.capacity_scope.value or "-",
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
