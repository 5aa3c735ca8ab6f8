"""`memorywall recall`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.options import hits_option
from memorywall.cli.search_output import print_findings, print_findings_json

if TYPE_CHECKING:
    from memorywall.sdk.models import SearchResults


@memory_command(show=print_findings, show_json=print_findings_json)
@hits_option
@click.argument("question", nargs=-1, required=True)
def command(client: Client, question: tuple[str, ...], limit: int) -> SearchResults:
    """Find the memory that answers a question best; `memorywall search` has conditions."""
    return client.recall(" ".join(question), limit=limit)
