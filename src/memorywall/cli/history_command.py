"""`memorywall history`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.cli.entries import print_entries
from memorywall.cli.options import client_options, json_option, open_client
from memorywall.cli.output import print_json


@click.command()
@client_options
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 100))
@click.option(
    "--before-version", type=click.IntRange(min=1), help="Only versions with a smaller number."
)
@json_option
@click.argument("entry_id", metavar="ID")
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    limit: int,
    before_version: int | None,
    as_json: bool,
    entry_id: str,
) -> None:
    """List the versions of an entry, newest first."""
    with open_client(url, key, agent, data) as client:
        versions = client.memory.history(entry_id, limit=limit, before_version=before_version)
    if as_json:
        print_json(versions)
    else:
        print_entries(versions)
