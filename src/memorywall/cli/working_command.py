"""`memorywall tasks working` and `memorywall tasks explain`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from memorywall.cli.options import client_options, json_option, open_client
from memorywall.cli.output import print_json, print_table
from memorywall.kinds.working_memory import ItemChange
from memorywall.wire.working_memory import WorkingMemoryResponse

_fencing_option = click.option(
    "--fencing-token", type=int, help="The token of the task's lease, if it has one."
)


@click.group()
def working() -> None:
    """Keep the working memory of a task: steps and items."""


@working.command("list", short_help="Show the step and its items.")
@client_options
@json_option
@click.argument("task_id", metavar="TASK")
def list_(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    as_json: bool,
    task_id: str,
) -> None:
    """Show the step and the items of the task with the id TASK."""
    with open_client(url, key, agent, data) as client:
        _print(client.working.show(task_id), as_json)


@working.command(short_help="Show an item with its content.")
@client_options
@click.argument("task_id", metavar="TASK")
@click.argument("name")
def read(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    task_id: str,
    name: str,
) -> None:
    """Show the item NAME of the task with the id TASK as JSON, with its content, also if that was
    externalized."""
    with open_client(url, key, agent, data) as client:
        print_json(client.working.read(task_id, name))


@working.command(short_help="Begin a step.")
@client_options
@click.option("--goal", default="", help="What the step is to achieve.")
@click.option("--budget", type=click.IntRange(min=1), help="The most tokens of all items.")
@_fencing_option
@json_option
@click.argument("task_id", metavar="TASK")
def begin(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    goal: str,
    budget: int | None,
    fencing_token: int | None,
    as_json: bool,
    task_id: str,
) -> None:
    """Begin a step of the task with the id TASK."""
    policy = None if budget is None else {"budget": budget}
    with open_client(url, key, agent, data) as client:
        begun = client.working.begin(task_id, goal, policy, fencing_token=fencing_token)
        _print(begun, as_json)


@working.command(short_help="Add or replace an item.")
@client_options
@click.option("--needs", multiple=True, help="An item that it needs; may be given several times.")
@click.option("--carry", is_flag=True, help="It stays at the end of the step.")
@click.option("--ttl-ops", type=click.IntRange(min=1), help="Ticks until it goes.")
@_fencing_option
@json_option
@click.argument("task_id", metavar="TASK")
@click.argument("name")
@click.argument("content")
def keep(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    needs: tuple[str, ...],
    carry: bool,
    ttl_ops: int | None,
    fencing_token: int | None,
    as_json: bool,
    task_id: str,
    name: str,
    content: str,
) -> None:
    """Add the item NAME to the step of the task with the id TASK, or replace it. CONTENT is a JSON
    object or list, or a text."""
    with open_client(url, key, agent, data) as client:
        kept = client.working.keep(
            task_id, name, _content(content), depends_on=needs, carry_forward=carry,
            ttl_ops=ttl_ops, fencing_token=fencing_token,
        )  # fmt: skip
        _print(kept, as_json)


@working.command(short_help="Mark an item to stay at the end of the step.")
@client_options
@click.option("--undo", is_flag=True, help="Take the mark away.")
@_fencing_option
@json_option
@click.argument("task_id", metavar="TASK")
@click.argument("name")
def mark(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    undo: bool,
    fencing_token: int | None,
    as_json: bool,
    task_id: str,
    name: str,
) -> None:
    """Mark the item NAME of the task with the id TASK to stay at the end of the step."""
    with open_client(url, key, agent, data) as client:
        _print(client.working.mark(task_id, name, not undo, fencing_token=fencing_token), as_json)


@working.command(short_help="Count a sub-operation.")
@client_options
@_fencing_option
@json_option
@click.argument("task_id", metavar="TASK")
def tick(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    fencing_token: int | None,
    as_json: bool,
    task_id: str,
) -> None:
    """Count a sub-operation of the step of the task with the id TASK."""
    with open_client(url, key, agent, data) as client:
        _print(client.working.tick(task_id, fencing_token=fencing_token), as_json)


@working.command(short_help="End the step.")
@client_options
@_fencing_option
@json_option
@click.argument("task_id", metavar="TASK")
def end(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    fencing_token: int | None,
    as_json: bool,
    task_id: str,
) -> None:
    """End the step of the task with the id TASK. All items go but the marked ones and what they
    need."""
    with open_client(url, key, agent, data) as client:
        _print(client.working.end(task_id, fencing_token=fencing_token), as_json)


@click.command(short_help="Show why items of working memory went.")
@client_options
@json_option
@click.argument("task_id", metavar="ID")
def explain(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    as_json: bool,
    task_id: str,
) -> None:
    """Show evictions, compressions and externalizations of the task with ID, and their reasons."""
    with open_client(url, key, agent, data) as client:
        page = client.working.explain(task_id)
        changes = list(page.changes)
        while page.next is not None:
            page = client.working.explain(task_id, after=page.next)
            changes += page.changes
    if as_json:
        print_json(changes)
        return
    print_table(
        ["time", "step", "tick", *_CHANGE_HEADERS],
        ([one.timestamp, one.step, one.tick, *_change_cells(one.change)] for one in changes),
    )


_CHANGE_HEADERS = ("item", "action", "reason", "tokens", "after", "utility", "promotion")


def _change_cells(one: ItemChange) -> list[Any]:
    return [
        one.item, one.action, one.reason, one.tokens_before, one.tokens_after, one.utility,
        one.promotion,
    ]  # fmt: skip


def _print(memory: WorkingMemoryResponse, as_json: bool) -> None:
    if as_json:
        print_json(memory)
        return
    is_open = "open" if memory.is_open else "ended"
    click.echo(
        f"step {memory.step} ({is_open}), tick {memory.tick},"
        f" {memory.tokens:,} of {memory.policy.budget:,} tokens"
    )
    if memory.items:
        print_table(
            ["item", "tokens", "stays", "needs", "content"],
            (
                [one.name, one.tokens, "yes" if one.carry_forward else "",
                 ", ".join(one.depends_on), _short(one.content)]
                for one in memory.items
            ),
        )  # fmt: skip
    if memory.changes:
        click.echo()
        print_table(_CHANGE_HEADERS, (_change_cells(one) for one in memory.changes))


def _short(content: Any) -> str:
    if content is None:
        return "(externalized)"
    return content if isinstance(content, str) else json.dumps(content)


def _content(text: str) -> Any:
    """A JSON object or list, or else the text itself."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict | list) else text
