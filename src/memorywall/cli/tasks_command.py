"""`memorywall tasks`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from memorywall.cli.client_command import Client, client_command
from memorywall.cli.options import limit_option, status_option
from memorywall.cli.output import as_table
from memorywall.cli.plain_commands import Plain, add_plain_commands
from memorywall.cli.task_output import print_task
from memorywall.cli.working_command import explain, working
from memorywall.records.task import TaskStatus
from memorywall.wire.tasks import TaskResponse

_COLUMNS = ("id", "name", "status", "agent=assigned_agent", "updated=updated_at")
_NEW_TASK_OPTIONS = (
    click.option("--description", help="What is to be done."),
    click.option("--assign", "assigned_agent", help="The agent to assign the task to."),
    click.option(
        "--capability",
        "capabilities_required",
        multiple=True,
        help="A required capability; may be given several times.",
    ),
    click.option(
        "--after",
        "depends_on",
        multiple=True,
        help="The id of a dependency; may be given several times.",
    ),
    click.option("--parent", "parent_task_id", help="The id of the parent task."),
)


@click.group()
def command() -> None:
    """List, create and assign tasks."""


command.add_command(working)
command.add_command(explain)


def _show_list(tasks: Sequence[TaskResponse]) -> None:
    is_of_one_intent = click.get_current_context().params["intent_id"] is not None
    as_table(*_COLUMNS, *(() if is_of_one_intent else ("intent=intent_id",)))(tasks)


@client_command(
    command, _show_list, name="list", short_help="List tasks of an agent or of an intent."
)
@click.option("--intent", "intent_id", help="All tasks of this intent.")
@status_option(TaskStatus)
@limit_option(100)
def list_(client: Client, **wanted: Any) -> Sequence[TaskResponse]:
    """List tasks, oldest first: the agent's own, or with --intent all of that intent."""
    return client.tasks.list(**wanted)


add_plain_commands(
    command,
    Plain("show ID", "tasks.get", "get_task", "Show the task with ID and its assignments.",
          print_task, short_help="Show a task and its assignments."),
    Plain("create INTENT NAME", "tasks.create", "create_task",
          "Create a task with NAME for the intent with the id INTENT.", print_task,
          _NEW_TASK_OPTIONS, short_help="Make a task."),
    Plain("assign ID AGENT=assigned_agent", "tasks.assign", "update_task",
          "Assign the task with ID to AGENT. The former agent can only read its memory from then"
          " on.", print_task, short_help="Assign a task to an agent."),
    Plain("cancel ID", "tasks.cancel", "update_task",
          "Cancel the task with ID. Its working memory is archived, as at any end of a task.",
          print_task, short_help="Call a task off."),
)  # fmt: skip
