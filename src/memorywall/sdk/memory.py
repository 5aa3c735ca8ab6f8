"""`client.memory`: all operations on entries; follows changes, and keeps reads that are current."""

from __future__ import annotations

from typing import Any, TypedDict, Unpack

from memorywall.records.errors import ValidationError
from memorywall.records.tier import Tier
from memorywall.sdk import retry
from memorywall.sdk.attachments import AsyncAttachmentsClient, AttachmentsClient
from memorywall.sdk.corrections import CorrectionsCore
from memorywall.sdk.effects import RequestGenerator, StreamGenerator
from memorywall.sdk.executors import AwaitingDriver, BlockingDriver
from memorywall.sdk.facade import AsyncFacade, Facade, method, stream_method
from memorywall.sdk.filters import MemoryType, without_absent
from memorywall.sdk.models import ChangePage, read_event
from memorywall.sdk.retry import call
from memorywall.sdk.streams import follow_events
from memorywall.wire.events import ChangePageResponse, EventData, EventResponse

PATIENCE = 300.0
"""Seconds of pauses without a connection after which a watch ends with an error."""


class ChangeConditions(TypedDict, total=False):
    """The conditions of changes besides the namespace; all given conditions must hold.

    scope: a scope of shared state: `global`, `agent`, or `team:` and a team
    key: the exact key
    memory_type: the tier
    kind: the kind of the value; changes of unlisted kinds appear only if named
    about: a person that the entry is about
    user: the person that the request is bound to, as by `client.for_user`
    task_id, intent_id: the task or intent that the entry is bound to
    """

    scope: str | None
    key: str | None
    memory_type: MemoryType | None
    kind: str | None
    about: str | None
    user: str | None
    task_id: str | None
    intent_id: str | None


class ChangeArguments(ChangeConditions, total=False):
    """The conditions of changes; all given conditions must hold.

    namespace: a whole name, or a prefix that ends in `*`
    """

    namespace: str | None


class MemoryCore(CorrectionsCore):
    """Follows changes, as request generators."""

    def changes(
        self,
        after: int | None = None,
        *,
        limit: int = 100,
        wait: int = 0,
        **wanted: Unpack[ChangeArguments],
    ) -> RequestGenerator[ChangePage]:
        """Returns a page of the changes of memory that the client may read, in order.

        Pass `next` of the page as `after` to get the next page; `more` tells whether the log has
        further events now. A page without `after` is empty, and its `next` is the present: read
        entries after it and follow from there, so that no change is missed.

        after: the position to start after; 0 is the beginning of the log
        limit: the most events, up to 1,000
        wait: seconds to wait for a change if there is none, up to 20
        wanted: the conditions, see `memorywall.sdk.memory.ChangeArguments`

        Raises CursorLostError if the log does not contain the position, as after the store was
        restored from a backup; MemoryAccessError.
        """
        query = {**_conditions(wanted), "after": after, "limit": limit, "wait": wait}
        page = yield from call("list_changes", ChangePageResponse, query=query)
        events = [read_event(event) for event in page.events]
        for event in events:
            self._drop_read(event)
        return ChangePage(events, next=page.next, more=page.more)

    def watch(
        self,
        namespace: str | None = None,
        *,
        after: int | None = None,
        patience: float = PATIENCE,
        **wanted: Unpack[ChangeConditions],
    ) -> StreamGenerator[EventResponse]:
        """Iterates over the changes of memory as they occur, each once and in order, without end.

        Each event is authorized when it is delivered. After a broken connection the stream resumes
        after the last received event, after pauses that grow to 2 seconds. The watch ends with
        MemoryTransportError after `patience` seconds of pauses without a connection, and with
        AuthenticationError or MemoryAccessError when the access is lost. To end it, stop iterating
        and call `close()` (or `aclose()`) on the iterator.

        An event has a `type`, such as `memory.updated`, the `actor`, and `data` with the entry's
        id, name, tier and version; it has no value. Reads that the client keeps (`cache`) are
        dropped by the events of a watch, and all are dropped when it ends.

        namespace: a whole name, or a prefix that ends in `*`; default: every namespace
        after: the position to start after: `next` of a page of `changes`, or the `seq` of an event;
            default: the present, when the iteration starts
        wanted: the conditions, see `memorywall.sdk.memory.ChangeConditions`

        Raises CursorLostError, see `changes`.
        """
        asked = ChangeArguments(namespace=namespace, **wanted)
        conditions = retry.texts(_conditions(asked))
        if after is None:
            after = (yield from self.changes(**asked)).next
        try:
            yield from follow_events(
                "list_changes", {}, after, patience, conditions, self._drop_read
            )
        finally:
            self._state.reads.clear()

    def cache(self, namespace: str, *, max_age: float) -> RequestGenerator[None]:
        """Lets `get` and `get_by_id` return entries of a namespace as they were read up to
        `max_age` seconds ago, without a request. Older reads are validated with their ETag.

        Writes of this client drop the reads of the entry; so does a `watch` of this client that
        reports the entry. Changes by others that no watch reports, and the loss of access, take
        effect after at most `max_age` seconds. Queries, searches and writes always ask the server.

        namespace: the whole name; `shared/global` and `shared/team/<team>` for shared state
        max_age: seconds; 0 ends the caching, which is the default

        Raises ValidationError for a negative `max_age`.
        """
        if not max_age >= 0:
            raise ValidationError("`max_age` must be a number of seconds, 0 or more")
        self._state.reads.allow(self._state.versions.full_namespace(namespace), max_age)
        yield from ()

    def _drop_read(self, event: EventResponse) -> None:
        reads, data = self._state.reads, event.data
        if not reads.is_used:
            return
        if not isinstance(data, EventData):
            reads.clear()
            return
        reads.drop_id(data.entry_id)
        reads.drop(data.namespace, data.key)


def _conditions(wanted: ChangeArguments) -> dict[str, Any]:
    """Returns the conditions as query parameters."""
    names = {"task_id": "scope.task_id", "intent_id": "scope.intent_id"}
    asked = {names.get(name, name): one for name, one in wanted.items()}
    if isinstance(asked.get("memory_type"), Tier):
        asked["memory_type"] = str(asked["memory_type"])
    return without_absent(asked)


class _MemoryMethods:
    set = method(MemoryCore.set)
    put = method(MemoryCore.put)
    update = method(MemoryCore.update)
    merge = method(MemoryCore.merge)
    get = method(MemoryCore.get)
    get_by_id = method(MemoryCore.get_by_id)
    query = method(MemoryCore.query)
    iterate = stream_method(MemoryCore.iterate)
    select = stream_method(MemoryCore.select)
    count = method(MemoryCore.count)
    entry_namespaces = method(MemoryCore.entry_namespaces)
    history = method(MemoryCore.history)
    search = method(MemoryCore.search)
    reshape_query = method(MemoryCore.reshape_query)
    supersede = method(MemoryCore.supersede)
    reinstate = method(MemoryCore.reinstate)
    correct = method(MemoryCore.correct)
    retract = method(MemoryCore.retract)
    undo = method(MemoryCore.undo)
    confirm = method(MemoryCore.confirm)
    delete = method(MemoryCore.delete)
    delete_by_id = method(MemoryCore.delete_by_id)
    batch = method(MemoryCore.batch)
    delete_matching = method(MemoryCore.delete_matching)
    export = stream_method(MemoryCore.export)
    changes = method(MemoryCore.changes)
    watch = stream_method(MemoryCore.watch)
    cache = method(MemoryCore.cache)
    namespaces = method(MemoryCore.namespaces)
    namespace = method(MemoryCore.namespace)
    set_permissions = method(MemoryCore.set_permissions)
    grant = method(MemoryCore.grant)
    revoke = method(MemoryCore.revoke)
    set_limits = method(MemoryCore.set_limits)
    summary = method(MemoryCore.summary)


class MemoryClient(_MemoryMethods, Facade[MemoryCore]):
    """Writes, reads, finds, deletes and follows entries; `attachments` are the files of entries."""

    def __init__(self, core: MemoryCore, driver: BlockingDriver) -> None:
        super().__init__(core, driver)
        self.attachments = AttachmentsClient(core.attachments, driver)


class AsyncMemoryClient(_MemoryMethods, AsyncFacade[MemoryCore]):
    """Writes, reads, finds, deletes and follows entries; `attachments` are the files of entries."""

    def __init__(self, core: MemoryCore, driver: AwaitingDriver) -> None:
        super().__init__(core, driver)
        self.attachments = AsyncAttachmentsClient(core.attachments, driver)
