"""Prints tasks."""

from __future__ import annotations

import click
import msgspec

from memorywall.cli.output import as_table, print_all_fields
from memorywall.records.task import MemoryPolicy
from memorywall.wire.tasks import TaskResponse

_ASSIGNMENTS = as_table(
    "agent=agent_id", "assigned by=assigned_by", "assigned=assigned_at", "taken up=accepted_at",
    "ended=ended_at",
)  # fmt: skip


def print_task(task: TaskResponse) -> None:
    """Prints one task with all its non-empty fields and its assignments."""
    fields = msgspec.to_builtins(task)
    # `state` is an alias of `status`; the assignments are a table of their own.
    del fields["state"], fields["assignments"]
    fields["memory_policy"] = describe_policy(task.memory_policy)
    print_all_fields(fields)
    if task.assignments:
        click.echo()
        _ASSIGNMENTS(task.assignments)


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
