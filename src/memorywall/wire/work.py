"""Requests and responses of intents, tasks and coordinators (RFC-0001, RFC-0012, RFC-0013)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memorywall.records.coordinator import Coordinator, Guardrails
from memorywall.records.copier import copier
from memorywall.records.intent import Intent, IntentStatus
from memorywall.records.task import TERMINAL_STATUSES, Assignment, MemoryPolicy, Task, TaskStatus
from memorywall.wire.leases import LeaseResponse, Seconds

PageLimit = Annotated[int, Meta(ge=1, le=1_000)]
Offset = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class IntentRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new intent. `created_by` is optional and must be the caller."""

    title: str
    description: str = ""
    constraints: dict[str, Any] | list[Any] = {}
    state: dict[str, Any] = {}
    created_by: str | None = None
    parent_intent_id: str | None = None
    depends_on: list[str] = []


class IntentResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An intent."""

    id: str
    title: str
    description: str
    version: int
    status: IntentStatus
    state: dict[str, Any]
    constraints: dict[str, Any]
    parent_intent_id: str | None
    depends_on: tuple[str, ...]
    created_by: str
    created_at: str
    updated_at: str
    confidence: int = 0


_intent = copier(Intent, IntentResponse, defaults=["confidence"])


def intent_view(intent: Intent) -> IntentResponse:
    """The wire form of an intent."""
    if intent.sealed is not None:
        raise ValueError("the state of this intent is sealed; open it first")
    return _intent(intent)


class IntentQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects intents."""

    status: IntentStatus | None = None
    limit: PageLimit = 50
    offset: Offset = 0


class IntentListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One page of intents, newest first."""

    intents: list[IntentResponse]
    total: int
    limit: int
    offset: int


class StatePatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One change of an intent's state. `path` is the name of a top-level member."""

    op: Literal["set", "remove"]
    path: Annotated[str, Meta(min_length=1, max_length=256)]
    value: Any = None


class StateRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of an intent's state, all or none."""

    patches: Annotated[list[StatePatch], Meta(min_length=1, max_length=1_000)]


class StatusRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An intent's new status, with an optional reason."""

    status: IntentStatus
    reason: Annotated[str, Meta(max_length=4_096)] | None = None


class EventRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A client event for an intent's log."""

    event_type: str
    payload: dict[str, Any] = {}
    actor: str | None = None
    trace_id: Annotated[str, Meta(max_length=256)] | None = None
    parent_event_id: Annotated[str, Meta(max_length=256)] | None = None


class IntentEventQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects events of an intent's log.

    since: an RFC 3339 instant; only events at or after it
    after: the `seq` of the last event that the client has
    """

    event_type: str | None = None
    since: str | None = None
    after: Annotated[int, Meta(ge=0, le=2**62)] = 0
    limit: PageLimit = 100


class SubscribeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a stream: events after the `seq` in `after`, by default new events only."""

    after: Annotated[int, Meta(ge=0, le=2**62)] | None = None


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


class CoordinatorRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new coordinator of an intent."""

    agent_id: str
    intent_id: str
    guardrails: dict[str, Any] | None = None
    heartbeat_interval_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 60
    expires_at: str | None = None
    role: str = "coordinator"
    coordinator_type: str = "llm"
    scope: Literal["intent"] = "intent"
    supervisor_id: str | None = None
    metadata: dict[str, Any] = {}


class CoordinatorResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A coordinator. `status` is `active`, `unresponsive` (without heartbeats) or `completed`."""

    id: str
    intent_id: str
    agent_id: str
    role: str
    coordinator_type: str
    scope: str
    status: str
    guardrails: dict[str, Any] | None = None
    heartbeat_interval_seconds: int
    last_heartbeat: str
    granted_at: str
    expires_at: str
    fencing_token: int
    supervisor_id: str | None = None
    version: int
    metadata: dict[str, Any]


def guardrails_from(given: dict[str, Any]) -> Guardrails:
    """The guardrails of a request. Guardrails of memory are validated; others are kept unchanged.

    Raises msgspec.ValidationError.
    """
    own = {name for name in Guardrails.__struct_fields__ if name != "others"}
    known = {name: value for name, value in given.items() if name in own}
    others = {name: value for name, value in given.items() if name not in own}
    return msgspec.convert({**known, "others": others}, Guardrails)


_coordinator = copier(
    Coordinator,
    CoordinatorResponse,
    given=["scope", "status", "guardrails"],
    fencing_token=lambda coordinator: coordinator.token,
)


def coordinator_view(coordinator: Coordinator, now: str) -> CoordinatorResponse:
    """The wire form of a coordinator at an instant."""
    status = "active" if now < coordinator.expires_at else "unresponsive"
    if coordinator.resigned_at is not None:
        status = "completed"
    guardrails = None
    if coordinator.guardrails is not None:
        guardrails = msgspec.to_builtins(coordinator.guardrails)
        guardrails["memory_archive_required"] = coordinator.guardrails.memory_archive_required
        guardrails.update(guardrails.pop("others", {}))
    return _coordinator(coordinator, scope="intent", status=status, guardrails=guardrails)
