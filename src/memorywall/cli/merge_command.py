"""`memorywall merge`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.cli.entries import print_entry
from memorywall.cli.entry_fields import read_value
from memorywall.cli.options import json_option, memory_options, open_client
from memorywall.records.tier import Tier


@click.command()
@memory_options
@click.option("--type", "memory_type", type=click.Choice([*map(str, Tier)]), help="The tier.")
@click.option("--fencing-token", type=int, help="The token of the lease or claim.")
@json_option
@click.argument("namespace")
@click.argument("entry_key", metavar="KEY")
@click.argument("patch")
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    memory_type: str | None,
    fencing_token: int | None,
    as_json: bool,
    namespace: str,
    entry_key: str,
    patch: str,
) -> None:
    """Merge a patch into the value of an entry.

    PATCH is a JSON object, @FILE, or - for standard input: its fields replace those of the value,
    objects are merged, and null removes a field (RFC 7396).
    """
    content = read_value(patch)
    with open_client(url, key, agent, data) as client:
        merged = client.memory.merge(
            namespace,
            entry_key,
            content,
            None if memory_type is None else Tier(memory_type),
            fencing_token=fencing_token,
        )
        print_entry(merged, as_json)
