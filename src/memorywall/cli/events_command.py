"""`memorywall events`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
import msgspec

from memorywall.cli.options import client_options, json_option, open_client
from memorywall.cli.output import print_table
from memorywall.wire.agents import EventData, EventResponse


@click.command()
@client_options
@click.option("--after", default=0, type=click.IntRange(min=0), help="Start after this number.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1000))
@click.option("--follow", is_flag=True, help="Print new events as they occur, until interrupted.")
@json_option
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    after: int,
    limit: int,
    follow: bool,
    as_json: bool,
) -> None:
    """Show an agent's event stream in order.

    With --json each event is one line.
    """
    with open_client(url, key, agent, data) as client:
        if follow:
            try:
                for event in client.events.follow(after):
                    click.echo(json_line(event) if as_json else event_line(event))
            except KeyboardInterrupt:
                return
            return
        events = client.events.list(after=after, limit=limit)
    print_events(events, as_json)


def print_events(events: Iterable[EventResponse], as_json: bool) -> None:
    """Prints events as a table, or as JSON, one line each."""
    if as_json:
        for event in events:
            click.echo(json_line(event))
        return
    print_table(
        ["seq", "when", "type", "tier", "namespace", "key", "version", "actor"],
        ([event.seq, event.timestamp, event.type, *_about(event), event.actor] for event in events),
    )


def event_line(event: EventResponse) -> str:
    """Returns an event as one line of a table without a header."""
    tier, namespace, key, version = _about(event)
    name = "/".join(filter(None, (namespace, key))) + (f"  v{version}" if version else "")
    return f"{event.seq:>6}  {event.timestamp}  {event.type:<15}  {tier:<10}  {name}"


def _about(event: EventResponse) -> tuple[str, str, str, int | None]:
    """Tier, namespace, key and version of the entry of an event. For a claim, the claimed key. For
    other events, the id of the task or intent as the key."""
    data = event.data
    if isinstance(data, EventData):
        return data.memory_type.value, data.namespace, data.key, data.version
    if event.type.startswith("claim."):
        return "", data.get("scope", ""), data.get("key", ""), None
    return "", "", event.task_id or event.intent_id or "", None


def json_line(event: EventResponse) -> str:
    """Returns an event as one line of JSON."""
    return msgspec.json.encode(event).decode()
