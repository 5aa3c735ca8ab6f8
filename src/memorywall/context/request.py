"""What a context is compiled from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from memorywall.context.budgets import GroupName
from memorywall.context.item import ContextItem, Slices, Strategy
from memorywall.context.working_items import WorkingMemory
from memorywall.tokens.estimate import TokenCounter, estimate


class CompileRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a context is compiled from.

    window: the tokens of the model, for prompt and output
    reserve: the tokens for the output
    is_reserve_given: whether the reserve stays when the window changes; otherwise it is the default
        reserve of each window
    budgets: by group of segments: tokens from 1 on, a share of the window below 1
    items: everything that may be in the context; turns in order
    now: the instant in the stored form
    session_id: the session; items of others are left out
    subjects: the people that the context is for; None for nobody: it then contains nothing about
        people but what belongs to its session, its task or its scope
    working: the working memory of the task; None for none
    rejected: ids of items that must not be in the context
    session_budget: the most tokens of the summary and the turns of the session, beside a turn that
        the model has to answer; None for what the window leaves
    unread: the sequence of the last turn that `items` does not have; 0 for none
    turn_weights: weights of classes of turns that differ from the defaults, for `importance`
    query: orders tools that do not fit
    previous: the slices of the previous context of the session
    count: counts tokens; default: the estimate
    """

    window: int
    reserve: int
    items: Sequence[ContextItem]
    now: str
    is_reserve_given: bool = True
    budgets: Mapping[GroupName, float] = msgspec.field(default_factory=dict)
    strategy: Strategy = "hierarchical"
    session_id: str | None = None
    subjects: frozenset[str] | None = None
    working: WorkingMemory | None = None
    rejected: frozenset[str] = frozenset()
    session_budget: int | None = None
    unread: int = 0
    turn_weights: Mapping[str, float] = msgspec.field(default_factory=dict)
    query: str = ""
    previous: Slices | None = None
    count: TokenCounter = estimate
