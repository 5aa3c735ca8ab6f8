"""The embedding lag, and the walk of a new model through the entries."""

from __future__ import annotations

from typing import Final

import msgspec

from memorywall.service.requests.event_log import last_sequence
from memorywall.storage.port import Transaction

EMBED: Final = "embed"
"""The name of the background job that embeds."""


class WalkCursor(msgspec.Struct, frozen=True, array_like=True):
    """The cursor of a walk of a new model through a tenant's entries.

    after: the id of the last visited entry
    log: the `seq` of the last event at the start of the walk
    seen: the number of visited entries
    """

    model: str
    after: str
    log: int
    seen: int


async def walk_cursor(transaction: Transaction, model: str) -> WalkCursor | None:
    """The cursor of the running walk of a model, None without one."""
    job = await transaction.jobs.get(EMBED)
    if job is None or not job.cursor:
        return None
    cursor = msgspec.json.decode(job.cursor, type=WalkCursor)
    return cursor if cursor.model == model else None


async def embedding_lag(transaction: Transaction, model: str) -> int:
    """The number of logged changes that are not embedded yet; during a walk an estimate."""
    logged = await last_sequence(transaction)
    position = await transaction.recall.position(model)
    if position == 0 and logged:
        cursor = await walk_cursor(transaction, model)
        return logged if cursor is None else max(1, logged - cursor.seen)
    return max(0, logged - position)
