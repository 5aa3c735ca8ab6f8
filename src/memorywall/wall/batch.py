"""Several writes that happen all or not at all (RFC-0015 "Batch Operations")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memorywall.records.draft import Change, Draft
from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryConflictError, MemorywallError
from memorywall.records.principal import Principal
from memorywall.storage.port import Script, Transaction
from memorywall.wall.door import Door
from memorywall.wall.entries import create, update


@dataclass(frozen=True, slots=True)
class Update:
    """An element of a batch that changes an entry."""

    entry_id: str
    version: int
    change: Change


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """What a batch wrote, in the order of its elements."""

    entries: list[Entry]
    created: int
    updated: int


async def write_all(
    door: Door, principal: Principal, elements: Sequence[Draft | Update]
) -> Script[Written]:
    """A script that makes and changes entries. The first failure undoes all and carries `index`."""
    scripts: list[Script[Entry]] = []
    for index, element in enumerate(elements):
        try:
            if isinstance(element, Draft):
                scripts.append(await create(door, principal, element))
            else:
                scripts.append(
                    await update(door, principal, element.entry_id, element.version, element.change)
                )
        except MemorywallError as error:
            error.index = index
            raise

    async def script(transaction: Transaction) -> Written:
        entries: list[Entry] = []
        for index, one in enumerate(scripts):
            try:
                entries.append(await one(transaction))
            except MemoryConflictError as error:
                if error.current is not None and error.current.id in {made.id for made in entries}:
                    # The clash is with this batch itself, which is undone: there is no such state.
                    raise type(error)("two elements concern the same entry", index=index) from None
                error.index = index
                raise
            except MemorywallError as error:
                error.index = index
                raise
        created = sum(isinstance(element, Draft) for element in elements)
        return Written(entries=entries, created=created, updated=len(elements) - created)

    return script
