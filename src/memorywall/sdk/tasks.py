"""`client.tasks`: tasks and their assignment, claims and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from memorywall.kinds.episodes import EpisodeReport
from memorywall.kinds.working_memory import WorkingPolicy
from memorywall.records.errors import FencedError, MemoryNotFoundError
from memorywall.records.task import MemoryPolicy
from memorywall.sdk import retry
from memorywall.sdk.client_state import ClientState
from memorywall.sdk.effects import Request, RequestGenerator
from memorywall.sdk.errors import decode
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.fencing import fencing_token_of
from memorywall.sdk.filters import without_absent
from memorywall.sdk.retry import call
from memorywall.sdk.working_memory import (
    AsyncWorkingMemoryClient,
    AsyncWorkingStep,
    WorkingMemoryClient,
    WorkingMemoryCore,
    WorkingStep,
)
from memorywall.wire.leases import LeaseResponse
from memorywall.wire.tasks import ClaimedTaskResponse, TaskResponse


class TasksCore:
    """The operations on tasks, as request generators."""

    def __init__(self, state: ClientState) -> None:
        self._state = state

    def create(
        self,
        intent_id: str,
        name: str,
        *,
        description: str | None = None,
        assigned_agent: str | None = None,
        capabilities_required: Sequence[str] = (),
        depends_on: Sequence[str] = (),
        input: Mapping[str, Any] | None = None,
        parent_task_id: str | None = None,
        memory_policy: MemoryPolicy | Mapping[str, Any] | None = None,
        priority: str | None = None,
        max_attempts: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        others: Mapping[str, Any] | None = None,
    ) -> RequestGenerator[TaskResponse]:
        """Creates a task for an intent: ready, or pending until all its dependencies are completed.

        others: fields of RFC-0012 that are only stored, such as `plan_id`, `timeout_seconds`
        """
        body = without_absent(
            {
                "intent_id": intent_id,
                "name": name,
                "description": description,
                "assigned_agent": assigned_agent,
                "capabilities_required": list(capabilities_required),
                "depends_on": list(depends_on),
                "input": input,
                "parent_task_id": parent_task_id,
                "memory_policy": memory_policy,
                "priority": priority,
                "max_attempts": max_attempts,
                "metadata": metadata,
                **(others or {}),
            }
        )
        return call("create_task", TaskResponse, body=body)

    def get(self, task_id: str) -> RequestGenerator[TaskResponse]:
        """Returns a task. Raises ResourceNotFoundError, MemoryAccessError."""
        return call("get_task", TaskResponse, task_id=task_id)

    def list(
        self,
        *,
        intent_id: str | None = None,
        assigned_agent: str | None = None,
        status: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> RequestGenerator[Sequence[TaskResponse]]:
        """Returns the tasks of an intent, or the tasks that are assigned to an agent (default: the
        client's own); oldest first, 100 by default."""
        query = {"status": status, "limit": limit, "offset": offset or None}
        if intent_id is not None and assigned_agent is None:
            return call("list_intent_tasks", list[TaskResponse], intent_id=intent_id, query=query)
        query = {"intent_id": intent_id, "assigned_agent": assigned_agent, **query}
        return call("list_tasks", list[TaskResponse], query=query)

    def next(
        self,
        capabilities: Sequence[str] = (),
        intent_id: str | None = None,
        lease_seconds: int = 30,
    ) -> RequestGenerator[ClaimedTaskResponse | None]:
        """Claims the oldest task that this client can do, or returns None if there is none.

        capabilities: the capabilities of the agent; intent_id: only tasks of this intent

        The claim lasts `lease_seconds`, and longer with `renew`. Writes for the task must carry
        `lease.fencing_token`: see `client.scoped`. If the response is lost, the task may remain
        claimed until the lease expires.
        """
        body = without_absent(
            {
                "capabilities": list(capabilities),
                "intent_id": intent_id,
                "lease_seconds": lease_seconds,
            }
        )
        response = yield from retry.send_if_unsent(Request(operation="next_task", body=body))
        return None if response.status == 204 else decode(response, ClaimedTaskResponse)

    def claim(self, task_id: str, lease_seconds: int = 30) -> RequestGenerator[ClaimedTaskResponse]:
        """Claims a task that is assigned to this client or to no agent; see `next`.

        Raises LeaseHeldError while the task is claimed, TransitionError if the task is not ready.
        """
        body = {"lease_seconds": lease_seconds}
        return call("claim_task", ClaimedTaskResponse, task_id=task_id, body=body)

    def renew(
        self, task_id: str, fencing_token: int | None = None, duration_seconds: int = 30
    ) -> RequestGenerator[LeaseResponse]:
        """Renews the lease on a task for `duration_seconds` from now. Raises FencedError if it is
        over."""
        return call(
            "renew_task_lease",
            LeaseResponse,
            task_id=task_id,
            fencing_token=fencing_token_of(self._state, fencing_token),
            body={"duration_seconds": duration_seconds},
        )

    def release(self, task_id: str, fencing_token: int | None = None) -> RequestGenerator[None]:
        """Releases a task, which becomes ready again. Raises FencedError if the lease is over."""
        return retry.remove(
            "release_task",
            task_id=task_id,
            fencing_token=fencing_token_of(self._state, fencing_token),
            gone=(FencedError, MemoryNotFoundError),
        )

    def update(
        self,
        task: TaskResponse | str,
        *,
        version: int | None = None,
        fencing_token: int | None = None,
        status: str | UnsetType = UNSET,
        assigned_agent: str | UnsetType | None = UNSET,
        output: Mapping[str, Any] | UnsetType | None = UNSET,
        error: str | UnsetType | None = UNSET,
        blocked_reason: str | UnsetType | None = UNSET,
        metadata: Mapping[str, Any] | UnsetType = UNSET,
        episode: EpisodeReport | Mapping[str, Any] | UnsetType = UNSET,
    ) -> RequestGenerator[TaskResponse]:
        """Updates a task; omitted fields do not change.

        task: the task as it was read, or its id, which is read first unless `version` is given
        fencing_token: the token of the task's lease, if it is not the client's own

        episode: what long-term memory keeps of the run, with a status that completes or fails the
            task, such as `{"actions": [{"tool": "refund"}], "evaluation": {"correctness": 1}}`

        Raises ResourceConflictError if the task has another version, TransitionError if the
        transition is not allowed, FencedError if the lease is over.
        """
        task_id = task if isinstance(task, str) else task.id
        if version is None:
            read = task if isinstance(task, TaskResponse) else (yield from self.get(task_id))
            version = read.version
        given = {
            "status": status,
            "assigned_agent": assigned_agent,
            "output": output,
            "error": error,
            "blocked_reason": blocked_reason,
            "metadata": metadata,
        }
        shown = {name: one for name, one in given.items() if one is not UNSET}
        # No reply shows the episode: it is stored with the change of the status.
        fields = shown if episode is UNSET else {**shown, "episode": episode}
        return (
            yield from retry.change(
                Request(
                    operation="update_task",
                    path={"task_id": task_id},
                    if_match=version,
                    fencing_token=fencing_token_of(self._state, fencing_token),
                    body=fields,
                ),
                TaskResponse,
                self.get(task_id),
                lambda current: current.version == version + 1 and _has_fields(current, shown),
            )
        )

    def complete(
        self,
        task: TaskResponse | str,
        output: Mapping[str, Any] | None = None,
        *,
        version: int | None = None,
        fencing_token: int | None = None,
        episode: EpisodeReport | Mapping[str, Any] | UnsetType = UNSET,
    ) -> RequestGenerator[TaskResponse]:
        """Completes a task; its working memory is archived. See `update`."""
        return self.update(
            task,
            version=version,
            fencing_token=fencing_token,
            status="completed",
            output=UNSET if output is None else output,
            episode=episode,
        )

    def fail(
        self,
        task: TaskResponse | str,
        error: str,
        *,
        version: int | None = None,
        fencing_token: int | None = None,
        episode: EpisodeReport | Mapping[str, Any] | UnsetType = UNSET,
    ) -> RequestGenerator[TaskResponse]:
        """Sets a task to failed, with a reason. See `update`."""
        return self.update(
            task,
            version=version,
            fencing_token=fencing_token,
            status="failed",
            error=error,
            episode=episode,
        )

    def cancel(
        self, task: TaskResponse | str, *, version: int | None = None
    ) -> RequestGenerator[TaskResponse]:
        """Cancels a task, as an administrator or coordinator of its intent. See `update`."""
        return self.update(task, version=version, status="cancelled")

    def assign(
        self, task: TaskResponse | str, agent_id: str | None, *, version: int | None = None
    ) -> RequestGenerator[TaskResponse]:
        """Assigns a task to an agent, or with None to no agent. Further writes of the previous
        agent raise FencedError. See `update`."""
        return self.update(task, version=version, assigned_agent=agent_id)


def _has_fields(task: TaskResponse, fields: Mapping[str, Any]) -> bool:
    held = msgspec.to_builtins(task)
    return all(retry.is_same(sent, held.get(name)) for name, sent in fields.items())


class _TasksMethods:
    create = method(TasksCore.create)
    get = method(TasksCore.get)
    list = method(TasksCore.list)
    next = method(TasksCore.next)
    claim = method(TasksCore.claim)
    renew = method(TasksCore.renew)
    release = method(TasksCore.release)
    update = method(TasksCore.update)
    complete = method(TasksCore.complete)
    fail = method(TasksCore.fail)
    cancel = method(TasksCore.cancel)
    assign = method(TasksCore.assign)


class TasksClient(_TasksMethods, Facade[TasksCore]):
    """Creates, assigns, claims and completes tasks."""

    def step(
        self,
        task: TaskResponse | str,
        goal: str = "",
        policy: WorkingPolicy | Mapping[str, Any] | None = None,
    ) -> WorkingStep:
        """Returns a step of a task for a `with` statement, which begins and ends it.

        task: the task as it was read, or its id
        goal, policy: see `client.working.begin`
        """
        task_id = task if isinstance(task, str) else task.id
        working = WorkingMemoryClient(WorkingMemoryCore(self.core._state), self.driver)
        return WorkingStep(working, task_id, goal, policy)


class AsyncTasksClient(_TasksMethods, AsyncFacade[TasksCore]):
    """Creates, assigns, claims and completes tasks."""

    def step(
        self,
        task: TaskResponse | str,
        goal: str = "",
        policy: WorkingPolicy | Mapping[str, Any] | None = None,
    ) -> AsyncWorkingStep:
        task_id = task if isinstance(task, str) else task.id
        working = AsyncWorkingMemoryClient(WorkingMemoryCore(self.core._state), self.driver)
        return AsyncWorkingStep(working, task_id, goal, policy)

    step.__doc__ = TasksClient.step.__doc__
