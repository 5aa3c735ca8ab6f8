"""The end of a step and the tick within one (memory wall, algorithm 11.2). Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from memorywall.kinds.working_memory import ItemChange, Reason, Scratch, WorkingState
from memorywall.working_memory.utility import (
    in_order_of_going,
    total_tokens,
    utilities,
    with_dependencies,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The items that stay, in their order, those that go, and what was done."""

    items: tuple[Scratch, ...]
    leaving: tuple[Scratch, ...]
    changes: tuple[ItemChange, ...]


def end_step(items: Sequence[Scratch], state: WorkingState) -> Outcome:
    """Clears everything but the marked items and what they need.

    These stay complete if they fit into the share of the budget that may be carried forward.
    Otherwise items go until they fit: first those that only an item that is gone has needed, then
    by utility. Marks last for one step.
    """
    scores = utilities(items, state.goal, state.tick, state.policy)
    marked = [item.name for item in items if item.carry_forward]
    carried = with_dependencies(items, marked)
    reasons: dict[str, Reason] = {
        item.name: "step_boundary_eviction" for item in items if item.name not in carried
    }
    kept = [item for item in items if item.name in carried]
    limit, tokens = state.policy.carry_share * state.policy.budget, total_tokens(kept)
    first = {item.name: scores[item.name] - (not item.carry_forward) * 10 for item in kept}
    for item in in_order_of_going(kept, first):
        if tokens <= limit:
            break
        tokens -= item.tokens
        reasons[item.name] = "carry_forward_overflow"
    outcome = leave(items, reasons, scores)
    fresh = tuple(msgspec.structs.replace(one, carry_forward=False) for one in outcome.items)
    return Outcome(fresh, outcome.leaving, outcome.changes)


def tick(items: Sequence[Scratch], state: WorkingState) -> Outcome:
    """Lets items go whose `ttl_ops` is over, each after every item that needs it.

    state: with the tick that begins
    """
    scores = utilities(items, state.goal, state.tick, state.policy)
    lasting = [
        item.name for item in items if item.ttl_ops is None or state.tick - item.tick < item.ttl_ops
    ]
    going = in_order_of_going(items, scores, lasting)
    reasons: dict[str, Reason] = {item.name: "ttl_expired" for item in going}
    return leave(items, reasons, scores)


def leave(
    items: Sequence[Scratch], reasons: dict[str, Reason], scores: dict[str, float]
) -> Outcome:
    """Parts the items into those that stay and those that go for the reasons, by name."""
    leaving = tuple(item for item in items if item.name in reasons)
    return Outcome(
        items=tuple(item for item in items if item.name not in reasons),
        leaving=leaving,
        changes=tuple(
            ItemChange(
                item=item.name,
                action="evicted",
                reason=reasons[item.name],
                tokens_before=item.tokens,
                utility=scores[item.name],
            )
            for item in leaving
        ),
    )
