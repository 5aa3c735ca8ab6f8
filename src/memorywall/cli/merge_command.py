"""`memorywall merge`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.entries import print_entry, print_entry_json
from memorywall.cli.entry_fields import read_given_value
from memorywall.cli.options import type_option
from memorywall.records.tier import Tier

if TYPE_CHECKING:
    from memorywall.sdk.models import MemoryEntry


@memory_command(show=print_entry, show_json=print_entry_json, prepare=read_given_value)
@type_option
@click.option("--fencing-token", type=int, help="The token of the lease or claim.")
@click.argument("namespace")
@click.argument("entry_key", metavar="KEY")
@click.argument("value", metavar="PATCH")
def command(
    client: Client,
    namespace: str,
    entry_key: str,
    value: dict[str, Any],
    memory_type: str | None,
    fencing_token: int | None,
) -> MemoryEntry:
    """Merge a patch into the value of an entry.

    PATCH is a JSON object, @FILE, or - for standard input: its fields replace those of the value,
    objects are merged, and null removes a field (RFC 7396).
    """
    tier = None if memory_type is None else Tier(memory_type)
    return client.memory.merge(namespace, entry_key, value, tier, fencing_token=fencing_token)
