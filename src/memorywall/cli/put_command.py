"""`memorywall put`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.entries import print_entry, print_entry_json
from memorywall.cli.entry_fields import field_options, given_fields, read_given_value
from memorywall.records.tier import Tier

if TYPE_CHECKING:
    from memorywall.sdk.models import MemoryEntry


def _prepare(given: dict[str, Any]) -> None:
    if given["if_absent"] and given["if_match"] is not None:
        raise click.UsageError("give --if-match or --if-absent, and not both")
    read_given_value(given)


@memory_command(show=print_entry, show_json=print_entry_json, prepare=_prepare)
@field_options
@click.option("--if-match", type=int, help="Replace the entry only at this version.")
@click.option("--if-absent", is_flag=True, help="Create the entry and never replace one.")
@click.argument("namespace")
@click.argument("entry_key", metavar="KEY")
@click.argument("value")
def command(
    client: Client,
    namespace: str,
    entry_key: str,
    value: dict[str, Any],
    memory_type: Tier | None,
    if_match: int | None,
    session_id: str | None,
    **fields: Any,
) -> MemoryEntry:
    """Create an entry, or replace its value. VALUE is a JSON object, @FILE, or - for standard
    input.

    Fields that are not given stay as they are. Without --if-match, the entry is replaced at the
    version that it has now.
    """
    given = given_fields(fields, session_id)
    return client.memory.put(namespace, entry_key, value, memory_type, version=if_match, **given)
