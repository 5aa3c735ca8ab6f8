"""Tasks, their nine states and their assignments (RFC-0012, RFC-0015 section 6.5)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memorywall.records.sealed import SealedPart


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


TERMINAL_STATUSES = frozenset(
    {TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED, TaskStatus.SKIPPED}
)
_UNDER_WAY = frozenset({TaskStatus.CLAIMED, TaskStatus.RUNNING, TaskStatus.BLOCKED})
SESSION_FIELD = "session_id"
"""The member of a task's `metadata` that names the session which the task belongs to."""
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
"""The allowed transitions from each state. From `failed`, a task may only be retried."""


class MemoryPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of a task's working memory (RFC-0015 section 6.5).

    archive_on_completion: whether memory is archived when the task ends, or deleted
    inherit_from_parent: whether the agent may read the memory of the parent task
    max_entries: None for the limit of the server
    max_total_size_kb: of the JSON texts of values, in units of 1,024 bytes; None for no limit
    """

    archive_on_completion: bool = True
    inherit_from_parent: bool = False
    max_entries: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    max_total_size_kb: Annotated[int, Meta(ge=0, le=1_000_000_000)] | None = None


class Assignment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One assignment of a task to an agent; a task stores all of them.

    accepted_at: the instant at which the agent itself accepted the task, None before. Acceptance
        gives the task's coordinator read access to the agent's episodic memory; an assignment by
        others does not.
    """

    agent_id: str
    assigned_by: str
    assigned_at: str
    accepted_at: str | None = None
    ended_at: str | None = None


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work of an intent. The last assignment without an end is the current one.

    others: the fields of RFC-0012 that do not concern memory; stored and returned
    sealed: the input, the results and other fields that agents write, sealed, until they are opened
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
    sealed: SealedPart | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the task has ended; a failed task may still be retried."""
        return self.status in TERMINAL_STATUSES

    @property
    def session_id(self) -> str | None:
        """The session that the task names, None for none. Only an opened task knows it."""
        named = self.metadata.get(SESSION_FIELD)
        return named if isinstance(named, str) else None

    @property
    def is_under_way(self) -> bool:
        """Whether an agent works on the task: claimed, running or blocked."""
        return self.status in _UNDER_WAY

    @property
    def is_accepted(self) -> bool:
        """Whether the assigned agent has accepted the task itself."""
        return bool(self.assignments) and (
            self.assignments[-1].ended_at is None and self.assignments[-1].accepted_at is not None
        )
