"""Entries: create, get, change, delete, query, export."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from memorywall.records.filter import DEFAULT_PAGE
from memorywall.server.dispatch import Call
from memorywall.server.filters import filter_of
from memorywall.server.once import write_once
from memorywall.server.replies import Reply, Stream, encode, entry_reply, json_reply
from memorywall.wall import entries, queries
from memorywall.wire.entries import EntryPage, EntryQuery, view


async def create_entry(call: Call) -> Reply:
    script = await entries.create(call.door, call.principal, call.body)
    return await write_once(
        call, script, lambda entry: entry_reply(entry, 201), lambda entry: (entry.id,)
    )


async def get_entry(call: Call) -> Reply:
    return entry_reply(await entries.get(call.door, call.principal, call.path["entry_id"]))


async def update_entry(call: Call) -> Reply:
    assert call.if_match is not None  # noqa: S101 - the table requires it
    script = await entries.update(
        call.door, call.principal, call.path["entry_id"], call.if_match, call.body
    )
    return entry_reply(await call.door.store.write(call.principal.tenant, script))


async def delete_entry(call: Call) -> Reply:
    script = await entries.delete(call.door, call.principal, call.path["entry_id"], call.if_match)
    await call.door.store.write(call.principal.tenant, script)
    return Reply(204, b"")


async def query_entries(call: Call) -> Reply:
    wanted = filter_of(call, call.query, limit=call.query.limit or DEFAULT_PAGE)
    page = await queries.query(call.door, call.principal, wanted)
    return json_reply(
        EntryPage(
            entries=[view(entry) for entry in page.entries],
            total=page.total,
            limit=page.limit,
            offset=page.offset,
        )
    )


async def export_entries(call: Call) -> Stream:
    wanted = filter_of(call, call.query, limit=None)

    async def lines() -> AsyncIterator[bytes]:
        async with aclosing(queries.export(call.door, call.principal, wanted)) as pages:
            async for page in pages:
                yield b"".join(encode(view(entry)) + b"\n" for entry in page)

    return Stream(b"application/x-ndjson", lines())


async def list_agent_memory(call: Call) -> Reply:
    asked = call.query
    wanted = filter_of(
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
