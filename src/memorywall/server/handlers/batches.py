"""Batches: several writes at once, several deletions at once."""

from __future__ import annotations

from msgspec import UNSET

from memorywall.records.draft import Change, Draft
from memorywall.records.errors import (
    MemorywallError,
    PreconditionError,
    RequestError,
    ValidationError,
)
from memorywall.records.filter import Filter
from memorywall.server.dispatch import Call
from memorywall.server.filters import filter_of
from memorywall.server.once import write_once
from memorywall.server.replies import Reply, json_reply
from memorywall.wall import batch, queries
from memorywall.wire.entries import BatchElement, BatchReply, Deleted, view

_CREATE_ONLY = ("namespace", "key", "memory_type", "agent_id")
_FEW = 16
"""Up to this many elements a batch is not long."""
_REQUIRED = ("namespace", "key", "value", "memory_type")


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

    return await write_once(
        call,
        script,
        render,
        lambda written: tuple(one.id for one in written.entries),
        long=len(elements) > _FEW,
    )


async def delete_matching(call: Call) -> Reply:
    wanted = filter_of(call, call.query, limit=call.query.limit)
    if wanted == Filter(tenant=wanted.tenant, limit=wanted.limit, offset=wanted.offset):
        raise RequestError(
            "an empty filter would delete everything; say `namespace=*` if that is meant"
        )
    script = await queries.delete_matching(call.door, call.principal, wanted)
    return json_reply(
        Deleted(deleted=await call.door.store.write(call.principal.tenant, script, long=True))
    )


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
