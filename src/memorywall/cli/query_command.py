"""`memorywall query`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memorywall.cli.entries import print_entries
from memorywall.cli.options import (
    client_options,
    filter_arguments,
    filter_options,
    json_option,
    open_client,
)
from memorywall.cli.output import print_json


@click.command()
@client_options
@filter_options
@click.option("--schema-version", type=int, help="A major version of schemas they must fit.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000))
@click.option("--offset", default=0, type=click.IntRange(min=0))
@json_option
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    limit: int,
    offset: int,
    as_json: bool,
    **wanted: Any,
) -> None:
    """List the matching entries, newest first."""
    with open_client(url, key, agent, data) as client:
        page = client.memory.query(limit=limit, offset=offset, **filter_arguments(wanted))
    if as_json:
        print_json({"entries": list(page), "total": page.total, "limit": limit, "offset": offset})
        return
    print_entries(page)
    click.echo(f"{len(page)} of {page.total} entries")
