"""What each operation of the table does: one call of the wall, one rendering."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import TypeVar

from msgspec import UNSET

from memorywall import __version__
from memorywall.records.clock import parse_instant
from memorywall.records.draft import Change, Draft
from memorywall.records.errors import (
    MemorywallError,
    PreconditionError,
    RequestError,
    ValidationError,
)
from memorywall.records.filter import DEFAULT_PAGE, Filter
from memorywall.records.namespace import Access, Namespace
from memorywall.records.tier import Eviction, Tier
from memorywall.records.usage import Usage
from memorywall.server.dispatch import Call, Handler
from memorywall.server.replies import Reply, Stream, encode, entry_reply, json_reply
from memorywall.storage.port import Script, Transaction
from memorywall.wall import batch, entries, namespaces, queries, streams, summaries
from memorywall.wall.limits import check_tags
from memorywall.wall.once import Reply as KeptReply
from memorywall.wall.once import once
from memorywall.wire.agents import (
    EpisodicSummary,
    EventPage,
    NamespaceBrief,
    NamespaceList,
    NamespaceView,
    Permissions,
    SummaryView,
    WorkingSummary,
    event_view,
)
from memorywall.wire.entries import (
    BatchElement,
    BatchReply,
    Deleted,
    EntryPage,
    EntryQuery,
    ExportQuery,
    view,
)
from memorywall.wire.service import Capabilities, Discovery, Limits, Status

Result = TypeVar("Result")

_RFCS = ["RFC-0015"]
_CAPABILITIES = ["memory", "memory.batch", "memory.namespaces", "memory.events", "memory.export"]
_CREATE_ONLY = ("namespace", "key", "memory_type", "agent_id")
_REQUIRED = ("namespace", "key", "value", "memory_type")


async def create_entry(call: Call) -> Reply:
    script = await entries.create(call.door, call.principal, call.body)
    return await _write(
        call, script, lambda entry: entry_reply(entry, 201), lambda entry: (entry.id,)
    )


async def get_entry(call: Call) -> Reply:
    return entry_reply(await entries.get(call.door, call.principal, call.path["entry_id"]))


async def update_entry(call: Call) -> Reply:
    assert call.if_match is not None  # noqa: S101 - the table requires it
    script = await entries.update(
        call.door, call.principal, call.path["entry_id"], call.if_match, call.body
    )
    return entry_reply(await call.door.store.write(script))


async def delete_entry(call: Call) -> Reply:
    script = await entries.delete(call.door, call.principal, call.path["entry_id"], call.if_match)
    await call.door.store.write(script)
    return Reply(204, b"")


async def query_entries(call: Call) -> Reply:
    wanted = _filter(call, call.query, limit=call.query.limit or DEFAULT_PAGE)
    page = await queries.query(call.door, call.principal, wanted)
    return json_reply(
        EntryPage(
            entries=[view(entry) for entry in page.entries],
            total=page.total,
            limit=page.limit,
            offset=page.offset,
        )
    )


async def write_batch(call: Call) -> Reply:
    elements: list[Draft | batch.Update] = []
    for index, element in enumerate(call.body.entries):
        try:
            elements.append(_batch_element(element))
        except MemorywallError as error:
            error.index = index
            raise
    script = await batch.write_all(call.door, call.principal, elements)

    def render(written: batch.Written) -> Reply:
        return json_reply(
            BatchReply(
                entries=[view(entry) for entry in written.entries],
                created=written.created,
                updated=written.updated,
            )
        )

    return await _write(
        call, script, render, lambda written: tuple(one.id for one in written.entries)
    )


async def delete_matching(call: Call) -> Reply:
    wanted = _filter(call, call.query, limit=call.query.limit)
    if wanted == Filter(tenant=wanted.tenant, limit=wanted.limit, offset=wanted.offset):
        raise RequestError("an empty filter would delete everything; name what to delete")
    script = await queries.delete_matching(call.door, call.principal, wanted)
    return json_reply(Deleted(deleted=await call.door.store.write(script)))


async def export_entries(call: Call) -> Stream:
    wanted = _filter(call, call.query, limit=None)

    async def lines() -> AsyncIterator[bytes]:
        async with aclosing(queries.export(call.door, call.principal, wanted)) as pages:
            async for page in pages:
                yield b"".join(encode(view(entry)) + b"\n" for entry in page)

    return Stream(b"application/x-ndjson", lines())


async def list_namespaces(call: Call) -> Reply:
    known = await namespaces.list_namespaces(call.door, call.principal)
    briefs = [NamespaceBrief(namespace=one.name, access=access) for one, access in known]
    return json_reply(NamespaceList(namespaces=briefs, total=len(briefs)))


async def get_namespace(call: Call) -> Reply:
    namespace, access = await namespaces.get_namespace(
        call.door, call.principal, call.path["namespace"]
    )
    return _namespace_reply(namespace, access)


async def set_namespace_permissions(call: Call) -> Reply:
    change = call.body.permissions
    name = call.path["namespace"]
    script = await namespaces.set_permissions(
        call.door,
        call.principal,
        name,
        default=change.default,
        allow=change.allow,
        version=call.if_match,
    )
    namespace = await call.door.store.write(script)
    return _namespace_reply(namespace, namespaces.access_to(call.principal, namespace))


async def summarize_agent(call: Call) -> Reply:
    summary = await summaries.summarize(call.door, call.principal, call.path["agent_id"])
    return json_reply(
        SummaryView(
            agent_id=summary.agent_id,
            working=WorkingSummary(
                entry_count=summary.working.entries,
                total_size_kb=_kilobytes(summary.working),
                tasks_with_memory=summary.tasks,
            ),
            episodic=EpisodicSummary(
                entry_count=summary.episodic.entries,
                capacity=summary.capacity,
                pinned_count=summary.episodic.pinned,
                total_size_kb=_kilobytes(summary.episodic),
                oldest_entry=summary.oldest,
                newest_entry=summary.newest,
            ),
            semantic_namespaces_accessible=summary.namespaces,
        )
    )


async def list_agent_memory(call: Call) -> Reply:
    asked = call.query
    wanted = _filter(
        call,
        EntryQuery(
            agent_id=call.path["agent_id"],
            namespace=asked.namespace,
            memory_type=asked.memory_type,
            tags=asked.tags,
            offset=asked.offset,
        ),
        limit=asked.limit,
    )
    page = await queries.query(call.door, call.principal, wanted)
    return json_reply([view(entry) for entry in page.entries])


async def list_events(call: Call) -> Reply | Stream:
    agent, after = call.path["agent_id"], call.query.after
    if b"text/event-stream" in call.headers.get(b"accept", b""):
        return await _event_stream(call, agent, after)
    events = await streams.list_events(call.door, call.principal, agent, after, call.query.limit)
    views = [event_view(event) for event in events]
    return json_reply(EventPage(events=views, next=events[-1].seq if events else after))


async def get_capabilities(call: Call) -> Reply:
    settings = call.door.settings
    return json_reply(
        Capabilities(
            version=__version__,
            rfcs=_RFCS,
            capabilities=_CAPABILITIES,
            memory_types=list(Tier),
            eviction_policies=[Eviction.LEAST_RECENTLY_USED],
            extensions={
                "export": "/api/v1/memory/export",
                "events": "/api/v1/agents/{agent_id}/events",
            },
            limits=Limits(
                episodic_capacity=settings.episodic_capacity,
                working_capacity_per_task=settings.working_capacity_per_task,
            ),
        )
    )


async def discover(call: Call) -> Reply:
    return json_reply(Discovery(version=__version__, rfcs=_RFCS, capabilities=_CAPABILITIES))


async def health(call: Call) -> Reply:
    return json_reply(Status(status="ok"))


async def ready(call: Call) -> Reply:
    async def script(transaction: Transaction) -> None:
        await call.door.vault.check(transaction)

    await call.door.store.read(script)
    return json_reply(Status(status="ready"))


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        create_entry,
        query_entries,
        write_batch,
        delete_matching,
        export_entries,
        list_namespaces,
        get_namespace,
        set_namespace_permissions,
        get_entry,
        update_entry,
        delete_entry,
        summarize_agent,
        list_agent_memory,
        list_events,
        get_capabilities,
        discover,
        health,
        ready,
    )
}


async def _write(
    call: Call,
    script: Script[Result],
    render: Callable[[Result], Reply],
    shown: Callable[[Result], tuple[str, ...]],
) -> Reply:
    """Runs a script, once only for each Idempotency-Key where the request has one."""
    if call.idempotency_key is None:
        return render(await call.door.store.write(script))

    def keep(result: Result) -> KeptReply:
        reply = render(result)
        return KeptReply(reply.status, reply.body, shown(result))

    kept = await once(call.door, call.principal, call.idempotency_key, call.content, script, keep)
    return Reply(kept.status, kept.body)


async def _event_stream(call: Call, agent: str, after: int) -> Stream:
    if last := call.headers.get(b"last-event-id"):
        if not last.isdigit() or len(last) > 18:
            raise RequestError("`Last-Event-ID` must be the id of an event of this stream")
        after = int(last)
    # The first page is read here, so that a refusal is still a problem document.
    pages = streams.follow_events(call.door, call.principal, agent, after)
    first = await anext(pages)

    async def pieces() -> AsyncIterator[bytes]:
        async with aclosing(pages):
            yield _sse(first)
            async for events in pages:
                yield _sse(events)

    return Stream(b"text/event-stream", pieces(), endless=True)


def _sse(events: list[streams.Event]) -> bytes:
    if not events:
        return b": alive\n\n"
    return b"".join(
        b"id: %d\nevent: %b\ndata: %b\n\n"
        % (event.seq, event.type.encode(), encode(event_view(event)))
        for event in events
    )


def _namespace_reply(namespace: Namespace, access: Access) -> Reply:
    content = NamespaceView(
        namespace=namespace.name,
        access=access,
        permissions=Permissions(default=namespace.default, allow=list(namespace.grants)),
        version=namespace.version,
        created_at=namespace.created_at,
        updated_at=namespace.updated_at,
    )
    return json_reply(content, headers=((b"etag", b'"%d"' % namespace.version),))


def _filter(call: Call, asked: EntryQuery | ExportQuery, limit: int | None) -> Filter:
    """The filter a query string asks for. Raises RequestError naming the parameter."""
    namespace, prefix = asked.namespace, None
    if namespace is not None and namespace.endswith("*"):
        namespace, prefix = None, namespace[:-1]
    return Filter(
        tenant=call.principal.tenant,
        tiers=() if asked.memory_type is None else (asked.memory_type,),
        agent_id=asked.agent_id,
        namespace=namespace,
        namespace_prefix=prefix,
        key=asked.key,
        tags=_split("tags", asked.tags),
        tags_any=_split("tags_any", asked.tags_any),
        task_id=asked.task_id,
        intent_id=asked.intent_id,
        pinned=asked.pinned,
        updated_after=_instant("updated_after", asked.updated_after),
        updated_before=_instant("updated_before", asked.updated_before),
        before=asked.before if isinstance(asked, ExportQuery) else None,
        limit=limit,
        offset=asked.offset if isinstance(asked, EntryQuery) else 0,
    )


def _split(name: str, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    try:
        return check_tags(text.split(","), name)
    except ValidationError as error:
        raise RequestError(error.detail) from None


def _instant(name: str, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return parse_instant(text)
    except ValueError:
        raise RequestError(f"`{name}` must be an RFC 3339 instant with an offset") from None


def _batch_element(element: BatchElement) -> Draft | batch.Update:
    given = {
        name: getattr(element, name)
        for name in element.__struct_fields__
        if getattr(element, name) is not UNSET
    }
    if element.id is UNSET:
        if element.version is not UNSET:
            raise ValidationError("`version` goes with `id`; leave both out to create")
        missing = [name for name in _REQUIRED if name not in given]
        if missing:
            raise ValidationError("missing: " + ", ".join(f"`{name}`" for name in missing))
        return Draft(**given)
    if element.version is UNSET:
        raise PreconditionError("give the entry's current `version` beside its `id`")
    fixed = [name for name in _CREATE_ONLY if name in given]
    if fixed:
        raise ValidationError("cannot be changed: " + ", ".join(f"`{name}`" for name in fixed))
    del given["id"], given["version"]
    return batch.Update(element.id, element.version, Change(**given))


def _kilobytes(usage: Usage) -> int:
    return -(-usage.bytes // 1024)
