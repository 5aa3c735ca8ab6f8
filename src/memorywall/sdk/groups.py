"""What a client offers, group by group and in both colours."""

from __future__ import annotations

from memorywall.sdk.attachments import AttachmentsLogic
from memorywall.sdk.coordinators import CoordinatorsLogic
from memorywall.sdk.facade import (
    AsyncFacade,
    Facade,
    awaiting,
    awaiting_stream,
    blocking,
    blocking_stream,
)
from memorywall.sdk.intents import IntentsLogic
from memorywall.sdk.memory import MemoryLogic
from memorywall.sdk.service import EventsLogic
from memorywall.sdk.shared import SharedLogic
from memorywall.sdk.tasks import TasksLogic


class Memory(Facade[MemoryLogic]):
    """Writes, reads, finds and deletes entries."""

    set = blocking(MemoryLogic.set)
    get = blocking(MemoryLogic.get)
    get_by_id = blocking(MemoryLogic.get_by_id)
    query = blocking(MemoryLogic.query)
    search = blocking(MemoryLogic.search)
    reshape_query = blocking(MemoryLogic.reshape_query)
    delete = blocking(MemoryLogic.delete)
    delete_by_id = blocking(MemoryLogic.delete_by_id)
    batch = blocking(MemoryLogic.batch)
    delete_matching = blocking(MemoryLogic.delete_matching)
    export = blocking_stream(MemoryLogic.export)
    namespaces = blocking(MemoryLogic.namespaces)
    namespace = blocking(MemoryLogic.namespace)
    set_permissions = blocking(MemoryLogic.set_permissions)
    set_limits = blocking(MemoryLogic.set_limits)
    summary = blocking(MemoryLogic.summary)


class AsyncMemory(AsyncFacade[MemoryLogic]):
    """Writes, reads, finds and deletes entries."""

    set = awaiting(MemoryLogic.set)
    get = awaiting(MemoryLogic.get)
    get_by_id = awaiting(MemoryLogic.get_by_id)
    query = awaiting(MemoryLogic.query)
    search = awaiting(MemoryLogic.search)
    reshape_query = awaiting(MemoryLogic.reshape_query)
    delete = awaiting(MemoryLogic.delete)
    delete_by_id = awaiting(MemoryLogic.delete_by_id)
    batch = awaiting(MemoryLogic.batch)
    delete_matching = awaiting(MemoryLogic.delete_matching)
    export = awaiting_stream(MemoryLogic.export)
    namespaces = awaiting(MemoryLogic.namespaces)
    namespace = awaiting(MemoryLogic.namespace)
    set_permissions = awaiting(MemoryLogic.set_permissions)
    set_limits = awaiting(MemoryLogic.set_limits)
    summary = awaiting(MemoryLogic.summary)


class Shared(Facade[SharedLogic]):
    """Writes, reads and deletes state that agents share while they work."""

    get = blocking(SharedLogic.get)
    set = blocking(SharedLogic.set)
    list = blocking(SharedLogic.list)
    delete = blocking(SharedLogic.delete)


class AsyncShared(AsyncFacade[SharedLogic]):
    """Writes, reads and deletes state that agents share while they work."""

    get = awaiting(SharedLogic.get)
    set = awaiting(SharedLogic.set)
    list = awaiting(SharedLogic.list)
    delete = awaiting(SharedLogic.delete)


class Events(Facade[EventsLogic]):
    """Reads and follows agents' event streams."""

    list = blocking(EventsLogic.list)
    follow = blocking_stream(EventsLogic.follow)


class AsyncEvents(AsyncFacade[EventsLogic]):
    """Reads and follows agents' event streams."""

    list = awaiting(EventsLogic.list)
    follow = awaiting_stream(EventsLogic.follow)


class Intents(Facade[IntentsLogic]):
    """Makes, changes and follows intents, and lets others in."""

    create = blocking(IntentsLogic.create)
    get = blocking(IntentsLogic.get)
    list = blocking(IntentsLogic.list)
    set_state = blocking(IntentsLogic.set_state)
    set_status = blocking(IntentsLogic.set_status)
    log = blocking(IntentsLogic.log)
    events = blocking(IntentsLogic.events)
    follow = blocking_stream(IntentsLogic.follow)
    acl = blocking(IntentsLogic.acl)
    set_acl = blocking(IntentsLogic.set_acl)
    grant = blocking(IntentsLogic.grant)
    revoke = blocking(IntentsLogic.revoke)
    lease = blocking(IntentsLogic.lease)
    leases = blocking(IntentsLogic.leases)
    renew_lease = blocking(IntentsLogic.renew_lease)
    release_lease = blocking(IntentsLogic.release_lease)
    children = blocking(IntentsLogic.children)
    descendants = blocking(IntentsLogic.descendants)
    ancestors = blocking(IntentsLogic.ancestors)
    dependencies = blocking(IntentsLogic.dependencies)
    dependents = blocking(IntentsLogic.dependents)
    ready = blocking(IntentsLogic.ready)
    blocked = blocking(IntentsLogic.blocked)
    graph = blocking(IntentsLogic.graph)
    add_dependency = blocking(IntentsLogic.add_dependency)
    remove_dependency = blocking(IntentsLogic.remove_dependency)


class AsyncIntents(AsyncFacade[IntentsLogic]):
    """Makes, changes and follows intents, and lets others in."""

    create = awaiting(IntentsLogic.create)
    get = awaiting(IntentsLogic.get)
    list = awaiting(IntentsLogic.list)
    set_state = awaiting(IntentsLogic.set_state)
    set_status = awaiting(IntentsLogic.set_status)
    log = awaiting(IntentsLogic.log)
    events = awaiting(IntentsLogic.events)
    follow = awaiting_stream(IntentsLogic.follow)
    acl = awaiting(IntentsLogic.acl)
    set_acl = awaiting(IntentsLogic.set_acl)
    grant = awaiting(IntentsLogic.grant)
    revoke = awaiting(IntentsLogic.revoke)
    lease = awaiting(IntentsLogic.lease)
    leases = awaiting(IntentsLogic.leases)
    renew_lease = awaiting(IntentsLogic.renew_lease)
    release_lease = awaiting(IntentsLogic.release_lease)
    children = awaiting(IntentsLogic.children)
    descendants = awaiting(IntentsLogic.descendants)
    ancestors = awaiting(IntentsLogic.ancestors)
    dependencies = awaiting(IntentsLogic.dependencies)
    dependents = awaiting(IntentsLogic.dependents)
    ready = awaiting(IntentsLogic.ready)
    blocked = awaiting(IntentsLogic.blocked)
    graph = awaiting(IntentsLogic.graph)
    add_dependency = awaiting(IntentsLogic.add_dependency)
    remove_dependency = awaiting(IntentsLogic.remove_dependency)


class Tasks(Facade[TasksLogic]):
    """Gives work out, takes it up and says what came of it."""

    create = blocking(TasksLogic.create)
    get = blocking(TasksLogic.get)
    list = blocking(TasksLogic.list)
    next = blocking(TasksLogic.next)
    claim = blocking(TasksLogic.claim)
    renew = blocking(TasksLogic.renew)
    release = blocking(TasksLogic.release)
    update = blocking(TasksLogic.update)
    complete = blocking(TasksLogic.complete)
    fail = blocking(TasksLogic.fail)
    cancel = blocking(TasksLogic.cancel)
    assign = blocking(TasksLogic.assign)


class AsyncTasks(AsyncFacade[TasksLogic]):
    """Gives work out, takes it up and says what came of it."""

    create = awaiting(TasksLogic.create)
    get = awaiting(TasksLogic.get)
    list = awaiting(TasksLogic.list)
    next = awaiting(TasksLogic.next)
    claim = awaiting(TasksLogic.claim)
    renew = awaiting(TasksLogic.renew)
    release = awaiting(TasksLogic.release)
    update = awaiting(TasksLogic.update)
    complete = awaiting(TasksLogic.complete)
    fail = awaiting(TasksLogic.fail)
    cancel = awaiting(TasksLogic.cancel)
    assign = awaiting(TasksLogic.assign)


class Coordinators(Facade[CoordinatorsLogic]):
    """Puts agents in authority over intents."""

    create = blocking(CoordinatorsLogic.create)
    get = blocking(CoordinatorsLogic.get)
    list = blocking(CoordinatorsLogic.list)
    heartbeat = blocking(CoordinatorsLogic.heartbeat)
    resign = blocking(CoordinatorsLogic.resign)


class AsyncCoordinators(AsyncFacade[CoordinatorsLogic]):
    """Puts agents in authority over intents."""

    create = awaiting(CoordinatorsLogic.create)
    get = awaiting(CoordinatorsLogic.get)
    list = awaiting(CoordinatorsLogic.list)
    heartbeat = awaiting(CoordinatorsLogic.heartbeat)
    resign = awaiting(CoordinatorsLogic.resign)


class Attachments(Facade[AttachmentsLogic]):
    """Keeps files that belong to intents."""

    upload = blocking(AttachmentsLogic.upload)
    add = blocking(AttachmentsLogic.add)
    download = blocking(AttachmentsLogic.download)
    list = blocking(AttachmentsLogic.list)
    get = blocking(AttachmentsLogic.get)
    delete = blocking(AttachmentsLogic.delete)


class AsyncAttachments(AsyncFacade[AttachmentsLogic]):
    """Keeps files that belong to intents."""

    upload = awaiting(AttachmentsLogic.upload)
    add = awaiting(AttachmentsLogic.add)
    download = awaiting(AttachmentsLogic.download)
    list = awaiting(AttachmentsLogic.list)
    get = awaiting(AttachmentsLogic.get)
    delete = awaiting(AttachmentsLogic.delete)
