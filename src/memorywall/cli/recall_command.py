"""`memorywall recall`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.cli.options import hits_option, json_option, memory_options, open_client
from memorywall.cli.search_output import print_search


@click.command()
@memory_options
@hits_option
@json_option
@click.argument("question", nargs=-1, required=True)
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    limit: int,
    question: tuple[str, ...],
    as_json: bool,
) -> None:
    """Find the memory that answers a question best; `memorywall search` has conditions."""
    with open_client(url, key, agent, data) as client:
        found = client.recall(" ".join(question), limit=limit)
    print_search(found, as_json=as_json)
