"""What a Worker's function is given (RFC-0015 "Worker Context")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memorywall.sdk.client import AsyncClient, Client
from memorywall.sdk.session import Session
from memorywall.sdk.worker_hold import Gate, Hold
from memorywall.sdk.worker_memory import AsyncTaskMemory, TaskMemory, TaskMemoryLogic
from memorywall.wire.agents import EventView
from memorywall.wire.work import TaskView


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

    def __init__(self, task: TaskView, hold: Hold, gate: Gate, *, resumed: bool) -> None:
        self.task = task
        self.agent_id = task.assigned_agent or ""
        self.resumed = resumed
        self._hold = hold
        self._gate = gate

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
        return self._hold.lost

    @property
    def stopping(self) -> bool:
        """Whether the worker has been asked to stop. Return soon, or be interrupted."""
        return self._gate.stopping

    @property
    def fencing_token(self) -> int:
        """The token of the task's lease, for systems beyond this one that heed it."""
        return self._hold.token

    def blocked(self, reason: str = "") -> TaskBlocked:
        """What to raise when the task has to wait: `raise ctx.blocked("no approval yet")`."""
        return TaskBlocked(reason)

    def _memory(self, session: Session) -> TaskMemoryLogic:
        # Whoever is given a task knows who it is; that saves asking.
        session.agent = session.agent or self.task.assigned_agent
        return TaskMemoryLogic(session, self.task, self._hold, self._gate)

    def _event(self, payload: Mapping[str, Any] | None) -> dict[str, Any]:
        self._hold.check()
        return {"task_id": self.task.id, **(payload or {})}


class TaskContext(BareContext):
    """What the function of a Worker is given. Good for as long as it runs.

    memory: memory, where working memory is that of the task
    client: a client whose writes carry the task's fencing token
    claims: its claims on keys of shared state
    """

    def __init__(
        self, client: Client, task: TaskView, hold: Hold, gate: Gate, *, resumed: bool
    ) -> None:
        super().__init__(task, hold, gate, resumed=resumed)
        self.client = client.scoped(task_id=task.id, fencing_token=hold.token)
        self.claims = self.client.claims
        self.memory = TaskMemory(self._memory(self.client._session), client._driver)

    def log(self, event_type: str, payload: Mapping[str, Any] | None = None) -> EventView:
        """Appends an event to the intent's log, with the task's id. Raises FencedError when the
        task is lost."""
        return self.client.intents.log(self.task.intent_id, event_type, self._event(payload))


class AsyncTaskContext(BareContext):
    """The twin of `TaskContext` for an `async` function."""

    def __init__(
        self, client: AsyncClient, task: TaskView, hold: Hold, gate: Gate, *, resumed: bool
    ) -> None:
        super().__init__(task, hold, gate, resumed=resumed)
        self.client = client.scoped(task_id=task.id, fencing_token=hold.token)
        self.claims = self.client.claims
        self.memory = AsyncTaskMemory(self._memory(self.client._session), client._driver)

    async def log(self, event_type: str, payload: Mapping[str, Any] | None = None) -> EventView:
        """Appends an event to the intent's log, with the task's id. Raises FencedError when the
        task is lost."""
        event = self._event(payload)
        return await self.client.intents.log(self.task.intent_id, event_type, event)
