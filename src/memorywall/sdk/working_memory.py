"""`client.working`: the working memory of tasks, and steps as `with` statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, TypeVar

from msgspec import UNSET

from memorywall.kinds.working_memory import ItemChange, WorkingPolicy
from memorywall.sdk.client_state import ClientState
from memorywall.sdk.effects import Request, RequestGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.fencing import fencing_token_of
from memorywall.sdk.filters import without_absent
from memorywall.sdk.retry import ask, call
from memorywall.wire.working_memory import (
    WorkingItemResponse,
    WorkingLogResponse,
    WorkingMemoryResponse,
)

Client = TypeVar("Client")


class WorkingMemoryCore:
    """The operations on working memory, as request generators."""

    def __init__(self, state: ClientState) -> None:
        self._state = state

    def begin(
        self,
        task_id: str,
        goal: str = "",
        policy: WorkingPolicy | Mapping[str, Any] | None = None,
        *,
        fencing_token: int | None = None,
    ) -> RequestGenerator[WorkingMemoryResponse]:
        """Begins a step of a task.

        goal: what the step is to achieve; the relevance of items is measured by its words
        policy: the limits and weights; default: those of the step before
        fencing_token: the token of the task's lease, if it is not the client's own

        Raises TransitionError while a step is open, DecompositionRequiredError for a budget that
        the items carried forward do not fit into, FencedError, MemoryAccessError.
        """
        body = without_absent({"goal": goal, "policy": policy})
        return self._write("begin_working_step", fencing_token, body, task_id=task_id)

    def end(
        self, task_id: str, *, fencing_token: int | None = None
    ) -> RequestGenerator[WorkingMemoryResponse]:
        """Ends the step: all items go but the marked ones and what they need. Raises
        TransitionError without an open step, FencedError, MemoryAccessError."""
        return self._write("end_working_step", fencing_token, None, task_id=task_id)

    def tick(
        self, task_id: str, *, fencing_token: int | None = None
    ) -> RequestGenerator[WorkingMemoryResponse]:
        """Counts a sub-operation, such as a call of a tool: items go whose `ttl_ops` is over.
        Raises like `end`."""
        return self._write("tick_working_step", fencing_token, None, task_id=task_id)

    def keep(
        self,
        task_id: str,
        name: str,
        content: Any,
        *,
        depends_on: Sequence[str] = (),
        carry_forward: bool = False,
        ttl_ops: int | None = None,
        sensitivity: str | None = None,
        fencing_token: int | None = None,
    ) -> RequestGenerator[WorkingMemoryResponse]:
        """Adds an item to the step, or replaces the item of its name.

        content: a text or a JSON value
        depends_on: names of items that it needs; none of them goes before it
        carry_forward: whether it stays at the end of the step; default: false
        ttl_ops: ticks until it goes; default: the whole step
        sensitivity: as of an entry; default: internal

        Raises ValidationError, DecompositionRequiredError with `budget` and `need`, and the errors
        of `end`.
        """
        body = without_absent(
            {
                "content": content,
                "depends_on": list(depends_on),
                "carry_forward": carry_forward,
                "ttl_ops": ttl_ops,
                "sensitivity": sensitivity,
            }
        )
        return self._write("keep_working_item", fencing_token, body, task_id=task_id, name=name)

    def mark(
        self,
        task_id: str,
        name: str,
        carry_forward: bool = True,
        *,
        fencing_token: int | None = None,
    ) -> RequestGenerator[WorkingMemoryResponse]:
        """Marks an item to stay at the end of the step, or takes the mark away. Raises
        ResourceNotFoundError and the errors of `end`."""
        body = {"carry_forward": carry_forward}
        return self._write("mark_working_item", fencing_token, body, task_id=task_id, name=name)

    def show(
        self, task_id: str, agent_id: str | None = None
    ) -> RequestGenerator[WorkingMemoryResponse]:
        """Returns the step and the items.

        agent_id: whose; default: this client's agent, or else the agent of the task

        Raises ResourceNotFoundError, MemoryAccessError.
        """
        query = {"agent_id": agent_id}
        return call("list_working_items", WorkingMemoryResponse, task_id=task_id, query=query)

    def read(
        self, task_id: str, name: str, agent_id: str | None = None
    ) -> RequestGenerator[WorkingItemResponse]:
        """Returns an item with its content, also if that was externalized. Raises like `show`."""
        query = {"agent_id": agent_id}
        return call(
            "get_working_item", WorkingItemResponse, task_id=task_id, name=name, query=query
        )

    def explain(
        self, task_id: str, *, after: int = 0, limit: int | None = None
    ) -> RequestGenerator[WorkingLogResponse]:
        """Returns evictions, compressions and externalizations with their reasons, oldest first.

        after: the `next` of the page before
        limit: events; default: 100
        """
        query = {"after": after or None, "limit": limit}
        return call("explain_working_memory", WorkingLogResponse, task_id=task_id, query=query)

    def _write(
        self, operation: str, fencing_token: int | None, body: Any, **path: str
    ) -> RequestGenerator[WorkingMemoryResponse]:
        request = Request(
            operation=operation,
            path=path,
            body=body,
            fencing_token=fencing_token_of(self._state, fencing_token),
        )
        return ask(request, WorkingMemoryResponse)


class _WorkingMemoryMethods:
    begin = method(WorkingMemoryCore.begin)
    end = method(WorkingMemoryCore.end)
    tick = method(WorkingMemoryCore.tick)
    keep = method(WorkingMemoryCore.keep)
    mark = method(WorkingMemoryCore.mark)
    show = method(WorkingMemoryCore.show)
    read = method(WorkingMemoryCore.read)
    explain = method(WorkingMemoryCore.explain)


class WorkingMemoryClient(_WorkingMemoryMethods, Facade[WorkingMemoryCore]):
    """Keeps the items that an agent reasons with during a step of a task."""


class AsyncWorkingMemoryClient(_WorkingMemoryMethods, AsyncFacade[WorkingMemoryCore]):
    """Keeps the items that an agent reasons with during a step of a task."""


class _Step(Generic[Client]):
    """The part that the steps of both clients share."""

    def __init__(
        self,
        client: Client,
        task_id: str,
        goal: str,
        policy: WorkingPolicy | Mapping[str, Any] | None,
    ) -> None:
        self._client = client
        self._task_id = task_id
        self._goal = goal
        self._policy = policy
        self.memory: WorkingMemoryResponse | None = None

    @property
    def changes(self) -> Sequence[ItemChange]:
        """The changes that the last operation made to items."""
        return () if self.memory is None else self.memory.changes


class WorkingStep(_Step[WorkingMemoryClient]):
    """A step of a task, open inside a `with` statement. An exception ends the step as well.

    memory: the working memory as the last operation has left it
    """

    def add(self, name: str, content: Any, **options: Any) -> WorkingMemoryResponse:
        """Adds an item for this step; the options are those of `client.working.keep`."""
        self.memory = self._client.keep(self._task_id, name, content, **options)
        return self.memory

    def keep(self, name: str, content: Any = UNSET, **options: Any) -> WorkingMemoryResponse:
        """Adds an item that stays at the end of the step, or without `content` marks one."""
        if content is not UNSET:
            return self.add(name, content, carry_forward=True, **options)
        self.memory = self._client.mark(self._task_id, name)
        return self.memory

    def tick(self) -> WorkingMemoryResponse:
        """Counts a sub-operation."""
        self.memory = self._client.tick(self._task_id)
        return self.memory

    def read(self, name: str) -> Any:
        """Returns the content of an item."""
        return self._client.read(self._task_id, name).content

    def __enter__(self) -> WorkingStep:
        self.memory = self._client.begin(self._task_id, self._goal, self._policy)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.memory = self._client.end(self._task_id)
        except Exception:
            # The error of the step matters more than an error of its end.
            if error is None:
                raise


class AsyncWorkingStep(_Step[AsyncWorkingMemoryClient]):
    """The async variant of `WorkingStep`."""

    async def add(self, name: str, content: Any, **options: Any) -> WorkingMemoryResponse:
        """Adds an item for this step; the options are those of `client.working.keep`."""
        self.memory = await self._client.keep(self._task_id, name, content, **options)
        return self.memory

    async def keep(self, name: str, content: Any = UNSET, **options: Any) -> WorkingMemoryResponse:
        """Adds an item that stays at the end of the step, or without `content` marks one."""
        if content is not UNSET:
            return await self.add(name, content, carry_forward=True, **options)
        self.memory = await self._client.mark(self._task_id, name)
        return self.memory

    async def tick(self) -> WorkingMemoryResponse:
        """Counts a sub-operation."""
        self.memory = await self._client.tick(self._task_id)
        return self.memory

    async def read(self, name: str) -> Any:
        """Returns the content of an item."""
        return (await self._client.read(self._task_id, name)).content

    async def __aenter__(self) -> AsyncWorkingStep:
        self.memory = await self._client.begin(self._task_id, self._goal, self._policy)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.memory = await self._client.end(self._task_id)
        except Exception:
            if error is None:
                raise
