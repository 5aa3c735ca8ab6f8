"""Compiles a context. A pure function: the same request gives the same context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memorywall.context.budgets import GROUP_OF, GroupName, plan
from memorywall.context.item import (
    SEGMENTS,
    Compiled,
    ContextItem,
    Dropped,
    DropReason,
    Segment,
    SegmentName,
    Slices,
    Strategy,
)
from memorywall.context.rendering import heading_tokens, tokens_of
from memorywall.context.tools import choose_tools
from memorywall.context.turns import choose_turns
from memorywall.context.units import Unit, exchanges, fill, group
from memorywall.tokens.estimate import TokenCounter, estimate

FROZEN_SHARE = 0.8
"""The share of a budget that the slices at the beginning may take; the rest is for what later
requests add."""
_SLICED: tuple[SegmentName, ...] = ("semantic", "episodic", "shared")
_BY_QUERY: tuple[GroupName, ...] = ("semantic", "episodic")


@dataclass(frozen=True, kw_only=True)
class CompileRequest:
    """What a context is compiled from.

    window: the tokens of the model, for prompt and output
    reserve: the tokens for the output
    budgets: by group of segments: tokens from 1 on, a share of the window below 1
    items: everything that may be in the context; turns in order
    now: the instant in the stored form
    session_id: the session; items of others are left out
    subjects: the people of the session; None to admit items about anybody
    epoch: the last turn that the summary covers
    query: orders tools that do not fit
    previous: the slices of the previous context of the session
    count: counts tokens; default: the estimate
    """

    window: int
    reserve: int
    items: Sequence[ContextItem]
    now: str
    budgets: Mapping[GroupName, float] = field(default_factory=dict)
    strategy: Strategy = "hierarchical"
    session_id: str | None = None
    subjects: frozenset[str] | None = None
    epoch: int = 0
    query: str = ""
    previous: Slices | None = None
    count: TokenCounter = estimate


def compile_context(request: CompileRequest) -> Compiled:
    """Returns the context. Raises BudgetError when its mandatory parts do not fit."""
    return _Compilation(request).run()


class _Compilation:
    """One compilation: the units of each segment, and what has been chosen of them."""

    def __init__(self, request: CompileRequest) -> None:
        self.request = request
        self.count = request.count
        self.dropped: list[Dropped] = []
        self.chosen: dict[SegmentName, list[Unit]] = {}
        self.units = self._admit()
        self.headings = {name: heading_tokens(name, self.count) for name in SEGMENTS}
        previous = request.previous
        self.previous = previous if previous and previous.epoch == request.epoch else None

    def run(self) -> Compiled:
        """Returns the context."""
        request = self.request
        budgets = plan(request.window, request.reserve, request.budgets, self._mandatory())
        room = request.window - request.reserve
        self._take("user", self.units["user"], budgets["user"])
        self._system(budgets["system"])
        for name in _BY_QUERY:
            self._slices(name, budgets[name])
        self._take("procedural", self._ranked("procedural"), budgets["procedural"])
        reserved = sum(unit.tokens for unit in self.units["turns"] if unit.mandatory)
        reserved += self.headings["turns"] if reserved else 0
        summary, _ = fill(
            self.units["summary"], budgets["session"] - reserved, self.headings["summary"]
        )
        self.chosen["summary"] = summary
        # What others leave goes to working memory, then to the turns, then to the other segments.
        needed = self._session_need()
        free = room - self._used() - min(needed, budgets["session"] - self._used("session"))
        limit = budgets["working"] if "working" in request.budgets else free
        self._take("working", self._ranked("working"), min(limit, free))
        free = room - self._used()
        if self.units["turns"]:
            self._turns(self._limit("session", budgets, free))
        for name in _BY_QUERY:
            self._extend(name, budgets)
        self._extend("procedural", budgets)
        return self._result(budgets)

    def _admit(self) -> dict[SegmentName, list[Unit]]:
        """Returns the units of each segment; lists what must not be in the context."""
        request = self.request
        admitted: dict[SegmentName, list[ContextItem]] = {name: [] for name in SEGMENTS}
        for item in request.items:
            counted = item if item.tokens else replace(item, tokens=tokens_of(item, self.count))
            if reason := self._refusal(counted):
                self._drop((counted,), reason)
            else:
                admitted[item.segment].append(counted)
        turns, incomplete = exchanges(admitted["turns"])
        self._drop(incomplete, "incomplete_tool_exchange")
        return {
            name: turns if name == "turns" else group(items) for name, items in admitted.items()
        }

    def _refusal(self, item: ContextItem) -> DropReason | None:
        request = self.request
        if item.session_id is not None and item.session_id != request.session_id:
            return "foreign_session"
        if request.subjects is not None and not request.subjects.issuperset(item.subjects):
            return "foreign_subject"
        if item.expires_at is not None and item.expires_at <= request.now:
            return "expired"
        return None

    def _mandatory(self) -> dict[GroupName, int]:
        """Returns the tokens of the mandatory units by group, with their headings."""
        needed: dict[GroupName, int] = {}
        for name, group_name in GROUP_OF.items():
            units = [unit for unit in self.units[name] if unit.mandatory]
            if units:
                tokens = sum(unit.tokens for unit in units) + self.headings[name]
                needed[group_name] = needed.get(group_name, 0) + tokens
        return needed

    def _ranked(self, name: SegmentName) -> list[Unit]:
        """Returns the units of a segment in the order in which they are taken."""
        return sorted(
            self.units[name], key=lambda one: (not one.mandatory, -one.score, one.first.id)
        )

    def _take(self, name: SegmentName, units: Iterable[Unit], allowance: int) -> None:
        kept, _ = fill(units, allowance, self.headings[name])
        self.chosen[name] = kept

    def _system(self, budget: int) -> None:
        """Takes the system text, the core memory, and tools within what remains."""
        self._take("system", self.units["system"], budget)
        self._take("core", self._ranked("core"), budget - self._used("system"))
        self.chosen["tools"] = choose_tools(
            self.units["tools"],
            budget - self._used("system"),
            self.request.query,
            self.headings["tools"],
            self.count,
        )

    def _slices(self, name: GroupName, budget: int) -> None:
        """Takes the slices at the beginning, then what the request adds to them."""
        segments = [one for one in _SLICED if GROUP_OF[one] == name]
        for segment in segments:
            limit = int(budget * FROZEN_SHARE) - self._used(name)
            units = self._ranked(segment)
            if self.previous is not None:
                places = {key: at for at, key in enumerate(self.previous.kept.get(segment, ()))}
                kept = [unit for unit in units if _key(unit) in places]
                units = sorted(kept, key=lambda one: places[_key(one)])
            self._take(segment, units, limit)
        self._add(segments, budget - self._used(name))

    def _add(self, segments: Sequence[SegmentName], allowance: int) -> None:
        """Adds units of segments, that no slice contains, before the message of the user."""
        shown = self._shown()
        rest = [unit for name in segments for unit in self._ranked(name) if id(unit) not in shown]
        added = self.chosen.setdefault("added", [])
        heading = 0 if added else self.headings["added"]
        added += fill(rest, allowance, heading)[0]

    def _session_need(self) -> int:
        needed = sum(unit.tokens for unit in self.units["turns"])
        return needed + self.headings["turns"] if needed else 0

    def _turns(self, allowance: int) -> None:
        """Takes the turns of the session."""
        request = self.request
        first = self.previous.first_turn if self.previous is not None else 0
        heading = 0
        if request.strategy == "hierarchical" and not self.chosen.get("added"):
            heading = self.headings["added"]
        allowance = max(0, allowance - self.headings["turns"])
        chosen = choose_turns(
            self.units["turns"], allowance, heading, request.strategy, request.epoch, first
        )
        self.chosen["turns"] = chosen.verbatim
        self.chosen.setdefault("added", []).extend(chosen.recalled)

    def _limit(self, name: GroupName, budgets: Mapping[GroupName, int], free: int) -> int:
        """Returns what a group may still take: all that is free, unless its budget was given."""
        if name in self.request.budgets:
            return min(free, budgets[name] - self._used(name))
        return free

    def _extend(self, name: GroupName, budgets: Mapping[GroupName, int]) -> None:
        """Gives a group what is still free."""
        room = self.request.window - self.request.reserve
        free = self._limit(name, budgets, room - self._used())
        if name == "procedural":
            self._more("procedural", free)
        else:
            self._add([one for one in _SLICED if GROUP_OF[one] == name], free)

    def _more(self, name: SegmentName, free: int) -> None:
        shown = self._shown()
        rest = [unit for unit in self._ranked(name) if id(unit) not in shown]
        taken = self.chosen[name]
        taken += fill(rest, free, 0 if taken else self.headings[name])[0]

    def _shown(self) -> set[int]:
        return {id(unit) for units in self.chosen.values() for unit in units}

    def _used(self, name: GroupName | None = None) -> int:
        """Returns the tokens that a group has taken, or all of them."""
        used = 0
        for segment, units in self.chosen.items():
            mine = [
                unit for unit in units
                if name is None or GROUP_OF[unit.first.segment] == name
            ]  # fmt: skip
            if mine:
                used += sum(unit.tokens for unit in mine)
                if segment != "added" or name is None or units[0] is mine[0]:
                    used += self.headings[segment]
        return used

    def _drop(self, items: Iterable[ContextItem], reason: DropReason) -> None:
        self.dropped += [
            Dropped(id=item.id, segment=item.segment, tokens=item.tokens, reason=reason)
            for item in items
        ]

    def _result(self, budgets: Mapping[GroupName, int]) -> Compiled:
        request = self.request
        room = request.window - request.reserve
        used = self._used()
        if used > room:
            raise RuntimeError(f"the context takes {used} tokens of {room}")
        shown = self._shown()
        listed = {unit.first.id for unit in self.chosen["tools"]}
        for name in SEGMENTS:
            for unit in self.units[name]:
                if id(unit) in shown or (name == "tools" and unit.first.id in listed):
                    continue
                covered = name == "turns" and unit.first.sequence <= request.epoch
                summarized = covered and bool(self.chosen["summary"])
                self._drop(unit.items, "summarized" if summarized else "over_budget")
        segments = []
        for name in SEGMENTS:
            units = self.chosen.get(name, [])
            if not units:
                continue
            tokens = sum(unit.tokens for unit in units) + self.headings[name]
            granted = budgets[GROUP_OF[name]] if name in GROUP_OF else tokens
            items = tuple(item for unit in units for item in unit.items)
            if name == "added":
                items = tuple(
                    replace(item, quoted=True, reason="recalled")
                    if item.segment == "turns"
                    else item
                    for item in items
                )
            segments.append(
                Segment(name=name, budget=max(granted, tokens), tokens=tokens, items=items)
            )
        verbatim = self.chosen.get("turns", [])
        return Compiled(
            window=request.window,
            reserve=request.reserve,
            tokens=used,
            segments=tuple(segments),
            dropped=tuple(self.dropped),
            slices=Slices(
                epoch=request.epoch,
                first_turn=verbatim[0].first.sequence if verbatim else 0,
                kept={
                    one: tuple(_key(unit) for unit in self.chosen.get(one, [])) for one in _SLICED
                },
            ),
        )


def _key(unit: Unit) -> tuple[str, int]:
    return unit.first.id, unit.first.version
