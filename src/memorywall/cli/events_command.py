"""`memorywall events`."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import click
import msgspec

from memorywall.cli.client_command import Client, client_command
from memorywall.cli.options import json_option, limit_option
from memorywall.cli.output import as_table, print_json_lines
from memorywall.wire.events import EventData, EventResponse


def _about(event: EventResponse) -> tuple[str, str, str, int | None]:
    """Tier, namespace, key and version of the entry of an event. For a claim, the claimed key. For
    other events, the id of the task or intent as the key."""
    data = event.data
    if isinstance(data, EventData):
        return data.memory_type.value, data.namespace, data.key, data.version
    if event.type.startswith("claim."):
        return "", data.get("scope", ""), data.get("key", ""), None
    return "", "", event.task_id or event.intent_id or "", None


show_events = as_table(
    "seq", "when=timestamp", "type",
    ("tier", lambda event: _about(event)[0]), ("namespace", lambda event: _about(event)[1]),
    ("key", lambda event: _about(event)[2]), ("version", lambda event: _about(event)[3]),
    "actor",
)  # fmt: skip


@client_command()
@click.option("--after", default=0, type=click.IntRange(min=0), help="Start after this number.")
@limit_option(100)
@click.option("--follow", is_flag=True, help="Print new events as they occur, until interrupted.")
@json_option
def command(client: Client, after: int, limit: int, follow: bool, as_json: bool) -> None:
    """Show an agent's event stream in order.

    With --json each event is one line.
    """
    if follow:
        with suppress(KeyboardInterrupt):
            print_each(client.events.follow(after), as_json)
        return
    (print_json_lines if as_json else show_events)(client.events.list(after=after, limit=limit))


def print_each(events: Iterable[EventResponse], as_json: bool) -> None:
    """Prints each event when it arrives: as a line of JSON, or of a table without a header."""
    for event in events:
        click.echo(msgspec.json.encode(event) if as_json else _line(event))


def _line(event: EventResponse) -> str:
    tier, namespace, key, version = _about(event)
    name = "/".join(filter(None, (namespace, key))) + (f"  v{version}" if version else "")
    return f"{event.seq:>6}  {event.timestamp}  {event.type:<15}  {tier:<10}  {name}"
