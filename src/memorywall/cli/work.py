"""Prints intents and tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
import msgspec

from memorywall.cli.output import print_fields, print_json, print_table
from memorywall.records.task import MemoryPolicy
from memorywall.wire.work import IntentResponse, TaskResponse

_HISTORY = ("agent_id", "assigned_by", "assigned_at", "accepted_at", "ended_at")


def print_intent(intent: IntentResponse, as_json: bool) -> None:
    """Prints one intent with all its non-empty fields."""
    if as_json:
        print_json(intent)
    else:
        print_fields((name, _cell(value)) for name, value in msgspec.to_builtins(intent).items())


def print_task(task: TaskResponse, as_json: bool) -> None:
    """Prints one task with all its non-empty fields and its assignments."""
    if as_json:
        print_json(task)
        return
    fields = msgspec.to_builtins(task)
    # `state` is an alias of `status`.
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


def print_tasks(tasks: Iterable[TaskResponse], *, of_one_intent: bool) -> None:
    """Prints tasks, one line each."""
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
    """A short description of a memory policy."""
    words = ["archived" if policy.archive_on_completion else "deleted"]
    if policy.inherit_from_parent:
        words.append("inherits")
    if policy.max_entries is not None:
        words.append(f"at most {policy.max_entries} entries")
    if policy.max_total_size_kb is not None:
        words.append(f"at most {policy.max_total_size_kb} KB")
    return ", ".join(words)


def _cell(value: Any) -> Any:
    """The text of a field. Lists of names are printed with commas, other values as JSON."""
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    if isinstance(value, dict | list | tuple):
        return msgspec.json.encode(value).decode() if value else None
    return value
