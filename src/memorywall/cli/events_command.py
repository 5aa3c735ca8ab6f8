"""`memorywall events`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
import msgspec

from memorywall.cli.options import client_options, json_option, open_client
from memorywall.cli.output import print_table
from memorywall.wire.agents import EventView


@click.command()
@client_options
@click.option("--after", default=0, type=click.IntRange(min=0), help="Start after this number.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1000))
@click.option("--follow", is_flag=True, help="Go on as events happen, until interrupted.")
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
    """Show an agent's event stream: what happened to its memory, in order.

    With --json each event is one line.
    """
    with open_client(url, key, agent, data) as client:
        if follow:
            try:
                for event in client.events.follow(after):
                    click.echo(_json_line(event) if as_json else _line(event))
            except KeyboardInterrupt:
                return
            return
        events = client.events.list(after=after, limit=limit)
    if as_json:
        for event in events:
            click.echo(_json_line(event))
    else:
        _print_events(events)


def _print_events(events: Iterable[EventView]) -> None:
    print_table(
        ["seq", "when", "type", "tier", "namespace", "key", "version", "actor"],
        (
            [
                event.seq,
                event.timestamp,
                event.type,
                event.data.memory_type,
                event.data.namespace,
                event.data.key,
                event.data.version,
                event.actor,
            ]
            for event in events
        ),
    )


def _line(event: EventView) -> str:
    data = event.data
    return (
        f"{event.seq:>6}  {event.timestamp}  {event.type:<15}  {data.memory_type:<10}  "
        f"{data.namespace}/{data.key}  v{data.version}"
    )


def _json_line(event: EventView) -> str:
    return msgspec.json.encode(event).decode()
