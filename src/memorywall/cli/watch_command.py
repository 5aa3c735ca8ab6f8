"""`memorywall watch`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import click

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.events_command import print_each
from memorywall.cli.options import json_option, type_option
from memorywall.cli.table_options import renamed_option
from memorywall.wire.events import EventResponse

_LARGEST_PAGE = 1_000


@memory_command()
@click.option("--namespace", help="A namespace, or a prefix followed by *.")
@click.option("--scope", help="A scope of shared state: global, agent, or team: and a team.")
@click.option("--key-name", "key_name", help="The entry's key.")
@type_option
@click.option("--kind", help="The kind of the value.")
@renamed_option("--about", help="Only entries about this person.")
@click.option("--task", "task_id", help="The task that the entry is bound to.")
@click.option("--intent", "intent_id", help="The intent that the entry is bound to.")
@click.option(
    "--after",
    type=click.IntRange(min=0),
    help="Start after this number; 0 is the beginning. Default: the present, with --once 0.",
)
@click.option("--once", is_flag=True, help="Print the changes up to the present, and end.")
@json_option
def command(
    client: Client,
    key_name: str | None,
    after: int | None,
    once: bool,
    as_json: bool,
    **wanted: Any,
) -> None:
    """Print the changes of memory that the caller may read, as they occur, until interrupted.

    Output to a terminal is one line for each change. Other output, and output with --json, is one
    JSON text for each change.
    """
    changes = (
        _so_far(client, after or 0, key=key_name, **wanted)
        if once
        else client.memory.watch(after=after, key=key_name, **wanted)
    )
    with suppress(KeyboardInterrupt):
        print_each(changes, as_json or not sys.stdout.isatty())


def _so_far(client: Client, after: int, **wanted: Any) -> Iterator[EventResponse]:
    """Yields the changes up to the present."""
    more = True
    while more:
        page = client.memory.changes(after, limit=_LARGEST_PAGE, **wanted)
        yield from page
        after, more = page.next, page.more
