"""The budgets of the segments of a context (memory wall 11.2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from memorywall.context.item import BudgetError, SegmentName

GroupName = Literal["system", "semantic", "episodic", "session", "procedural", "working", "user"]

GROUP_OF: dict[SegmentName, GroupName] = {
    "system": "system", "tools": "system", "core": "system", "semantic": "semantic",
    "episodic": "episodic", "shared": "episodic", "summary": "session", "turns": "session",
    "procedural": "procedural", "working": "working", "user": "user",
}  # fmt: skip
"""The group of segments that shares a budget. An item in `added` counts to its own group."""

SHARES: dict[GroupName, float] = {
    "system": 0.032, "session": 0.064, "episodic": 0.064, "semantic": 0.128, "procedural": 0.032,
}  # fmt: skip
"""The default budgets as shares of the window; working memory has what remains."""
RESERVE_SHARE = 0.128
"""The share of the window that is left for the output unless a request says otherwise."""


def plan(
    window: int,
    reserve: int,
    asked: Mapping[GroupName, float],
    mandatory: Mapping[GroupName, int],
) -> dict[GroupName, int]:
    """Returns the budgets of the groups. Together they are the window without the reserve.

    asked: budgets of the request: tokens from 1 on, a share of the window below 1
    mandatory: the tokens that a group needs at least
    Raises BudgetError.
    """
    room = window - reserve
    least = sum(mandatory.values())
    if room < least:
        raise BudgetError(least + reserve)
    budgets: dict[GroupName, int] = {}
    for name, share in SHARES.items():
        wanted = asked.get(name)
        tokens = share * window if wanted is None else wanted if wanted >= 1 else wanted * window
        needed = mandatory.get(name, 0)
        if wanted is not None and tokens < needed:
            raise BudgetError(needed, name)
        budgets[name] = max(needed, int(tokens))
    free = room - least
    surplus = sum(budgets.values()) - sum(mandatory.get(name, 0) for name in budgets)
    if surplus > free:
        for name in budgets:
            needed = mandatory.get(name, 0)
            budgets[name] = needed + (budgets[name] - needed) * free // surplus
    budgets["user"] = mandatory.get("user", 0)
    rest = room - sum(budgets.values())
    working = asked.get("working")
    if working is not None:
        rest = min(rest, int(working if working >= 1 else working * window))
    budgets["working"] = rest
    return budgets
