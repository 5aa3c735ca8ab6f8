"""Batches: several writes at once (RFC-0015 "Batch Operations"), all or none."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from memorywall.operations.binding import operation
from memorywall.operations.entries import warnings_of
from memorywall.operations.worthiness import weigh
from memorywall.records.draft import EntryPatch, NewEntry
from memorywall.records.errors import MemorywallError, PreconditionError, ValidationError
from memorywall.records.worthiness import Verdict
from memorywall.service.entries.batch import Update, write_all
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.wire.entries import BatchElement, BatchResponse, view

_CREATE_ONLY = ("namespace", "key", "memory_type", "agent_id")
_FEW = 16
"""Batches with at most this many elements run as short transactions."""
_REQUIRED = ("namespace", "key", "value", "memory_type")


@operation(
    "write_batch",
    is_long=lambda call: len(call.body.entries) > _FEW,
    shows=lambda shown: tuple(entry.id for entry in shown.entries),
)
async def write_batch(context: OperationContext, call: OperationCall) -> BatchResponse:
    elements: list[NewEntry | Update] = []
    for index, element in enumerate(call.body.entries):
        try:
            elements.append(_batch_element(element))
        except MemorywallError as error:
            error.index = index
            raise
    verdicts = await _judge(context, elements) if call.query.judge else []
    refused = {place for place, one in enumerate(verdicts) if one is not None and one.refused}
    kept = [place for place in range(len(elements)) if place not in refused]
    elements = [elements[place] for place in kept]
    try:
        written = await write_all(context, elements)
    except MemorywallError as error:
        error.index = None if error.index is None else kept[error.index]
        raise
    created = sum(isinstance(element, NewEntry) for element in elements)
    return BatchResponse(
        entries=[view(entry) for entry in written],
        created=created,
        updated=len(elements) - created,
        warnings=warnings_of(context) or UNSET,
        verdicts=verdicts or UNSET,
    )


async def _judge(
    context: OperationContext, elements: Sequence[NewEntry | Update]
) -> list[Verdict | None]:
    """What is decided about each new entry; nothing if the tenant judges nothing."""
    # Nothing is written if all of them are refused, so that nothing else decides.
    context.decide_by_row()
    verdicts = [
        await weigh(context, one, raises=False) if isinstance(one, NewEntry) else None
        for one in elements
    ]
    return verdicts if any(verdicts) else []


def _batch_element(element: BatchElement) -> NewEntry | Update:
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
        return NewEntry(**given)
    if element.version is UNSET:
        raise PreconditionError("give the entry's current `version` beside its `id`")
    fixed = [name for name in _CREATE_ONLY if name in given]
    if fixed:
        raise ValidationError("cannot be changed: " + ", ".join(f"`{name}`" for name in fixed))
    del given["id"], given["version"]
    return Update(element.id, element.version, EntryPatch(**given))
