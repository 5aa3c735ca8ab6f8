"""`client.tasks`: work that is given out, taken up and done, in no colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from memorywall.records.errors import FencedError, MemoryNotFoundError
from memorywall.records.task import MemoryPolicy
from memorywall.sdk import exchange
from memorywall.sdk.fencing import fencing_headers
from memorywall.sdk.filters import without_absent
from memorywall.sdk.problems import decode, decode_json, raise_for
from memorywall.sdk.session import Session
from memorywall.sdk.steps import Request, Script, part
from memorywall.wire.leases import LeaseView
from memorywall.wire.work import TakenTask, TaskView

_TASKS = "/api/v1/tasks"


class TasksLogic:
    """The operations on tasks, as scripts for a driver."""

    def __init__(self, session: Session) -> None:
        self._session = session

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
    ) -> Script[TaskView]:
        """Makes a task for an intent: ready to be taken up, or pending until every task it depends
        on is completed.

        others: the fields of RFC-0012 that are only kept, such as `plan_id`, `timeout_seconds`
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
        response = yield from exchange.once(
            Request(method="POST", path=_TASKS, body=exchange.encode(body))
        )
        return decode(response, TaskView)

    def get(self, task_id: str) -> Script[TaskView]:
        """A task. Raises ResourceNotFoundError, MemoryAccessError."""
        response = yield from exchange.again(Request(method="GET", path=_path(task_id)))
        return decode(response, TaskView)

    def list(
        self,
        *,
        intent_id: str | None = None,
        assigned_agent: str | None = None,
        status: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> Script[Sequence[TaskView]]:
        """The tasks of an intent, or else those assigned to an agent, by default the client's own;
        oldest first, 100 if no limit is given."""
        path = _TASKS
        if intent_id is not None and assigned_agent is None:
            path, intent_id = f"/api/v1/intents/{part(intent_id)}/tasks", None
        params = without_absent(
            {
                "intent_id": intent_id,
                "assigned_agent": assigned_agent,
                "status": status,
                "limit": limit,
                "offset": offset or None,
            }
        )
        response = yield from exchange.again(
            Request(
                method="GET",
                path=path,
                params={name: str(value) for name, value in params.items()},
            )
        )
        return decode(response, list[TaskView])

    def next(
        self,
        capabilities: Sequence[str] = (),
        intent_id: str | None = None,
        lease_seconds: int = 30,
    ) -> Script[TakenTask | None]:
        """Takes up the oldest task this client can do, or returns None where there is none.

        capabilities: what it can do; intent_id: only tasks of this intent
        The task is its own for `lease_seconds`, and longer with `renew`. What is written for the
        task until then carries `lease.fencing_token`: see `client.scoped`. A reply that is lost may
        leave a task taken up until that time is over.
        """
        body = without_absent(
            {
                "capabilities": list(capabilities),
                "intent_id": intent_id,
                "lease_seconds": lease_seconds,
            }
        )
        response = yield from exchange.if_unsent(
            Request(method="POST", path=_TASKS + "/next", body=exchange.encode(body))
        )
        raise_for(response)
        return None if response.status == 204 else decode_json(response.body, TakenTask)

    def claim(self, task_id: str, lease_seconds: int = 30) -> Script[TakenTask]:
        """Takes a task up that is assigned to this client or to nobody; see `next`.

        Raises HeldError while it is taken up, TransitionError when there is nothing to do on it.
        """
        response = yield from exchange.if_unsent(
            Request(
                method="POST",
                path=_path(task_id, "claim"),
                body=exchange.encode({"lease_seconds": lease_seconds}),
            )
        )
        return decode(response, TakenTask)

    def renew(
        self, task_id: str, fencing_token: int | None = None, duration_seconds: int = 30
    ) -> Script[LeaseView]:
        """Holds a task `duration_seconds` more from now. Raises FencedError when it is over."""
        response = yield from exchange.again(
            Request(
                method="PATCH",
                path=_path(task_id, "lease"),
                headers=fencing_headers(self._session, fencing_token),
                body=exchange.encode({"duration_seconds": duration_seconds}),
            )
        )
        return decode(response, LeaseView)

    def release(self, task_id: str, fencing_token: int | None = None) -> Script[None]:
        """Gives a task back, to be ready again. Raises FencedError when it is held no more."""
        yield from exchange.remove(
            _path(task_id, "lease"),
            fencing_headers(self._session, fencing_token),
            gone=(FencedError, MemoryNotFoundError),
        )

    def update(
        self,
        task: TaskView | str,
        *,
        version: int | None = None,
        fencing_token: int | None = None,
        status: str | UnsetType = UNSET,
        assigned_agent: str | UnsetType | None = UNSET,
        output: Mapping[str, Any] | UnsetType | None = UNSET,
        error: str | UnsetType | None = UNSET,
        blocked_reason: str | UnsetType | None = UNSET,
        metadata: Mapping[str, Any] | UnsetType = UNSET,
    ) -> Script[TaskView]:
        """Changes a task; what is left out stays as it is.

        task: as it was read, or its id, which is read first unless `version` is given
        fencing_token: of the lease it is worked on under, where that is not the client's own
        Raises ResourceConflictError when the task has another version by now, TransitionError
        when it cannot go to that status, FencedError when it is held no more.
        """
        task_id = task if isinstance(task, str) else task.id
        if version is None:
            read = task if isinstance(task, TaskView) else (yield from self.get(task_id))
            version = read.version
        given = {
            "status": status,
            "assigned_agent": assigned_agent,
            "output": output,
            "error": error,
            "blocked_reason": blocked_reason,
            "metadata": metadata,
        }
        fields = {name: one for name, one in given.items() if one is not UNSET}
        fence = fencing_headers(self._session, fencing_token)
        return (
            yield from exchange.change(
                Request(
                    method="PATCH",
                    path=_path(task_id),
                    headers={"If-Match": str(version), **fence},
                    body=exchange.encode(fields),
                ),
                TaskView,
                _path(task_id),
                lambda current: current.version == version + 1 and _holds(current, fields),
            )
        )

    def complete(
        self,
        task: TaskView | str,
        output: Mapping[str, Any] | None = None,
        *,
        version: int | None = None,
        fencing_token: int | None = None,
    ) -> Script[TaskView]:
        """Says that a task is done; its working memory goes to the archive. See `update`."""
        return (
            yield from self.update(
                task,
                version=version,
                fencing_token=fencing_token,
                status="completed",
                output=UNSET if output is None else output,
            )
        )

    def fail(
        self,
        task: TaskView | str,
        error: str,
        *,
        version: int | None = None,
        fencing_token: int | None = None,
    ) -> Script[TaskView]:
        """Says that a task has failed, and why. See `update`."""
        return (
            yield from self.update(
                task, version=version, fencing_token=fencing_token, status="failed", error=error
            )
        )

    def cancel(self, task: TaskView | str, *, version: int | None = None) -> Script[TaskView]:
        """Calls a task off, as who administers or coordinates its intent. See `update`."""
        return (yield from self.update(task, version=version, status="cancelled"))

    def assign(
        self, task: TaskView | str, agent_id: str | None, *, version: int | None = None
    ) -> Script[TaskView]:
        """Gives a task to an agent, or with None to nobody. Whoever works on it is stopped: what it
        writes from now on raises FencedError. See `update`."""
        return (yield from self.update(task, version=version, assigned_agent=agent_id))


def _path(task_id: str, *parts: str) -> str:
    return "/".join((_TASKS, part(task_id), *parts))


def _holds(task: TaskView, fields: Mapping[str, Any]) -> bool:
    held = msgspec.to_builtins(task)
    return all(exchange.is_same(sent, held.get(name)) for name, sent in fields.items())
