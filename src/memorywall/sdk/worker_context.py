"""What a Worker's function is given (RFC-0015 "Worker Context")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memorywall.sdk.client import AsyncClient, Client
from memorywall.sdk.client_state import ClientState
from memorywall.sdk.worker_lease import InterruptGuard, LeaseState
from memorywall.sdk.worker_memory import AsyncTaskMemoryClient, TaskMemoryClient, TaskMemoryCore
from memorywall.wire.agents import EventResponse
from memorywall.wire.work import TaskResponse


class TaskBlocked(Exception):
    """The task cannot go on for now. It is left blocked, its memory as it is, for whoever
    coordinates it to make ready again."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class BareContext:
    """What a task's context has in either colour.

    task: the task, as it was when work on it began
    agent_id: who works on it
    resumed: whether somebody has worked on it before, so that there may be memory to go on from
    """

    def __init__(
        self, task: TaskResponse, lease: LeaseState, guard: InterruptGuard, *, resumed: bool
    ) -> None:
        self.task = task
        self.agent_id = task.assigned_agent or ""
        self.resumed = resumed
        self._lease = lease
        self._guard = guard

    @property
    def input(self) -> dict[str, Any]:
        """What the task was given to work with."""
        return self.task.input

    @property
    def attempt(self) -> int:
        """How often it has been tried, this time included."""
        return self.task.attempt

    @property
    def lost(self) -> bool:
        """Whether the task is this worker's no more. Stop then: nothing written is taken."""
        return self._lease.lost

    @property
    def stopping(self) -> bool:
        """Whether the worker has been asked to stop. Return soon, or be interrupted."""
        return self._guard.stopping

    @property
    def fencing_token(self) -> int:
        """The token of the task's lease, for systems beyond this one that heed it."""
        return self._lease.token

    def blocked(self, reason: str = "") -> TaskBlocked:
        """What to raise when the task has to wait: `raise ctx.blocked("no approval yet")`."""
        return TaskBlocked(reason)

    def _memory(self, state: ClientState) -> TaskMemoryCore:
        # Whoever is given a task knows who it is; that saves asking.
        state.agent = state.agent or self.task.assigned_agent
        return TaskMemoryCore(state, self.task, self._lease, self._guard)

    def _event(self, payload: Mapping[str, Any] | None) -> dict[str, Any]:
        self._lease.check()
        return {"task_id": self.task.id, **(payload or {})}


class TaskContext(BareContext):
    """What the function of a Worker is given. Good for as long as it runs.

    memory: memory, where working memory is that of the task
    client: a client whose writes carry the task's fencing token
    claims: its claims on keys of shared state
    """

    def __init__(
        self,
        client: Client,
        task: TaskResponse,
        lease: LeaseState,
        guard: InterruptGuard,
        *,
        resumed: bool,
    ) -> None:
        super().__init__(task, lease, guard, resumed=resumed)
        self.client = client.scoped(task_id=task.id, fencing_token=lease.token)
        self.claims = self.client.claims
        self.memory = TaskMemoryClient(self._memory(self.client._state), client._executor)

    def log(self, event_type: str, payload: Mapping[str, Any] | None = None) -> EventResponse:
        """Appends an event to the intent's log, with the task's id. Raises FencedError when the
        task is lost."""
        return self.client.intents.log(self.task.intent_id, event_type, self._event(payload))


class AsyncTaskContext(BareContext):
    """The twin of `TaskContext` for an `async` function."""

    def __init__(
        self,
        client: AsyncClient,
        task: TaskResponse,
        lease: LeaseState,
        guard: InterruptGuard,
        *,
        resumed: bool,
    ) -> None:
        super().__init__(task, lease, guard, resumed=resumed)
        self.client = client.scoped(task_id=task.id, fencing_token=lease.token)
        self.claims = self.client.claims
        self.memory = AsyncTaskMemoryClient(self._memory(self.client._state), client._executor)

    async def log(self, event_type: str, payload: Mapping[str, Any] | None = None) -> EventResponse:
        """Appends an event to the intent's log, with the task's id. Raises FencedError when the
        task is lost."""
        event = self._event(payload)
        return await self.client.intents.log(self.task.intent_id, event_type, event)
