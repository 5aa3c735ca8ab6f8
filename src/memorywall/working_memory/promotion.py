"""Asks whether items are promoted to a more durable tier before they go (memory wall 11.2.3).

No rule promotes yet, so that the answer is always no. A promotion policy replaces `judge`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memorywall.kinds.working_memory import Scratch
from memorywall.records.entry import Entry
from memorywall.service.operation_context import OperationContext

NO_POLICY = "no: this server has no promotion policy"


@dataclass(frozen=True, slots=True)
class LeavingItem:
    """An item that goes, and its entry."""

    entry: Entry
    item: Scratch


async def judge(context: OperationContext, candidates: Sequence[LeavingItem]) -> tuple[str, ...]:
    """The answer for each candidate: `yes` or `no`, a colon and the reason. It has stored what it
    promotes."""
    return (NO_POLICY,) * len(candidates)
