"""Operations on tasks, coordinators and claims."""

from __future__ import annotations

from memorywall.records.errors import (
    FencedError,
    LeaseHeldError,
    MemoryCapacityError,
    ResourceConflictError,
    ResourceNotFoundError,
    TransitionError,
)
from memorywall.wire.leases import (
    LeaseRenewalRequest,
    LeaseResponse,
)
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup
from memorywall.wire.work import (
    AgentTaskQuery,
    ClaimedTaskResponse,
    ClaimTaskRequest,
    CoordinatorRequest,
    CoordinatorResponse,
    NextTaskRequest,
    TaskPatchRequest,
    TaskQuery,
    TaskRequest,
    TaskResponse,
)

_TASKS = OperationGroup(name="Tasks", source="RFC-0012")
_COORDINATORS = OperationGroup(name="Coordinators", source="RFC-0013")

WORK_OPERATIONS: tuple[Operation, ...] = (
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
    _COORDINATORS(
        "list_coordinators",
        "GET /intents/{intent_id}/coordinators",
        "List the coordinators of an intent, former ones too, oldest first.",
        reply=list[CoordinatorResponse],
    ),
    _COORDINATORS(
        "appoint_coordinator",
        "POST /coordinators",
        "Appoint a coordinator for an intent.",
        source="RFC-0013, RFC-0015 section 6.6",
        body=CoordinatorRequest,
        reply=CoordinatorResponse,
        status=201,
        raises=(ResourceNotFoundError, LeaseHeldError),
    ),
    _COORDINATORS(
        "get_coordinator",
        "GET /coordinators/{coordinator_id}",
        "Get a coordinator.",
        reply=CoordinatorResponse,
    ),
    _COORDINATORS(
        "send_heartbeat",
        "POST /coordinators/{coordinator_id}/heartbeat",
        "Send a heartbeat, which renews the coordinator's lease.",
        reply=CoordinatorResponse,
        raises=(FencedError,),
    ),
    _COORDINATORS(
        "resign_coordinator",
        "DELETE /coordinators/{coordinator_id}",
        "Resign as coordinator.",
        raises=(FencedError,),
    ),
)
