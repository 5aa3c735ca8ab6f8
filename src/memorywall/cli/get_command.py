"""`memorywall get`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.entries import print_entry, print_entry_json
from memorywall.cli.options import type_option
from memorywall.records.errors import MemoryNotFoundError
from memorywall.records.tier import Tier

if TYPE_CHECKING:
    from memorywall.sdk.models import MemoryEntry


@memory_command(show=print_entry, show_json=print_entry_json)
@type_option
@click.option("--version", type=int, help="An earlier version, in a versioned tier.")
@click.option("--as-of", help="The version that was current at this RFC 3339 instant.")
@click.option("--schema-version", type=int, help="A major version of schemas that it must fit.")
@click.argument("name")
@click.argument("entry_key", required=False, metavar="[KEY]")
def command(
    client: Client, name: str, entry_key: str | None, memory_type: Tier | None, **asked: Any
) -> MemoryEntry:
    """Show one entry: by id, or by NAMESPACE and KEY in the narrowest tier."""
    if entry_key is None:
        return client.memory.get_by_id(name, **asked)
    found = client.memory.get(name, entry_key, memory_type, **asked)
    if found is None:
        raise MemoryNotFoundError("there is no entry with this namespace and key")
    return found
