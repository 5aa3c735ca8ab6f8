"""The context that a worker's function receives (RFC-0015 "Worker Context")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memorywall.kinds.working_memory import WorkingPolicy
from memorywall.sdk.client import AsyncClient, Client
from memorywall.sdk.client_state import ClientState
from memorywall.sdk.worker_episode import EpisodeRecorder
from memorywall.sdk.worker_lease import InterruptGuard, LeaseState
from memorywall.sdk.worker_memory import AsyncTaskMemoryClient, TaskMemoryClient, TaskMemoryCore
from memorywall.sdk.working_memory import AsyncWorkingStep, WorkingStep
from memorywall.wire.events import EventResponse
from memorywall.wire.tasks import TaskResponse


class TaskBlocked(Exception):
    """The task cannot continue now. It becomes blocked, with its memory unchanged, until its
    coordinator makes it ready again."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class BareContext:
    """The parts of a task context that sync and async share.

    task: the task at the start of the work
    agent_id: the worker's agent
    resumed: whether an agent worked on the task before, so that it may have stored memory
    episode: records what long-term memory keeps of the run; nothing is kept without a record
    """

    def __init__(
        self,
        task: TaskResponse,
        lease: LeaseState,
        guard: InterruptGuard,
        *,
        resumed: bool,
        episode: EpisodeRecorder,
    ) -> None:
        self.task = task
        self.agent_id = task.assigned_agent or ""
        self.resumed = resumed
        self.episode = episode
        self._lease = lease
        self._guard = guard

    @property
    def input(self) -> dict[str, Any]:
        """The input of the task."""
        return self.task.input

    @property
    def attempt(self) -> int:
        """The number of attempts, including this one."""
        return self.task.attempt

    @property
    def lost(self) -> bool:
        """Whether the worker has lost the task. The function should stop then: all its writes are
        refused."""
        return self._lease.lost

    @property
    def stopping(self) -> bool:
        """Whether the worker must stop. The function should return soon; otherwise it is
        interrupted."""
        return self._guard.stopping

    @property
    def fencing_token(self) -> int:
        """The token of the task's lease, for external systems that check it."""
        return self._lease.token

    def blocked(self, reason: str = "") -> TaskBlocked:
        """Returns an exception that blocks the task: `raise ctx.blocked("no approval yet")`."""
        return TaskBlocked(reason)

    def _memory(self, state: ClientState) -> TaskMemoryCore:
        # The claim already names the agent, so no request is necessary.
        state.agent = state.agent or self.task.assigned_agent
        return TaskMemoryCore(state, self.task, self._lease, self._guard)

    def _event(self, payload: Mapping[str, Any] | None) -> dict[str, Any]:
        self._lease.check()
        return {"task_id": self.task.id, **(payload or {})}


class TaskContext(BareContext):
    """The context that a worker's function receives. Valid while the function runs.

    memory: memory; working memory is that of the task
    client: a client whose writes carry the task's fencing token
    claims: that client's claims on keys of shared state
    """

    def __init__(
        self,
        client: Client,
        task: TaskResponse,
        lease: LeaseState,
        guard: InterruptGuard,
        *,
        resumed: bool,
        episode: EpisodeRecorder,
    ) -> None:
        super().__init__(task, lease, guard, resumed=resumed, episode=episode)
        self.client = client.scoped(task_id=task.id, fencing_token=lease.token)
        self.claims = self.client.claims
        self.memory = TaskMemoryClient(self._memory(self.client._state), client.driver)

    def step(
        self, goal: str = "", policy: WorkingPolicy | Mapping[str, Any] | None = None
    ) -> WorkingStep:
        """Returns a step of the task for a `with` statement; see `client.tasks.step`."""
        return self.client.tasks.step(self.task, goal, policy)

    def log(self, event_type: str, payload: Mapping[str, Any] | None = None) -> EventResponse:
        """Appends an event with the task's id to the intent's log. Raises FencedError if the task
        is lost."""
        return self.client.intents.log(self.task.intent_id, event_type, self._event(payload))


class AsyncTaskContext(BareContext):
    """The async variant of `TaskContext`."""

    def __init__(
        self,
        client: AsyncClient,
        task: TaskResponse,
        lease: LeaseState,
        guard: InterruptGuard,
        *,
        resumed: bool,
        episode: EpisodeRecorder,
    ) -> None:
        super().__init__(task, lease, guard, resumed=resumed, episode=episode)
        self.client = client.scoped(task_id=task.id, fencing_token=lease.token)
        self.claims = self.client.claims
        self.memory = AsyncTaskMemoryClient(self._memory(self.client._state), client.driver)

    def step(
        self, goal: str = "", policy: WorkingPolicy | Mapping[str, Any] | None = None
    ) -> AsyncWorkingStep:
        """Returns a step of the task for an `async with` statement; see `client.tasks.step`."""
        return self.client.tasks.step(self.task, goal, policy)

    async def log(self, event_type: str, payload: Mapping[str, Any] | None = None) -> EventResponse:
        """Appends an event with the task's id to the intent's log. Raises FencedError if the task
        is lost."""
        event = self._event(payload)
        return await self.client.intents.log(self.task.intent_id, event_type, event)
