"""`memorywall tasks working` and `memorywall tasks explain`."""

from __future__ import annotations

import json
from typing import Any

import click

from memorywall.cli.client_command import Client, client_command
from memorywall.cli.output import as_table, print_json
from memorywall.cli.plain_commands import Plain, add_plain_commands
from memorywall.wire.working_memory import LoggedChange, WorkingItemResponse, WorkingMemoryResponse


def _content_of(item: WorkingItemResponse) -> str:
    if item.content is None:
        return "(externalized)"
    return item.content if isinstance(item.content, str) else json.dumps(item.content)


_CHANGES = as_table(
    "item", "action", "reason", "tokens=tokens_before", "after=tokens_after", "utility", "promotion"
)
_LOG = as_table(
    "time=timestamp", "step", "tick", "item=change.item", "action=change.action",
    "reason=change.reason", "tokens=change.tokens_before", "after=change.tokens_after",
    "utility=change.utility", "promotion=change.promotion",
)  # fmt: skip
_ITEMS = as_table(
    "item=name", "tokens", "stays=carry_forward", "needs=depends_on",
    ("content", _content_of),
)  # fmt: skip
_task_argument = click.argument("task_id", metavar="TASK")
_fencing_option = click.option(
    "--fencing-token", type=int, help="The token of the task's lease, if it has one."
)


@click.group()
def working() -> None:
    """Keep the working memory of a task: steps and items."""


def _show(memory: WorkingMemoryResponse) -> None:
    is_open = "open" if memory.is_open else "ended"
    click.echo(
        f"step {memory.step} ({is_open}), tick {memory.tick},"
        f" {memory.tokens:,} of {memory.policy.budget:,} tokens"
    )
    if memory.items:
        _ITEMS(memory.items)
    if memory.changes:
        click.echo()
        _CHANGES(memory.changes)


add_plain_commands(
    working,
    Plain("list TASK", "working.show", "list_working_items",
          "Show the step and the items of the task with the id TASK.", _show,
          short_help="Show the step and its items."),
    Plain("read TASK NAME", "working.read", "get_working_item",
          "Show the item NAME of the task with the id TASK as JSON, with its content, also if that"
          " was externalized.", print_json, short_help="Show an item with its content."),
    Plain("tick TASK", "working.tick", "tick_working_step",
          "Count a sub-operation of the step of the task with the id TASK.", _show,
          [_fencing_option], short_help="Count a sub-operation."),
    Plain("end TASK", "working.end", "end_working_step",
          "End the step of the task with the id TASK. All items go but the marked ones and what"
          " they need.", _show, [_fencing_option], short_help="End the step."),
)  # fmt: skip


@client_command(working, _show, short_help="Begin a step.")
@click.option("--goal", default="", help="What the step is to achieve.")
@click.option("--budget", type=click.IntRange(min=1), help="The most tokens of all items.")
@_fencing_option
@_task_argument
def begin(
    client: Client, task_id: str, goal: str, budget: int | None, fencing_token: int | None
) -> WorkingMemoryResponse:
    """Begin a step of the task with the id TASK."""
    policy = None if budget is None else {"budget": budget}
    return client.working.begin(task_id, goal, policy, fencing_token=fencing_token)


@client_command(working, _show, short_help="Add or replace an item.")
@click.option("--needs", multiple=True, help="An item that it needs; may be given several times.")
@click.option("--carry", "carry_forward", is_flag=True, help="It stays at the end of the step.")
@click.option("--ttl-ops", type=click.IntRange(min=1), help="Ticks until it goes.")
@_fencing_option
@_task_argument
@click.argument("name")
@click.argument("content")
def keep(
    client: Client, task_id: str, name: str, content: str, needs: tuple[str, ...], **given: Any
) -> WorkingMemoryResponse:
    """Add the item NAME to the step of the task with the id TASK, or replace it. CONTENT is a JSON
    object or list, or a text."""
    return client.working.keep(task_id, name, _content(content), depends_on=needs, **given)


@client_command(working, _show, short_help="Mark an item to stay at the end of the step.")
@click.option("--undo", is_flag=True, help="Take the mark away.")
@_fencing_option
@_task_argument
@click.argument("name")
def mark(
    client: Client, task_id: str, name: str, undo: bool, fencing_token: int | None
) -> WorkingMemoryResponse:
    """Mark the item NAME of the task with the id TASK to stay at the end of the step."""
    return client.working.mark(task_id, name, not undo, fencing_token=fencing_token)


@client_command(show=_LOG, short_help="Show why items of working memory went.")
@click.argument("task_id", metavar="ID")
def explain(client: Client, task_id: str) -> list[LoggedChange]:
    """Show evictions, compressions and externalizations of the task with ID, and their reasons."""
    page = client.working.explain(task_id)
    changes = list(page.changes)
    while page.next is not None:
        page = client.working.explain(task_id, after=page.next)
        changes += page.changes
    return changes


def _content(text: str) -> Any:
    """A JSON object or list, or else the text itself."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict | list) else text
