"""`ctx.memory`: memory that is scoped to the task of a worker's function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from inspect import cleandoc
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

from memorywall.records.errors import EntryExistsError, FencedError, MemorywallError
from memorywall.records.tier import Tier
from memorywall.sdk.client_state import ClientState
from memorywall.sdk.context_loading import LARGEST_PAGE, every_entry
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, method, stream_method
from memorywall.sdk.fields import WriteOptions
from memorywall.sdk.filters import SHARED_TYPES, FilterArguments, MemoryType, parameters
from memorywall.sdk.indexing import may_wait
from memorywall.sdk.lookup import PRESENT
from memorywall.sdk.models import MemoryEntry
from memorywall.sdk.put import PutCore
from memorywall.sdk.retry import call
from memorywall.sdk.tasks import TasksCore
from memorywall.sdk.worker_lease import LEASE_LOST_ERRORS, InterruptGuard, LeaseState
from memorywall.wire.tasks import TaskResponse

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
_ELSEWHERE = (
    "this agent keeps working memory of this name for something else; an agent has each name once"
)
_UNDER_LEASE = """\
During a task, working memory of other tasks is not found, and the entries of other agents are not
written. Raises FencedError if the worker has lost the task, without a request if the client knows
this."""


class SetOptions(WriteOptions, total=False):
    """The parameters of `set` besides name, value and tier; see `client.memory.set`."""

    version: int | None


def _guarded(
    write: Callable[Concatenate[TaskMemoryCore, Parameters], RequestGenerator[Result]],
) -> Callable[Concatenate[TaskMemoryCore, Parameters], RequestGenerator[Result]]:
    """Returns a write of memory as one of a task, under its lease and without interruption."""

    @wraps(write)
    def guarded(
        memory: TaskMemoryCore, /, *args: Parameters.args, **options: Parameters.kwargs
    ) -> RequestGenerator[Result]:
        return memory._write(write(memory, *args, **options))

    guarded.__doc__ = f"{cleandoc(write.__doc__ or '')}\n\n{_UNDER_LEASE}"
    return guarded


class TaskMemoryCore(PutCore):
    """`ctx.memory`: the operations on memory, where working memory is that of one task."""

    _keeps_reads = False

    def __init__(
        self, state: ClientState, task: TaskResponse, lease: LeaseState, guard: InterruptGuard
    ) -> None:
        super().__init__(state)
        self._task = task
        self._lease = lease
        self._guard = guard

    @_guarded
    @may_wait
    def set(
        self,
        namespace: str,
        key: str,
        value: Mapping[str, Any],
        memory_type: MemoryType | None = None,
        **fields: Unpack[SetOptions],
    ) -> RequestGenerator[MemoryEntry]:
        """Writes an entry and returns it with the state that the server has stored.

        Works like `client.memory.set`. New entries are working memory of the task unless
        `memory_type` names another tier. Entries of an earlier agent of the task stay unchanged:
        this agent gets an entry of its own with the same name (RFC-0015 section 8.2).

        The agent's own entries are replaced even if they were not read during this task, because no
        other agent writes them. A resumed task can therefore repeat its writes. Shared entries are
        never replaced unread.

        Raises EntryExistsError if the agent has working memory of this name for another task; the
        errors of `client.memory.set`.
        """
        try:
            return (yield from super().set(namespace, key, value, memory_type, **fields))
        except EntryExistsError as error:
            current = error.current
            mine = isinstance(current, MemoryEntry) and self._is_own_tier(current)
            if not mine or fields.get("version") is not None:
                raise
            if not self._is_in_view(current):
                raise EntryExistsError(
                    _ELSEWHERE, current=current, current_version=current.version
                ) from None
            again: SetOptions = {**fields, "version": current.version}
            return (yield from super().set(namespace, key, value, current.memory_type, **again))

    put = _guarded(PutCore.put)
    update = _guarded(PutCore.update)
    merge = _guarded(PutCore.merge)
    delete = _guarded(PutCore.delete)
    delete_by_id = _guarded(PutCore.delete_by_id)
    batch = _guarded(PutCore.batch)
    delete_matching = _guarded(PutCore.delete_matching)
    set_permissions = _guarded(PutCore.set_permissions)

    def get(
        self,
        namespace: str,
        key: str,
        memory_type: MemoryType | None = None,
        *,
        version: int | None = None,
        as_of: datetime | str | None = None,
        schema_version: int | None = None,
    ) -> RequestGenerator[MemoryEntry | None]:
        """Returns the entry of this name, or None.

        Without `memory_type`, working memory of this task comes first: the newest entry of any of
        the task's agents. The agent's own session and episodic memory come next, then shared tiers.
        Working memory of other tasks is excluded.

        version, as_of, schema_version: as in `client.memory.get`; each excludes working memory,
            which has no versions and no schemas
        """
        self._guard.check()
        is_present = version is None and as_of is None and schema_version is None
        if memory_type in (None, Tier.WORKING) and is_present:
            page = yield from self.query(
                namespace=namespace, key=key, memory_type=Tier.WORKING, limit=LARGEST_PAGE
            )
            entries = [entry for entry in page if entry.namespace == namespace]
            if entries:
                return max(entries, key=lambda entry: (entry.updated_at, self._is_own(entry)))
        return (
            yield from super().get(
                namespace,
                key,
                memory_type,
                version=version,
                as_of=as_of,
                schema_version=schema_version,
            )
        )

    def _read_filter(self, wanted: FilterArguments) -> FilterArguments:
        """In queries, working memory is that of this task, of all its agents, unless `agent_id`,
        `task_id` or `intent_id` is given."""
        self._guard.check()
        return {**wanted, "task_id": self._task.id} if _is_for_any_work(wanted) else wanted

    def inherited(self) -> RequestGenerator[list[MemoryEntry]]:
        """Returns working memory of the ancestor tasks that the task inherits, read-only (RFC-0015
        section 6.5)."""
        found: list[MemoryEntry] = []
        task = self._task
        while task.memory_policy.inherit_from_parent and task.parent_task_id is not None:
            above = task.parent_task_id
            found += yield from every_entry(self, task_id=above, memory_type=Tier.WORKING)
            task = yield from call("get_task", TaskResponse, task_id=above)
        return found

    def _narrow(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Searches; a search of working memory is limited to this task, like a query."""
        self._guard.check()
        return {**wanted, "task_id": self._task.id} if _is_for_any_work(wanted) else wanted

    def _write(self, script: RequestGenerator[Result]) -> RequestGenerator[Result]:
        """Runs a write to completion unless the task is lost."""
        self._lease.check()
        with self._guard.writing():
            try:
                return (yield from script)
            except LEASE_LOST_ERRORS:
                yield from self._make_sure()
                raise

    def _make_sure(self) -> RequestGenerator[None]:
        """Raises FencedError if a write was refused because the task is lost, regardless of the
        error code of the refusal. Returns if the refusal has another reason."""
        lease = self._lease
        asked_at = lease.clock()
        try:
            tasks = TasksCore(self._state)
            yield from tasks.renew(self._task.id, lease.token, lease.seconds)
        except LEASE_LOST_ERRORS:
            lease.lose()
            raise FencedError("the task has been taken from this worker") from None
        except MemorywallError:
            # The reason cannot be determined now; the lease renewal continues.
            return
        lease.renewed(asked_at)

    def _look_up(
        self,
        namespace: str,
        key: str,
        memory_type: MemoryType | None,
        asked: Mapping[str, Any] = PRESENT,
    ) -> RequestGenerator[MemoryEntry | None]:
        params = parameters(FilterArguments(namespace=namespace, key=key))
        page = yield from self._fetch({**params, "limit": str(LARGEST_PAGE)})
        candidates = [
            entry
            for entry in page
            if entry.namespace == namespace
            and memory_type in (None, entry.memory_type)
            and self._is_own(entry)
            and self._is_in_view(entry)
        ]
        found = min(candidates, key=self._breadth, default=None)
        if found is None or not asked:
            return found
        return (yield from self.get_by_id(found.id, **asked))

    def _is_in_view(self, entry: MemoryEntry) -> bool:
        return entry.memory_type is not Tier.WORKING or entry.scope.task_id == self._task.id

    def _is_own_tier(self, entry: MemoryEntry) -> bool:
        return entry.memory_type not in SHARED_TYPES and self._is_own(entry)


def _is_for_any_work(wanted: Mapping[str, Any]) -> bool:
    """Returns whether a query names working memory without an owner or a scope."""
    elsewhere = any(wanted.get(name) for name in ("agent_id", "task_id", "intent_id"))
    return wanted.get("memory_type") == Tier.WORKING and not elsewhere


class _TaskMemoryMethods:
    set = method(TaskMemoryCore.set)
    put = method(TaskMemoryCore.put)
    update = method(TaskMemoryCore.update)
    get = method(TaskMemoryCore.get)
    get_by_id = method(TaskMemoryCore.get_by_id)
    query = method(TaskMemoryCore.query)
    iterate = stream_method(TaskMemoryCore.iterate)
    select = stream_method(TaskMemoryCore.select)
    count = method(TaskMemoryCore.count)
    history = method(TaskMemoryCore.history)
    search = method(TaskMemoryCore.search)
    reshape_query = method(TaskMemoryCore.reshape_query)
    inherited = method(TaskMemoryCore.inherited)
    delete = method(TaskMemoryCore.delete)
    delete_by_id = method(TaskMemoryCore.delete_by_id)
    batch = method(TaskMemoryCore.batch)
    delete_matching = method(TaskMemoryCore.delete_matching)
    export = stream_method(TaskMemoryCore.export)
    namespaces = method(TaskMemoryCore.namespaces)
    namespace = method(TaskMemoryCore.namespace)
    set_permissions = method(TaskMemoryCore.set_permissions)
    summary = method(TaskMemoryCore.summary)


class TaskMemoryClient(_TaskMemoryMethods, Facade[TaskMemoryCore]):
    """Writes, reads, finds and deletes entries during a task."""


class AsyncTaskMemoryClient(_TaskMemoryMethods, AsyncFacade[TaskMemoryCore]):
    """Writes, reads, finds and deletes entries during a task."""
