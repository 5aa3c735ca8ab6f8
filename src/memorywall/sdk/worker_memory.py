"""`ctx.memory`: memory as a Worker's function has it, scoped to its task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, TypeVar, Unpack

from msgspec import UnsetType

from memorywall.records.entry import Priority, Scope, Sensitivity
from memorywall.records.errors import EntryExistsError, FencedError, MemorywallError
from memorywall.records.namespace import Grant
from memorywall.records.tier import Tier
from memorywall.sdk import exchange
from memorywall.sdk.context import LARGEST_PAGE, every_entry
from memorywall.sdk.elements import Sources
from memorywall.sdk.facade import (
    AsyncFacade,
    Facade,
    awaiting,
    awaiting_stream,
    blocking,
    blocking_stream,
)
from memorywall.sdk.filters import Filter, MemoryType, parameters
from memorywall.sdk.memory import MemoryLogic
from memorywall.sdk.problems import decode
from memorywall.sdk.session import Session
from memorywall.sdk.shapes import BatchResult, EntryPage, MemoryEntry
from memorywall.sdk.steps import Request, Script, part
from memorywall.sdk.tasks import TasksLogic
from memorywall.sdk.worker_hold import TAKEN_AWAY, Gate, Hold
from memorywall.wire.agents import NamespaceView
from memorywall.wire.work import TaskView

Result = TypeVar("Result")
_ELSEWHERE = (
    "this agent keeps working memory of this name for something else; an agent has each name once"
)


class Fields(TypedDict, total=False):
    """What `set` takes besides name, value and tier; see `client.memory.set`."""

    tags: Sequence[str] | str | None
    scope: Scope | Mapping[str, str] | None
    ttl: str | UnsetType | None
    expires_at: datetime | str | UnsetType | None
    pinned: bool | None
    priority: Priority | None
    sensitivity: Sensitivity | None
    version: int | None
    derived_from: Sources | None
    fencing_token: int | None


class TaskMemoryLogic(MemoryLogic):
    """`ctx.memory`: the operations on memory, where working memory is that of one task."""

    def __init__(self, session: Session, task: TaskView, hold: Hold, gate: Gate) -> None:
        super().__init__(session)
        self._task = task
        self._hold = hold
        self._gate = gate

    def set(
        self,
        namespace: str,
        key: str,
        value: Mapping[str, Any],
        memory_type: MemoryType | None = None,
        **fields: Unpack[Fields],
    ) -> Script[MemoryEntry]:
        """Writes an entry and returns it as the server now has it.

        Like `client.memory.set`, under the task's lease. What is new is working memory of the task
        unless `memory_type` says otherwise. What was read from an earlier agent of the task stays
        as it is: this agent gets an entry of its own beside it (RFC-0015 section 8.2).

        The agent's own memory that it has not read while on this task is replaced, for nobody else
        writes to it: so a task that is taken up again can write what it wrote before. Knowledge
        and state that others write to as well is never replaced unread.

        Raises FencedError when the task is this worker's no more, without anything being sent if
        that is known here; EntryExistsError when the agent keeps working memory of this name for
        another task; what `client.memory.set` raises.
        """
        return (yield from self._write(self._set(namespace, key, value, memory_type, fields)))

    def get(
        self, namespace: str, key: str, memory_type: MemoryType | None = None
    ) -> Script[MemoryEntry | None]:
        """The entry of this name, or None.

        Without `memory_type` working memory of this task comes first, the newest whoever of its
        agents wrote it; then the agent's own session and episodic memory, then what is shared.
        Working memory of other tasks is not looked at.
        """
        self._gate.check()
        if memory_type in (None, Tier.WORKING):
            page = yield from self.query(
                namespace=namespace, key=key, memory_type=Tier.WORKING, limit=LARGEST_PAGE
            )
            entries = [entry for entry in page if entry.namespace == namespace]
            if entries:
                return max(entries, key=lambda entry: (entry.updated_at, self._is_own(entry)))
        return (yield from super().get(namespace, key, memory_type))

    def query(
        self, *, limit: int | None = None, offset: int = 0, **wanted: Unpack[Filter]
    ) -> Script[EntryPage]:
        """Like `client.memory.query`; working memory is this task's, by all its agents, unless
        `agent_id`, `task_id` or `intent_id` says otherwise."""
        self._gate.check()
        if _is_for_any_work(wanted):
            wanted["task_id"] = self._task.id
        return (yield from super().query(limit=limit, offset=offset, **wanted))

    def inherited(self) -> Script[list[MemoryEntry]]:
        """Working memory of the tasks above this one, as far up as each inherits; to be read only
        (RFC-0015 section 6.5)."""
        found: list[MemoryEntry] = []
        task = self._task
        while task.memory_policy.inherit_from_parent and task.parent_task_id is not None:
            above = task.parent_task_id
            found += yield from every_entry(self, task_id=above, memory_type=Tier.WORKING)
            path = f"/api/v1/tasks/{part(above)}"
            response = yield from exchange.again(Request(method="GET", path=path))
            task = decode(response, TaskView)
        return found

    def delete(
        self,
        namespace: str,
        key: str,
        memory_type: MemoryType | None = None,
        *,
        version: int | None = None,
        fencing_token: int | None = None,
    ) -> Script[None]:
        """Deletes the agent's own entry of this name, or what is shared under it, at once and for
        good; working memory only if it is this task's. See `client.memory.delete`."""
        script = super().delete(
            namespace, key, memory_type, version=version, fencing_token=fencing_token
        )
        yield from self._write(script)

    def delete_by_id(
        self, entry_id: str, *, version: int | None = None, fencing_token: int | None = None
    ) -> Script[None]:
        """Deletes one entry at once and for good; with `version` only if it has that one."""
        script = super().delete_by_id(entry_id, version=version, fencing_token=fencing_token)
        yield from self._write(script)

    def batch(self, elements: Iterable[Mapping[str, Any]]) -> Script[BatchResult]:
        """Writes several entries, all or none; see `client.memory.batch`."""
        return (yield from self._write(super().batch(elements)))

    def delete_matching(
        self, *, limit: int | None = None, offset: int = 0, **wanted: Unpack[Filter]
    ) -> Script[int]:
        """Deletes what matches; see `client.memory.delete_matching`."""
        script = super().delete_matching(limit=limit, offset=offset, **wanted)
        return (yield from self._write(script))

    def set_permissions(
        self,
        name: str,
        *,
        default: str | None = None,
        allow: Iterable[Grant | Mapping[str, str]] | None = None,
        version: int | None = None,
    ) -> Script[NamespaceView]:
        """Replaces the permissions of a namespace; see `client.memory.set_permissions`."""
        script = super().set_permissions(name, default=default, allow=allow, version=version)
        return (yield from self._write(script))

    def _narrow(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """A search of working memory is one of this task's, as a query of it is."""
        self._gate.check()
        return {**wanted, "task_id": self._task.id} if _is_for_any_work(wanted) else wanted

    def _set(
        self,
        namespace: str,
        key: str,
        value: Mapping[str, Any],
        memory_type: MemoryType | None,
        fields: Fields,
    ) -> Script[MemoryEntry]:
        try:
            return (yield from super().set(namespace, key, value, memory_type, **fields))
        except EntryExistsError as error:
            current = error.current
            mine = isinstance(current, MemoryEntry) and self._is_behind_own_wall(current)
            if not mine or fields.get("version") is not None:
                raise
            if not self._is_in_view(current):
                raise EntryExistsError(
                    _ELSEWHERE, current=current, current_version=current.version
                ) from None
            again: Fields = {**fields, "version": current.version}
            return (yield from super().set(namespace, key, value, current.memory_type, **again))

    def _write(self, script: Script[Result]) -> Script[Result]:
        """Runs a write unless the task is lost, to its end."""
        self._hold.check()
        with self._gate.writing():
            try:
                return (yield from script)
            except TAKEN_AWAY:
                yield from self._make_sure()
                raise

    def _make_sure(self) -> Script[None]:
        """Finds out whether a write was refused because the task is lost; then FencedError is
        raised, whatever the refusal was. It may be about something else that is not allowed."""
        hold = self._hold
        asked_at = hold.clock()
        try:
            tasks = TasksLogic(self._session)
            yield from tasks.renew(self._task.id, hold.token, hold.seconds)
        except TAKEN_AWAY:
            hold.lose()
            raise FencedError("the task has been taken from this worker") from None
        except MemorywallError:
            # It cannot be found out now; whoever keeps the lease goes on trying.
            return
        hold.renewed(asked_at)

    def _look_up(
        self, namespace: str, key: str, memory_type: MemoryType | None
    ) -> Script[MemoryEntry | None]:
        params = parameters(Filter(namespace=namespace, key=key))
        page = yield from self._fetch({**params, "limit": str(LARGEST_PAGE)})
        candidates = [
            entry
            for entry in page
            if entry.namespace == namespace
            and memory_type in (None, entry.memory_type)
            and self._is_own(entry)
            and self._is_in_view(entry)
        ]
        return min(candidates, key=self._breadth, default=None)

    def _is_in_view(self, entry: MemoryEntry) -> bool:
        return entry.memory_type is not Tier.WORKING or entry.scope.task_id == self._task.id

    def _is_behind_own_wall(self, entry: MemoryEntry) -> bool:
        walled = entry.memory_type in (Tier.WORKING, Tier.SESSION, Tier.EPISODIC)
        return walled and self._is_own(entry)


def _is_for_any_work(wanted: Mapping[str, Any]) -> bool:
    """Whether working memory is asked for without saying whose, or of what."""
    elsewhere = any(wanted.get(name) for name in ("agent_id", "task_id", "intent_id"))
    return wanted.get("memory_type") == Tier.WORKING and not elsewhere


class TaskMemory(Facade[TaskMemoryLogic]):
    """Writes, reads, finds and deletes entries while on a task."""

    set = blocking(TaskMemoryLogic.set)
    get = blocking(TaskMemoryLogic.get)
    get_by_id = blocking(TaskMemoryLogic.get_by_id)
    query = blocking(TaskMemoryLogic.query)
    search = blocking(TaskMemoryLogic.search)
    reshape_query = blocking(TaskMemoryLogic.reshape_query)
    inherited = blocking(TaskMemoryLogic.inherited)
    delete = blocking(TaskMemoryLogic.delete)
    delete_by_id = blocking(TaskMemoryLogic.delete_by_id)
    batch = blocking(TaskMemoryLogic.batch)
    delete_matching = blocking(TaskMemoryLogic.delete_matching)
    export = blocking_stream(TaskMemoryLogic.export)
    namespaces = blocking(TaskMemoryLogic.namespaces)
    namespace = blocking(TaskMemoryLogic.namespace)
    set_permissions = blocking(TaskMemoryLogic.set_permissions)
    summary = blocking(TaskMemoryLogic.summary)


class AsyncTaskMemory(AsyncFacade[TaskMemoryLogic]):
    """Writes, reads, finds and deletes entries while on a task."""

    set = awaiting(TaskMemoryLogic.set)
    get = awaiting(TaskMemoryLogic.get)
    get_by_id = awaiting(TaskMemoryLogic.get_by_id)
    query = awaiting(TaskMemoryLogic.query)
    search = awaiting(TaskMemoryLogic.search)
    reshape_query = awaiting(TaskMemoryLogic.reshape_query)
    inherited = awaiting(TaskMemoryLogic.inherited)
    delete = awaiting(TaskMemoryLogic.delete)
    delete_by_id = awaiting(TaskMemoryLogic.delete_by_id)
    batch = awaiting(TaskMemoryLogic.batch)
    delete_matching = awaiting(TaskMemoryLogic.delete_matching)
    export = awaiting_stream(TaskMemoryLogic.export)
    namespaces = awaiting(TaskMemoryLogic.namespaces)
    namespace = awaiting(TaskMemoryLogic.namespace)
    set_permissions = awaiting(TaskMemoryLogic.set_permissions)
    summary = awaiting(TaskMemoryLogic.summary)
