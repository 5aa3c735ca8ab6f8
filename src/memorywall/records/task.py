"""A task, its nine states and who has worked on it (RFC-0012, RFC-0015 section 6.5)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta


class TaskStatus(StrEnum):
    """The nine states of a task."""

    PENDING = "pending"
    READY = "ready"
    CLAIMED = "claimed"
    RUNNING = "running"
    BLOCKED = "blocked"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


ENDS = frozenset(
    {TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED, TaskStatus.SKIPPED}
)
_UNDER_WAY = frozenset({TaskStatus.CLAIMED, TaskStatus.RUNNING, TaskStatus.BLOCKED})
_GIVEN_UP = (TaskStatus.BLOCKED, TaskStatus.CANCELLED, TaskStatus.SKIPPED)

TRANSITIONS: dict[TaskStatus, frozenset[TaskStatus]] = {
    TaskStatus.PENDING: frozenset({TaskStatus.READY, *_GIVEN_UP}),
    TaskStatus.READY: frozenset({TaskStatus.CLAIMED, *_GIVEN_UP}),
    TaskStatus.CLAIMED: frozenset(
        {
            TaskStatus.RUNNING,
            TaskStatus.READY,
            TaskStatus.BLOCKED,
            TaskStatus.COMPLETED,
            TaskStatus.FAILED,
            TaskStatus.CANCELLED,
        }
    ),
    TaskStatus.RUNNING: frozenset(
        {
            TaskStatus.COMPLETED,
            TaskStatus.FAILED,
            TaskStatus.BLOCKED,
            TaskStatus.READY,
            TaskStatus.CANCELLED,
        }
    ),
    TaskStatus.BLOCKED: frozenset(
        {
            TaskStatus.READY,
            TaskStatus.CLAIMED,
            TaskStatus.RUNNING,
            TaskStatus.FAILED,
            TaskStatus.CANCELLED,
            TaskStatus.SKIPPED,
        }
    ),
    TaskStatus.COMPLETED: frozenset(),
    TaskStatus.FAILED: frozenset({TaskStatus.READY}),
    TaskStatus.CANCELLED: frozenset(),
    TaskStatus.SKIPPED: frozenset(),
}
"""Where a task may go from each state. From `failed` it goes back only to be tried again."""


class MemoryPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How working memory behaves for a task (RFC-0015 section 6.5).

    max_total_size_kb: of the values' JSON text, in units of 1,024 bytes
    """

    archive_on_completion: bool = True
    inherit_from_parent: bool = False
    max_entries: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    max_total_size_kb: Annotated[int, Meta(ge=0, le=1_000_000_000)] | None = None


class Assignment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody's time with a task; a task keeps all of them.

    accepted_at: when the agent itself took it up, which is what opens its own memory to the task's
        coordinator: being assigned something is nobody's own doing
    """

    agent_id: str
    assigned_by: str
    assigned_at: str
    accepted_at: str | None = None
    ended_at: str | None = None


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A bounded piece of work for an intent. The last assignment without an end is the present.

    others: the fields of RFC-0012 that do not concern memory; kept and given back
    """

    tenant: str
    id: str
    intent_id: str
    name: str
    description: str | None = None
    status: TaskStatus = TaskStatus.READY
    priority: str = "normal"
    input: dict[str, Any] = {}
    output: dict[str, Any] | None = None
    error: str | None = None
    blocked_reason: str | None = None
    assigned_agent: str | None = None
    assignments: tuple[Assignment, ...] = ()
    capabilities_required: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    parent_task_id: str | None = None
    memory_policy: MemoryPolicy = MemoryPolicy()
    attempt: int = 1
    max_attempts: int = 3
    metadata: dict[str, Any] = {}
    others: dict[str, Any] = {}
    version: int = 1
    created_by: str
    created_at: str
    updated_at: str
    started_at: str | None = None
    completed_at: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more is done on it, unless it is tried again."""
        return self.status in ENDS

    @property
    def is_under_way(self) -> bool:
        """Whether somebody has taken it up."""
        return self.status in _UNDER_WAY

    @property
    def is_accepted(self) -> bool:
        """Whether the agent it is assigned to has taken it up itself."""
        return bool(self.assignments) and (
            self.assignments[-1].ended_at is None and self.assignments[-1].accepted_at is not None
        )
