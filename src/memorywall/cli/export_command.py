"""`memorywall export`."""

from __future__ import annotations

import os
import stat
import sys
from typing import Any, BinaryIO

import click
import msgspec
from tqdm import tqdm

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.options import filter_arguments, filter_options
from memorywall.cli.output import ENTRIES, count_of


@memory_command()
@filter_options
@click.option("--as-of", help="The entries as they were at this RFC 3339 instant or date.")
@click.option(
    "--output",
    type=click.File("wb", lazy=False),
    default="-",
    help="A file; - for standard output.",
)
def command(client: Client, output: BinaryIO, **wanted: Any) -> None:
    """Write the matching entries as JSON Lines, one entry a line, newest first."""
    conditions = filter_arguments(wanted)
    exported = 0
    if output.fileno() != sys.stdout.fileno() and stat.S_ISREG(os.fstat(output.fileno()).st_mode):
        # The file contains sealed values in clear text.
        os.fchmod(output.fileno(), 0o600)
    total = client.memory.count(**_owned(client.whoami().agent_id, conditions))
    with tqdm(total=total, unit=" entries", desc="export", leave=False, disable=None) as bar:
        for entry in client.memory.export(**conditions):
            fields = msgspec.to_builtins(entry)
            del fields["warnings"]  # Those of a write.
            output.write(msgspec.json.encode(fields) + b"\n")
            exported += 1
            bar.update()
    click.echo(f"{count_of(exported, *ENTRIES)} exported", err=True)


def _owned(agent: str, conditions: dict[str, Any]) -> dict[str, Any]:
    """The conditions with the owning agent, which a query of one tier requires."""
    return {"agent_id": agent, **conditions} if "memory_type" in conditions else conditions
