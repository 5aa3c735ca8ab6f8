"""`memorywall remember`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memorywall.cli.entries import print_entry
from memorywall.cli.options import json_option, memory_options, open_client


@click.command()
@memory_options
@click.option("--tag", "tags", multiple=True, help="A tag.")
@click.option(
    "--ttl",
    help="The lifetime, such as 60s, 30m, 12h, 90d or task_lifetime.",
)
@click.option("--pinned", is_flag=True, default=None, help="Exempt the entry from eviction.")
@json_option
@click.argument("text", nargs=-1, required=True)
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    text: tuple[str, ...],
    as_json: bool,
    **fields: Any,
) -> None:
    """Store a text as episodic memory, without a tier, a namespace or a key."""
    given = {name: value for name, value in fields.items() if value not in (None, ())}
    with open_client(url, key, agent, data) as client:
        entry = client.remember(" ".join(text), **given)
        print_entry(entry, as_json)
