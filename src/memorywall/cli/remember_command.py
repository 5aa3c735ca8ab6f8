"""`memorywall remember`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.entries import print_entry, print_entry_json
from memorywall.cli.table_options import given_options

if TYPE_CHECKING:
    from memorywall.sdk.models import MemoryEntry


@memory_command(show=print_entry, show_json=print_entry_json)
@click.option("--tag", "tags", multiple=True, help="A tag.")
@click.option(
    "--ttl",
    help="The lifetime, such as 60s, 30m, 12h, 90d or task_lifetime.",
)
@click.option("--pinned", is_flag=True, default=None, help="Exempt the entry from eviction.")
@click.argument("text", nargs=-1, required=True)
def command(client: Client, text: tuple[str, ...], **fields: Any) -> MemoryEntry:
    """Store a text as episodic memory, without a tier, a namespace or a key."""
    return client.remember(" ".join(text), **given_options(fields))
