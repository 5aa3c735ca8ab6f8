"""How intents and tasks are printed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
import msgspec

from memorywall.cli.output import print_fields, print_json, print_table
from memorywall.records.task import MemoryPolicy
from memorywall.wire.work import IntentView, TaskView

_HISTORY = ("agent_id", "assigned_by", "assigned_at", "accepted_at", "ended_at")


def print_intent(intent: IntentView, as_json: bool) -> None:
    """One intent, with every field that says something."""
    if as_json:
        print_json(intent)
    else:
        print_fields((name, _cell(value)) for name, value in msgspec.to_builtins(intent).items())


def print_task(task: TaskView, as_json: bool) -> None:
    """One task, with every field that says something, and everyone who has had it."""
    if as_json:
        print_json(task)
        return
    fields = msgspec.to_builtins(task)
    # It is the status again, by its other name.
    del fields["state"]
    fields["memory_policy"] = describe_policy(task.memory_policy)
    history = fields.pop("assignments")
    print_fields((name, _cell(value)) for name, value in fields.items())
    if history:
        click.echo()
        print_table(
            ["agent", "assigned by", "assigned", "taken up", "ended"],
            ([one.get(name) for name in _HISTORY] for one in history),
        )


def print_tasks(tasks: Iterable[TaskView], *, of_one_intent: bool) -> None:
    """Tasks, a line each."""
    headers = ["id", "name", "status", "agent", "updated", "intent"]
    rows = (
        [one.id, one.name, one.status, one.assigned_agent, one.updated_at, one.intent_id]
        for one in tasks
    )
    if of_one_intent:
        print_table(headers[:-1], (row[:-1] for row in rows))
    else:
        print_table(headers, rows)


def describe_policy(policy: MemoryPolicy) -> str:
    """What becomes of a task's working memory, in a few words."""
    words = ["archived" if policy.archive_on_completion else "deleted"]
    if policy.inherit_from_parent:
        words.append("inherits")
    if policy.max_entries is not None:
        words.append(f"at most {policy.max_entries} entries")
    if policy.max_total_size_kb is not None:
        words.append(f"at most {policy.max_total_size_kb} KB")
    return ", ".join(words)


def _cell(value: Any) -> Any:
    """A field as it is printed. Lists of names are told from JSON by their looks alone."""
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    if isinstance(value, dict | list | tuple):
        return msgspec.json.encode(value).decode() if value else None
    return value
