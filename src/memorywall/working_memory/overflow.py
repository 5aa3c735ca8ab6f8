"""The overflow handler of working memory (memory wall, algorithm 11.1). Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec

from memorywall.kinds.working_memory import (
    Action,
    ItemChange,
    Reason,
    Scratch,
    ScratchReference,
    WorkingState,
)
from memorywall.records.feature_errors import DecompositionRequiredError
from memorywall.summaries import SourceTurn, summarize
from memorywall.working_memory.steps import Outcome, leave
from memorywall.working_memory.utility import in_order_of_going, total_tokens, utilities

_PRUNED_TO = 0.9
"""The share of the budget at which pruning stops."""
_SMALLEST_COMPRESSED = 32
"""Texts with fewer tokens are not compressed."""

Refer = Callable[[Scratch], ScratchReference]


def handle_overflow(
    items: Sequence[Scratch],
    state: WorkingState,
    *,
    count: Callable[[str], int],
    refer: Refer,
    written: Collection[str] = (),
) -> Outcome:
    """Brings items within the budget: prunes those of low utility, compresses texts, replaces
    content by references, in this order and no further than needed.

    count: counts the tokens of a text
    refer: makes the reference to an item's content, which the caller stores for each item of the
        result that has a new reference
    written: names of items that were written just now; they and marked items are not pruned

    Raises DecompositionRequiredError with the budget and the tokens that are needed.
    """
    budget = state.policy.budget
    if total_tokens(items) <= budget:
        return Outcome(tuple(items), (), ())
    scores = utilities(items, state.goal, state.tick, state.policy)
    pruned = _prune(items, state, scores, written)
    kept = list(pruned.items)
    changes = list(pruned.changes)
    order = sorted(kept, key=lambda item: (scores[item.name], item.order))
    for change in (_Compression(state.policy.compress_to, count), _Externalization(count, refer)):
        for item in order:
            if total_tokens(kept) <= budget:
                break
            place = next(index for index, one in enumerate(kept) if one.name == item.name)
            new = change.apply(kept[place])
            if new is not None and new.tokens < kept[place].tokens:
                changes.append(_changed(kept[place], new, change.action, scores[item.name]))
                kept[place] = new
    need = total_tokens(kept)
    if need > budget:
        raise DecompositionRequiredError(
            f"the step needs {need} tokens of working memory and has {budget}; divide it into"
            " smaller steps, or begin it with a larger `budget`",
            budget=budget,
            need=need,
        )
    return Outcome(tuple(kept), pruned.leaving, tuple(changes))


def reference_tokens(reference: ScratchReference, count: Callable[[str], int]) -> int:
    """The tokens of an item that holds a reference."""
    return count(msgspec.json.encode(reference).decode())


def _prune(
    items: Sequence[Scratch],
    state: WorkingState,
    scores: dict[str, float],
    written: Collection[str],
) -> Outcome:
    held = {item.name for item in items if item.carry_forward or item.name in written}
    tokens, target = total_tokens(items), _PRUNED_TO * state.policy.budget
    reasons: dict[str, Reason] = {}
    for item in in_order_of_going(items, scores, held):
        if tokens <= target or scores[item.name] >= state.policy.prune_below:
            break
        tokens -= item.tokens
        reasons[item.name] = "low_utility_prune"
    return leave(items, reasons, scores)


class _Compression:
    """Replaces a text by its summary, once."""

    action: Action = "compressed"

    def __init__(self, share: float, count: Callable[[str], int]) -> None:
        self._share = share
        self._count = count

    def apply(self, item: Scratch) -> Scratch | None:
        """The item with a shorter text; None for one that cannot be compressed."""
        text = item.content
        if not isinstance(text, str) or item.compressed_from is not None:
            return None
        if item.tokens < _SMALLEST_COMPRESSED:
            return None
        budget = int(item.tokens * self._share)
        turn = SourceTurn(item.order, "assistant", text)
        summary = summarize((turn,), budget, count=self._count).text
        if not summary:
            return None
        return msgspec.structs.replace(
            item, content=summary, tokens=self._count(summary), compressed_from=item.tokens
        )


class _Externalization:
    """Replaces content by a reference."""

    action: Action = "externalized"

    def __init__(self, count: Callable[[str], int], refer: Refer) -> None:
        self._count = count
        self._refer = refer

    def apply(self, item: Scratch) -> Scratch | None:
        """The item with a reference; None for one that has one."""
        if item.reference is not None:
            return None
        reference = self._refer(item)
        tokens = reference_tokens(reference, self._count)
        return msgspec.structs.replace(item, content=None, reference=reference, tokens=tokens)


def _changed(old: Scratch, new: Scratch, action: Action, utility: float) -> ItemChange:
    return ItemChange(
        item=old.name,
        action=action,
        reason="over_budget",
        tokens_before=old.tokens,
        tokens_after=new.tokens,
        utility=utility,
    )
