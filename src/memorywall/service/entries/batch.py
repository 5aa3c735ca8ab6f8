"""Several writes at once (RFC-0015 "Batch Operations"), all or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memorywall.records.draft import EntryPatch, NewEntry
from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryConflictError, MemorywallError
from memorywall.service.entries.checks import CheckedEntry, CheckedPatch, check_new, check_patch
from memorywall.service.entries.create import create_checked
from memorywall.service.entries.update import update_checked
from memorywall.service.requests.operation_context import OperationContext


@dataclass(frozen=True, slots=True)
class Update:
    """An element of a batch that updates an entry."""

    entry_id: str
    version: int
    change: EntryPatch


async def write_all(
    context: OperationContext, elements: Sequence[NewEntry | Update]
) -> list[Entry]:
    """Creates and updates entries. The first failure rolls back the batch and carries `index`."""
    checked = [_check(context, index, element) for index, element in enumerate(elements)]
    written: list[Entry] = []
    for index, (element, one) in enumerate(zip(elements, checked, strict=True)):
        try:
            if isinstance(one, CheckedEntry):
                written.append(await create_checked(context, one))
            elif isinstance(element, Update):
                written.append(
                    await update_checked(context, element.entry_id, element.version, one)
                )
        except MemoryConflictError as error:
            if error.current is not None and error.current.id in {made.id for made in written}:
                # The conflict is within this batch, which is rolled back: the conflicting state
                # does not exist.
                raise type(error)("two elements concern the same entry", index=index) from None
            error.index = index
            raise
        except MemorywallError as error:
            error.index = index
            raise
    return written


def _check(
    context: OperationContext, index: int, element: NewEntry | Update
) -> CheckedEntry | CheckedPatch:
    """Validates all elements before any entry is read."""
    try:
        if isinstance(element, NewEntry):
            return check_new(context, element)
        return check_patch(context, element.change)
    except MemorywallError as error:
        error.index = index
        raise
