"""Tasks and their claims."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memorywall.kinds.episodes import EpisodeReport
from memorywall.records.copier import copier
from memorywall.records.errors import (
    LeaseHeldError,
    MemoryCapacityError,
    ResourceConflictError,
    ResourceNotFoundError,
    TransitionError,
)
from memorywall.records.task import TERMINAL_STATUSES, Assignment, MemoryPolicy, Task, TaskStatus
from memorywall.wire.intents import Offset, PageLimit
from memorywall.wire.leases import LeaseRenewalRequest, LeaseResponse, Seconds
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup


class TaskRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new task. The server stores and returns the fields after `metadata` without using them."""

    intent_id: str
    name: str
    description: str | None = None
    parent_task_id: str | None = None
    memory_policy: MemoryPolicy | None = None
    assigned_agent: str | None = None
    capabilities_required: list[str] = []
    depends_on: list[str] = []
    input: dict[str, Any] = {}
    priority: Annotated[str, Meta(max_length=64)] = "normal"
    max_attempts: Annotated[int, Meta(ge=1, le=1_000)] = 3
    metadata: dict[str, Any] = {}
    plan_id: str | None = None
    permissions: str | None = None
    timeout_seconds: int | None = None
    retry_policy: str | None = None
    artifacts: list[str] | None = None
    blocks: list[str] | None = None
    requires_tools: list[dict[str, Any]] | None = None


KEPT_TASK_FIELDS = (
    "plan_id",
    "permissions",
    "timeout_seconds",
    "retry_policy",
    "artifacts",
    "blocks",
    "requires_tools",
)


class TaskPatchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An update of a task. `state` is an alias of `status`."""

    status: TaskStatus | UnsetType = UNSET
    state: TaskStatus | UnsetType = UNSET
    assigned_agent: str | UnsetType | None = UNSET
    output: dict[str, Any] | UnsetType | None = UNSET
    error: Annotated[str, Meta(max_length=65_536)] | UnsetType | None = UNSET
    blocked_reason: Annotated[str, Meta(max_length=65_536)] | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    episode: Annotated[
        EpisodeReport | UnsetType,
        Meta(description="What long-term memory keeps of the run, with the status that ends it."),
    ] = UNSET

    @property
    def ends(self) -> bool:
        """Whether the update ends the task, which archives its memory and may take long."""
        return bool(TERMINAL_STATUSES & {self.status, self.state})


class TaskResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task. `state` (the name in RFC-0012) and `status` (the name in clients) are equal."""

    id: str
    intent_id: str
    name: str
    version: int
    state: TaskStatus
    status: TaskStatus
    description: str | None = None
    priority: str
    input: dict[str, Any]
    output: dict[str, Any] | None = None
    error: str | None = None
    blocked_reason: str | None = None
    assigned_agent: str | None = None
    assignments: tuple[Assignment, ...]
    capabilities_required: tuple[str, ...]
    depends_on: tuple[str, ...]
    parent_task_id: str | None = None
    memory_policy: MemoryPolicy
    attempt: int
    max_attempts: int
    metadata: dict[str, Any]
    created_by: str
    created_at: str
    updated_at: str
    started_at: str | None = None
    completed_at: str | None = None
    plan_id: str | None = None
    permissions: str | None = None
    timeout_seconds: int | None = None
    retry_policy: str | None = None
    artifacts: list[str] | None = None
    blocks: list[str] | None = None
    requires_tools: list[dict[str, Any]] | None = None


_task = copier(Task, TaskResponse, state="status", defaults=KEPT_TASK_FIELDS)


def task_view(task: Task) -> TaskResponse:
    """The wire form of a task."""
    if task.sealed is not None:
        raise ValueError("the fields of this task are sealed; open it first")
    return _task(task, **task.others)


class TaskQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects tasks of an intent."""

    status: TaskStatus | None = None
    limit: PageLimit = 100
    offset: Offset = 0


class AgentTaskQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects tasks of an agent, by default the caller."""

    assigned_agent: str | None = None
    intent_id: str | None = None
    status: TaskStatus | None = None
    limit: PageLimit = 100
    offset: Offset = 0


class NextTaskRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The caller's capabilities, and the lease to acquire.

    lease_seconds: the time to live of the lease, in seconds
    """

    capabilities: list[str] = []
    intent_id: str | None = None
    lease_seconds: Seconds = 30


class ClaimTaskRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The lease to acquire.

    lease_seconds: the time to live of the lease, in seconds
    """

    lease_seconds: Seconds = 30


class ClaimedTaskResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A claimed task with its lease."""

    task: TaskResponse
    lease: LeaseResponse


_TASKS = OperationGroup(name="Tasks", source="RFC-0012")

TASK_OPERATIONS: tuple[Operation, ...] = (
    _TASKS(
        "list_intent_tasks",
        "GET /intents/{intent_id}/tasks",
        "List the tasks of an intent, oldest first.",
        query=TaskQuery,
        reply=list[TaskResponse],
    ),
    _TASKS(
        "create_task",
        "POST /tasks",
        "Create a task for an intent.",
        body=TaskRequest,
        reply=TaskResponse,
        status=201,
        accepts_idempotency_key=True,
        etag=True,
        raises=(ResourceNotFoundError, MemoryCapacityError),
    ),
    _TASKS(
        "list_tasks",
        "GET /tasks",
        "List the tasks of an agent, oldest first.",
        source="memorywall",
        query=AgentTaskQuery,
        reply=list[TaskResponse],
        raises=(ResourceNotFoundError,),
    ),
    _TASKS(
        "next_task",
        "POST /tasks/next",
        "Claim the oldest task that the caller can do; 204 if there is none.",
        source="memorywall",
        body=NextTaskRequest,
        reply=ClaimedTaskResponse,
        empty=True,
    ),
    _TASKS("get_task", "GET /tasks/{task_id}", "Get a task.", reply=TaskResponse, etag=True),
    _TASKS(
        "update_task",
        "PATCH /tasks/{task_id}",
        "Change the status of a task, assign it, or report its result.",
        body=TaskPatchRequest,
        reply=TaskResponse,
        if_match="required",
        etag=True,
        raises=(ResourceConflictError, TransitionError),
    ),
    _TASKS(
        "claim_task",
        "POST /tasks/{task_id}/claim",
        "Claim a task.",
        source="memorywall",
        body=ClaimTaskRequest,
        reply=ClaimedTaskResponse,
        raises=(LeaseHeldError, TransitionError),
    ),
    _TASKS(
        "renew_task_lease",
        "PATCH /tasks/{task_id}/lease",
        "Renew the lease on a task.",
        source="memorywall",
        body=LeaseRenewalRequest,
        reply=LeaseResponse,
        not_found=(),
    ),
    _TASKS(
        "release_task",
        "DELETE /tasks/{task_id}/lease",
        "Release a task, which becomes ready again.",
        source="memorywall",
    ),
)
