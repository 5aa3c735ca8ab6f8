"""The budgets of the segments of a context (memory wall 11.2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
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


def default_reserve(window: int) -> int:
    """The reserve of a request that names none."""
    return int(window * RESERVE_SHARE)


def plan(
    window: int,
    reserve: int,
    asked: Mapping[GroupName, float],
    mandatory: Mapping[GroupName, int],
    *,
    is_reserve_given: bool = True,
) -> dict[GroupName, int]:
    """Returns the budgets of the groups. Together they are the window without the reserve.

    asked: budgets of the request: tokens from 1 on, a share of the window below 1
    mandatory: the tokens that a group needs at least
    is_reserve_given: whether the reserve stays when the window changes; otherwise it is the default
        reserve of each window
    Raises BudgetError.
    """
    for name, given in asked.items():
        if 1 <= given < mandatory.get(name, 0):
            raise BudgetError(mandatory[name], name)
    room = window - reserve
    least = sum(mandatory.values())
    if room < least:
        raise BudgetError(_least_window(asked, mandatory, reserve if is_reserve_given else None))
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


def _least_window(
    asked: Mapping[GroupName, float], mandatory: Mapping[GroupName, int], reserve: int | None
) -> int:
    """Returns the least window that has room for the mandatory tokens of each group.

    reserve: None for the default reserve of the window
    """
    room = sum(mandatory.values())
    shares = [(one, mandatory.get(name, 0)) for name, one in asked.items() if one < 1]

    def is_enough(window: int) -> bool:
        rest = window - (default_reserve(window) if reserve is None else reserve)
        return rest >= room and all(share * window >= needed for share, needed in shares)

    # The quotients are right but for the rounding of numbers, which the loops undo.
    first = room / (1 - RESERVE_SHARE) if reserve is None else room + reserve
    window = ceil(max([first, *(needed / share for share, needed in shares)]))
    while not is_enough(window):
        window += 1
    while is_enough(window - 1):
        window -= 1
    return window
