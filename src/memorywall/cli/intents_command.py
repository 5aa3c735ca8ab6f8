"""`memorywall intents`."""

from __future__ import annotations

import click

from memorywall.cli.events_command import show_events
from memorywall.cli.options import limit_option, status_option
from memorywall.cli.output import as_table, print_all_fields, print_json_lines
from memorywall.cli.plain_commands import Plain, add_plain_commands
from memorywall.records.intent import IntentStatus

_LIST = as_table("id", "title", "status", "made by=created_by", "updated=updated_at")
_description_option = click.option("--description", default="", help="What it is about.")
_after_option = click.option(
    "--after", default=0, type=click.IntRange(min=0), help="Start after this number."
)


@click.group()
def command() -> None:
    """List and create intents, and read their logs."""


add_plain_commands(
    command,
    Plain("list", "intents.list", "list_intents",
          "List the intents that the agent may read, newest first.", _LIST,
          [status_option(IntentStatus), limit_option(50)],
          short_help="List the intents an agent may read."),
    Plain("create TITLE", "intents.create", "create_intent",
          "Create an intent with TITLE; the agent administers it.", print_all_fields,
          [_description_option], short_help="Make an intent."),
    Plain("show ID", "intents.get", "get_intent", "Show the intent with ID.", print_all_fields,
          short_help="Show an intent."),
    Plain("log ID", "intents.events", "list_intent_events",
          "Show the log of the intent with ID: what happened to it, its tasks and their memory.\n\n"
          "With --json each event is one line, archived memory included.",
          show_events, [_after_option, limit_option(100)], show_json=print_json_lines,
          short_help="Show what happened to an intent."),
)  # fmt: skip
