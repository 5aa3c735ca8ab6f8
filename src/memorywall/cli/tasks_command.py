"""`memorywall tasks`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.cli.options import client_options, json_option, open_client
from memorywall.cli.output import print_json
from memorywall.cli.work import print_task, print_tasks
from memorywall.cli.working_command import explain, working
from memorywall.records.task import TaskStatus


@click.group()
def command() -> None:
    """List, create and assign tasks."""


command.add_command(working)
command.add_command(explain)


@command.command("list", short_help="List tasks of an agent or of an intent.")
@client_options
@click.option("--intent", "intent_id", help="All tasks of this intent.")
@click.option(
    "--status",
    type=click.Choice([status.value for status in TaskStatus]),
    metavar="STATUS",
    help=f"Only those that are {', '.join(TaskStatus)}.",
)
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1000))
@json_option
def list_(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    intent_id: str | None,
    status: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List tasks, oldest first: the agent's own, or with --intent all of that intent."""
    with open_client(url, key, agent, data) as client:
        tasks = client.tasks.list(intent_id=intent_id, status=status, limit=limit)
    if as_json:
        print_json(tasks)
    else:
        print_tasks(tasks, of_one_intent=intent_id is not None)


@command.command(short_help="Show a task and its assignments.")
@client_options
@json_option
@click.argument("task_id", metavar="ID")
def show(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    as_json: bool,
    task_id: str,
) -> None:
    """Show the task with ID and its assignments."""
    with open_client(url, key, agent, data) as client:
        print_task(client.tasks.get(task_id), as_json)


@command.command(short_help="Make a task.")
@client_options
@click.option("--description", help="What is to be done.")
@click.option("--assign", "assigned_agent", help="The agent to assign the task to.")
@click.option(
    "--capability",
    "capabilities",
    multiple=True,
    help="A required capability; may be given several times.",
)
@click.option(
    "--after",
    "depends_on",
    multiple=True,
    help="The id of a dependency; may be given several times.",
)
@click.option("--parent", "parent_task_id", help="The id of the parent task.")
@json_option
@click.argument("intent_id", metavar="INTENT")
@click.argument("name")
def create(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    description: str | None,
    assigned_agent: str | None,
    capabilities: tuple[str, ...],
    depends_on: tuple[str, ...],
    parent_task_id: str | None,
    as_json: bool,
    intent_id: str,
    name: str,
) -> None:
    """Create a task with NAME for the intent with the id INTENT."""
    with open_client(url, key, agent, data) as client:
        task = client.tasks.create(
            intent_id,
            name,
            description=description,
            assigned_agent=assigned_agent,
            capabilities_required=capabilities,
            depends_on=depends_on,
            parent_task_id=parent_task_id,
        )
        print_task(task, as_json)


@command.command(short_help="Assign a task to an agent.")
@client_options
@json_option
@click.argument("task_id", metavar="ID")
@click.argument("to", metavar="AGENT")
def assign(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    as_json: bool,
    task_id: str,
    to: str,
) -> None:
    """Assign the task with ID to AGENT. The former agent can only read its memory from then on."""
    with open_client(url, key, agent, data) as client:
        print_task(client.tasks.assign(task_id, to), as_json)


@command.command(short_help="Call a task off.")
@client_options
@json_option
@click.argument("task_id", metavar="ID")
def cancel(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    as_json: bool,
    task_id: str,
) -> None:
    """Cancel the task with ID. Its working memory is archived, as at any end of a task."""
    with open_client(url, key, agent, data) as client:
        print_task(client.tasks.cancel(task_id), as_json)
