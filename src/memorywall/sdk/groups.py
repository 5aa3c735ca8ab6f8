"""The groups of a client's methods, each sync and async."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memorywall.kinds.working_memory import WorkingPolicy
from memorywall.sdk.attachments import AttachmentsCore
from memorywall.sdk.coordinators import CoordinatorsCore
from memorywall.sdk.executors import AwaitingDriver, BlockingDriver
from memorywall.sdk.facade import (
    AsyncFacade,
    Facade,
    awaiting,
    awaiting_stream,
    blocking,
    blocking_stream,
)
from memorywall.sdk.intents import IntentsCore
from memorywall.sdk.put import PutCore
from memorywall.sdk.service import EventsCore
from memorywall.sdk.shared import SharedCore
from memorywall.sdk.tasks import TasksCore
from memorywall.sdk.watch import WatchCore
from memorywall.sdk.working_memory import (
    AsyncWorkingMemoryClient,
    AsyncWorkingStep,
    WorkingMemoryClient,
    WorkingMemoryCore,
    WorkingStep,
)
from memorywall.wire.work import TaskResponse


class MemoryClient(Facade[WatchCore]):
    """Writes, reads, finds, deletes and follows entries; `attachments` are the files of entries."""

    def __init__(self, core: WatchCore, executor: BlockingDriver) -> None:
        super().__init__(core, executor)
        self.attachments = AttachmentsClient(core.attachments, executor)

    set = blocking(PutCore.set)
    put = blocking(PutCore.put)
    update = blocking(PutCore.update)
    merge = blocking(PutCore.merge)
    get = blocking(PutCore.get)
    get_by_id = blocking(PutCore.get_by_id)
    query = blocking(PutCore.query)
    iterate = blocking_stream(PutCore.iterate)
    select = blocking_stream(PutCore.select)
    count = blocking(PutCore.count)
    history = blocking(PutCore.history)
    search = blocking(PutCore.search)
    reshape_query = blocking(PutCore.reshape_query)
    delete = blocking(PutCore.delete)
    delete_by_id = blocking(PutCore.delete_by_id)
    batch = blocking(PutCore.batch)
    delete_matching = blocking(PutCore.delete_matching)
    export = blocking_stream(PutCore.export)
    changes = blocking(WatchCore.changes)
    watch = blocking_stream(WatchCore.watch)
    cache = blocking(WatchCore.cache)
    namespaces = blocking(PutCore.namespaces)
    namespace = blocking(PutCore.namespace)
    set_permissions = blocking(PutCore.set_permissions)
    grant = blocking(PutCore.grant)
    revoke = blocking(PutCore.revoke)
    set_limits = blocking(PutCore.set_limits)
    summary = blocking(PutCore.summary)


class AsyncMemoryClient(AsyncFacade[WatchCore]):
    """Writes, reads, finds, deletes and follows entries; `attachments` are the files of entries."""

    def __init__(self, core: WatchCore, executor: AwaitingDriver) -> None:
        super().__init__(core, executor)
        self.attachments = AsyncAttachmentsClient(core.attachments, executor)

    set = awaiting(PutCore.set)
    put = awaiting(PutCore.put)
    update = awaiting(PutCore.update)
    merge = awaiting(PutCore.merge)
    get = awaiting(PutCore.get)
    get_by_id = awaiting(PutCore.get_by_id)
    query = awaiting(PutCore.query)
    iterate = awaiting_stream(PutCore.iterate)
    select = awaiting_stream(PutCore.select)
    count = awaiting(PutCore.count)
    history = awaiting(PutCore.history)
    search = awaiting(PutCore.search)
    reshape_query = awaiting(PutCore.reshape_query)
    delete = awaiting(PutCore.delete)
    delete_by_id = awaiting(PutCore.delete_by_id)
    batch = awaiting(PutCore.batch)
    delete_matching = awaiting(PutCore.delete_matching)
    export = awaiting_stream(PutCore.export)
    changes = awaiting(WatchCore.changes)
    watch = awaiting_stream(WatchCore.watch)
    cache = awaiting(WatchCore.cache)
    namespaces = awaiting(PutCore.namespaces)
    namespace = awaiting(PutCore.namespace)
    set_permissions = awaiting(PutCore.set_permissions)
    grant = awaiting(PutCore.grant)
    revoke = awaiting(PutCore.revoke)
    set_limits = awaiting(PutCore.set_limits)
    summary = awaiting(PutCore.summary)


class SharedClient(Facade[SharedCore]):
    """Writes, reads, deletes and follows state that agents share while they work."""

    get = blocking(SharedCore.get)
    set = blocking(SharedCore.set)
    put = blocking(SharedCore.put)
    update = blocking(SharedCore.update)
    list = blocking(SharedCore.list)
    delete = blocking(SharedCore.delete)
    watch = blocking_stream(SharedCore.watch)


class AsyncSharedClient(AsyncFacade[SharedCore]):
    """Writes, reads, deletes and follows state that agents share while they work."""

    get = awaiting(SharedCore.get)
    set = awaiting(SharedCore.set)
    put = awaiting(SharedCore.put)
    update = awaiting(SharedCore.update)
    list = awaiting(SharedCore.list)
    delete = awaiting(SharedCore.delete)
    watch = awaiting_stream(SharedCore.watch)


class EventsClient(Facade[EventsCore]):
    """Reads and follows agents' event streams."""

    list = blocking(EventsCore.list)
    follow = blocking_stream(EventsCore.follow)


class AsyncEventsClient(AsyncFacade[EventsCore]):
    """Reads and follows agents' event streams."""

    list = awaiting(EventsCore.list)
    follow = awaiting_stream(EventsCore.follow)


class IntentsClient(Facade[IntentsCore]):
    """Creates, changes and follows intents, and controls access to them."""

    create = blocking(IntentsCore.create)
    get = blocking(IntentsCore.get)
    list = blocking(IntentsCore.list)
    set_state = blocking(IntentsCore.set_state)
    set_status = blocking(IntentsCore.set_status)
    log = blocking(IntentsCore.log)
    events = blocking(IntentsCore.events)
    follow = blocking_stream(IntentsCore.follow)
    acl = blocking(IntentsCore.acl)
    set_acl = blocking(IntentsCore.set_acl)
    grant = blocking(IntentsCore.grant)
    revoke = blocking(IntentsCore.revoke)
    lease = blocking(IntentsCore.lease)
    leases = blocking(IntentsCore.leases)
    renew_lease = blocking(IntentsCore.renew_lease)
    release_lease = blocking(IntentsCore.release_lease)
    children = blocking(IntentsCore.children)
    descendants = blocking(IntentsCore.descendants)
    ancestors = blocking(IntentsCore.ancestors)
    dependencies = blocking(IntentsCore.dependencies)
    dependents = blocking(IntentsCore.dependents)
    ready = blocking(IntentsCore.ready)
    blocked = blocking(IntentsCore.blocked)
    graph = blocking(IntentsCore.graph)
    add_dependency = blocking(IntentsCore.add_dependency)
    remove_dependency = blocking(IntentsCore.remove_dependency)


class AsyncIntentsClient(AsyncFacade[IntentsCore]):
    """Creates, changes and follows intents, and controls access to them."""

    create = awaiting(IntentsCore.create)
    get = awaiting(IntentsCore.get)
    list = awaiting(IntentsCore.list)
    set_state = awaiting(IntentsCore.set_state)
    set_status = awaiting(IntentsCore.set_status)
    log = awaiting(IntentsCore.log)
    events = awaiting(IntentsCore.events)
    follow = awaiting_stream(IntentsCore.follow)
    acl = awaiting(IntentsCore.acl)
    set_acl = awaiting(IntentsCore.set_acl)
    grant = awaiting(IntentsCore.grant)
    revoke = awaiting(IntentsCore.revoke)
    lease = awaiting(IntentsCore.lease)
    leases = awaiting(IntentsCore.leases)
    renew_lease = awaiting(IntentsCore.renew_lease)
    release_lease = awaiting(IntentsCore.release_lease)
    children = awaiting(IntentsCore.children)
    descendants = awaiting(IntentsCore.descendants)
    ancestors = awaiting(IntentsCore.ancestors)
    dependencies = awaiting(IntentsCore.dependencies)
    dependents = awaiting(IntentsCore.dependents)
    ready = awaiting(IntentsCore.ready)
    blocked = awaiting(IntentsCore.blocked)
    graph = awaiting(IntentsCore.graph)
    add_dependency = awaiting(IntentsCore.add_dependency)
    remove_dependency = awaiting(IntentsCore.remove_dependency)


class TasksClient(Facade[TasksCore]):
    """Creates, assigns, claims and completes tasks."""

    create = blocking(TasksCore.create)
    get = blocking(TasksCore.get)
    list = blocking(TasksCore.list)
    next = blocking(TasksCore.next)
    claim = blocking(TasksCore.claim)
    renew = blocking(TasksCore.renew)
    release = blocking(TasksCore.release)
    update = blocking(TasksCore.update)
    complete = blocking(TasksCore.complete)
    fail = blocking(TasksCore.fail)
    cancel = blocking(TasksCore.cancel)
    assign = blocking(TasksCore.assign)

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
        working = WorkingMemoryClient(WorkingMemoryCore(self._core._state), self._executor)
        return WorkingStep(working, task_id, goal, policy)


class AsyncTasksClient(AsyncFacade[TasksCore]):
    """Creates, assigns, claims and completes tasks."""

    create = awaiting(TasksCore.create)
    get = awaiting(TasksCore.get)
    list = awaiting(TasksCore.list)
    next = awaiting(TasksCore.next)
    claim = awaiting(TasksCore.claim)
    renew = awaiting(TasksCore.renew)
    release = awaiting(TasksCore.release)
    update = awaiting(TasksCore.update)
    complete = awaiting(TasksCore.complete)
    fail = awaiting(TasksCore.fail)
    cancel = awaiting(TasksCore.cancel)
    assign = awaiting(TasksCore.assign)

    def step(
        self,
        task: TaskResponse | str,
        goal: str = "",
        policy: WorkingPolicy | Mapping[str, Any] | None = None,
    ) -> AsyncWorkingStep:
        task_id = task if isinstance(task, str) else task.id
        working = AsyncWorkingMemoryClient(WorkingMemoryCore(self._core._state), self._executor)
        return AsyncWorkingStep(working, task_id, goal, policy)

    step.__doc__ = TasksClient.step.__doc__


class CoordinatorsClient(Facade[CoordinatorsCore]):
    """Appoints coordinators of intents."""

    create = blocking(CoordinatorsCore.create)
    get = blocking(CoordinatorsCore.get)
    list = blocking(CoordinatorsCore.list)
    heartbeat = blocking(CoordinatorsCore.heartbeat)
    resign = blocking(CoordinatorsCore.resign)


class AsyncCoordinatorsClient(AsyncFacade[CoordinatorsCore]):
    """Appoints coordinators of intents."""

    create = awaiting(CoordinatorsCore.create)
    get = awaiting(CoordinatorsCore.get)
    list = awaiting(CoordinatorsCore.list)
    heartbeat = awaiting(CoordinatorsCore.heartbeat)
    resign = awaiting(CoordinatorsCore.resign)


class AttachmentsClient(Facade[AttachmentsCore]):
    """Keeps files that belong to intents, or to entries for `client.memory.attachments`."""

    upload = blocking(AttachmentsCore.upload)
    add = blocking(AttachmentsCore.add)
    download = blocking(AttachmentsCore.download)
    list = blocking(AttachmentsCore.list)
    get = blocking(AttachmentsCore.get)
    delete = blocking(AttachmentsCore.delete)


class AsyncAttachmentsClient(AsyncFacade[AttachmentsCore]):
    """Keeps files that belong to intents, or to entries for `client.memory.attachments`."""

    upload = awaiting(AttachmentsCore.upload)
    add = awaiting(AttachmentsCore.add)
    download = awaiting(AttachmentsCore.download)
    list = awaiting(AttachmentsCore.list)
    get = awaiting(AttachmentsCore.get)
    delete = awaiting(AttachmentsCore.delete)
