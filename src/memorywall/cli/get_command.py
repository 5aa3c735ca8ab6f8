"""`memorywall get`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memorywall.cli.entries import print_entry
from memorywall.cli.options import json_option, memory_options, open_client
from memorywall.records.errors import MemoryNotFoundError
from memorywall.records.tier import Tier


@click.command()
@memory_options
@click.option(
    "--type", "memory_type", type=click.Choice([tier.value for tier in Tier]), help="The tier."
)
@click.option("--version", type=int, help="An earlier version, in a versioned tier.")
@click.option("--as-of", help="The version that was current at this RFC 3339 instant.")
@click.option("--schema-version", type=int, help="A major version of schemas that it must fit.")
@json_option
@click.argument("name")
@click.argument("entry_key", required=False, metavar="[KEY]")
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    memory_type: Tier | None,
    version: int | None,
    as_of: str | None,
    schema_version: int | None,
    as_json: bool,
    name: str,
    entry_key: str | None,
) -> None:
    """Show one entry: by id, or by NAMESPACE and KEY in the narrowest tier."""
    asked: dict[str, Any] = {"version": version, "as_of": as_of, "schema_version": schema_version}
    with open_client(url, key, agent, data) as client:
        if entry_key is None:
            entry = client.memory.get_by_id(name, **asked)
        else:
            found = client.memory.get(name, entry_key, memory_type, **asked)
            if found is None:
                raise MemoryNotFoundError("there is no entry with this namespace and key")
            entry = found
        print_entry(entry, as_json)
