"""`memorywall intents`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.cli.events_command import print_events
from memorywall.cli.options import client_options, json_option, open_client
from memorywall.cli.output import print_json, print_table
from memorywall.cli.work import print_intent
from memorywall.records.intent import IntentStatus


@click.group()
def command() -> None:
    """List and create intents, and read their logs."""


@command.command("list", short_help="List the intents an agent may read.")
@client_options
@click.option(
    "--status",
    type=click.Choice([status.value for status in IntentStatus]),
    metavar="STATUS",
    help=f"Only those that are {', '.join(IntentStatus)}.",
)
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 1000))
@json_option
def list_(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    status: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List the intents that the agent may read, newest first."""
    with open_client(url, key, agent, data) as client:
        intents = client.intents.list(status=status, limit=limit)
    if as_json:
        print_json(intents)
        return
    print_table(
        ["id", "title", "status", "made by", "updated"],
        ([one.id, one.title, one.status, one.created_by, one.updated_at] for one in intents),
    )


@command.command(short_help="Make an intent.")
@client_options
@click.option("--description", default="", help="What it is about.")
@json_option
@click.argument("title")
def create(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    description: str,
    as_json: bool,
    title: str,
) -> None:
    """Create an intent with TITLE; the agent administers it."""
    with open_client(url, key, agent, data) as client:
        print_intent(client.intents.create(title, description=description), as_json)


@command.command(short_help="Show an intent.")
@client_options
@json_option
@click.argument("intent_id", metavar="ID")
def show(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    as_json: bool,
    intent_id: str,
) -> None:
    """Show the intent with ID."""
    with open_client(url, key, agent, data) as client:
        print_intent(client.intents.get(intent_id), as_json)


@command.command(short_help="Show what happened to an intent.")
@client_options
@click.option("--after", default=0, type=click.IntRange(min=0), help="Start after this number.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1000))
@json_option
@click.argument("intent_id", metavar="ID")
def log(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    after: int,
    limit: int,
    as_json: bool,
    intent_id: str,
) -> None:
    """Show the log of the intent with ID: what happened to it, its tasks and their memory.

    With --json each event is one line, archived memory included.
    """
    with open_client(url, key, agent, data) as client:
        print_events(client.intents.events(intent_id, after=after, limit=limit), as_json)
