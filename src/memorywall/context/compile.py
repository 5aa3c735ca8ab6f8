"""Compiles a context. A pure function: the same request gives the same context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from memorywall.context.budgets import GROUP_OF, GroupName, plan
from memorywall.context.item import (
    SEGMENTS,
    BudgetError,
    Compiled,
    ContextItem,
    Dropped,
    DropReason,
    Segment,
    SegmentName,
    Slices,
)
from memorywall.context.pinned import LAST_CHOICE, choose_pinned
from memorywall.context.rendering import heading_tokens, tokens_of
from memorywall.context.request import CompileRequest
from memorywall.context.sources import DEMOTED
from memorywall.context.summary import largest_summary, missing_statements, shorten
from memorywall.context.tools import choose_tools
from memorywall.context.turns import SessionContent, choose_turns, turns_with_statements
from memorywall.context.units import Unit, exchanges, fill, group
from memorywall.summaries.importance import TURNS

FROZEN_SHARE = 0.8
"""The share of a budget that the slices at the beginning may take; the rest is for what later
requests add."""
_SLICED: tuple[SegmentName, ...] = ("semantic", "episodic", "shared")
_UNASKED: frozenset[SegmentName] = frozenset({"core", "semantic", "episodic", "procedural"})
"""The segments of memories that no request names."""
_BY_QUERY: tuple[GroupName, ...] = ("semantic", "episodic")


def compile_context(request: CompileRequest) -> Compiled:
    """Returns the context. Raises BudgetError when its mandatory parts do not fit.

    What the session begins with and its question are pinned as long as they fit.
    """
    choice = 0
    while True:
        try:
            return _compile(request, choice)
        except BudgetError:
            if choice == LAST_CHOICE:
                raise
            choice += 1


def _compile(request: CompileRequest, choice: int) -> Compiled:
    """Returns the context with one of the choices of turns to pin. Raises BudgetError."""
    previous = request.previous
    if previous is not None:
        compiled = _Compilation(request, previous, choice).run()
        if compiled is not None:
            return compiled
        # The turns move. With a new summary the memories are chosen anew as well.
        newest = max((one.sequence for one in request.items if one.segment == "summary"), default=0)
        previous = replace(previous, first_turn=0) if newest == previous.epoch else None
    compiled = _Compilation(request, previous, choice).run()
    if compiled is None:
        raise RuntimeError("a context that follows no other one has no turns to keep")
    return compiled


class _Compilation:
    """One compilation: the units of each segment, and what has been chosen of them.

    choice: which turns to pin, from 0 to `LAST_CHOICE`
    """

    def __init__(self, request: CompileRequest, previous: Slices | None, choice: int) -> None:
        self.request = request
        self.count = request.count
        self.dropped: list[Dropped] = []
        self.chosen: dict[SegmentName, list[Unit]] = {}
        self.units = self._admit()
        self._pin(choice)
        self.headings = {name: heading_tokens(name, self.count) for name in SEGMENTS}
        self.largest_summary = largest_summary(request.window - request.reserve)
        self.summaries = self._shortened()
        self.previous = previous
        self.epoch = self.uncovered = 0

    def run(self) -> Compiled | None:
        """Returns the context; None if it cannot begin like the previous one."""
        request = self.request
        budgets = plan(
            request.window,
            request.reserve,
            request.budgets,
            self._mandatory(),
            is_reserve_given=request.is_reserve_given,
        )
        if (limit := self._session_limit()) is not None:
            budgets["session"] = min(budgets["session"], limit)
        room = request.window - request.reserve
        self._take("user", self.units["user"], budgets["user"])
        self._system(budgets["system"])
        for name in _BY_QUERY:
            self._slices(name, budgets[name])
        self._take("procedural", self._ranked("procedural"), budgets["procedural"])
        # What others leave goes to working memory, then to the turns, then to the other segments.
        needed = self._session_need()
        free = room - self._used() - min(needed, budgets["session"] - self._used("session"))
        limit = budgets["working"] if "working" in request.budgets else free
        self._working(min(limit, free))
        free = room - self._used()
        limit = self._session_limit()
        free = free if limit is None else min(free, limit)
        if not self._session(self._limit("session", budgets, free)):
            return None
        for name in _BY_QUERY:
            self._extend(name, budgets)
        self._extend("procedural", budgets)
        self._remind(self._limit("session", budgets, room - self._used()))
        return self._result(budgets)

    def _admit(self) -> dict[SegmentName, list[Unit]]:
        """Returns the units of each segment; lists what must not be in the context."""
        request = self.request
        admitted: dict[SegmentName, list[ContextItem]] = {name: [] for name in SEGMENTS}
        working = [] if request.working is None else request.working.whole()
        for item in (*request.items, *working):
            counted = item if item.tokens else replace(item, tokens=tokens_of(item, self.count))
            if reason := self._refusal(counted):
                self._drop((counted,), reason)
            else:
                admitted[item.segment].append(counted)
        admitted["core"] = self._newest_blocks(admitted["core"])
        ordered = sorted(admitted["turns"], key=lambda one: one.sequence)
        turns, incomplete = exchanges(ordered, is_cut=bool(request.unread))
        self._drop(incomplete, "incomplete_tool_exchange")
        return {
            name: turns if name == "turns" else group(items) for name, items in admitted.items()
        }

    def _pin(self, choice: int) -> None:
        """Pins turns. Raises BudgetError if the budget of the session has no room for them."""
        request = self.request
        room, limit = request.window - request.reserve, request.session_budget
        room = room if limit is None else min(room, limit)
        is_asked = bool(self.units["user"])
        for unit in choose_pinned(
            self.units["turns"], room, request.unread, choice, is_asked=is_asked
        ):
            unit.pin()
        pinned = sum(unit.tokens for unit in self.units["turns"] if unit.pinned)
        if limit is not None and pinned > limit:
            raise BudgetError(pinned, "session")

    def _newest_blocks(self, blocks: Sequence[ContextItem]) -> list[ContextItem]:
        """Returns the newest block of each label, of the agent itself and of each person.

        blocks: newest first
        """
        newest: dict[tuple[str | None, tuple[str, ...]], ContextItem] = {}
        for item in blocks:
            one = newest.setdefault((item.name or item.id, item.subjects), item)
            if one is not item:
                self._drop((item,), "superseded")
        return list(newest.values())

    def _refusal(self, item: ContextItem) -> DropReason | None:
        request = self.request
        if item.id in request.rejected:
            return "rejected"
        if item.session_id is not None and item.session_id != request.session_id:
            return "foreign_session"
        if request.subjects is None:
            if item.subjects and item.segment in _UNASKED:
                return "foreign_subject"
        elif not request.subjects.issuperset(item.subjects):
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
                units = kept_units(units, segment, self.previous)
            self._take(segment, units, limit)
        self._add(segments, budget - self._used(name))

    def _add(self, segments: Sequence[SegmentName], allowance: int) -> None:
        """Adds units of segments, that no slice contains, before the message of the user."""
        shown = self._shown()
        rest = [unit for name in segments for unit in self._ranked(name) if id(unit) not in shown]
        added = self.chosen.setdefault("added", [])
        heading = 0 if added else self.headings["added"]
        added += fill(rest, allowance, heading)[0]

    def _working(self, allowance: int) -> None:
        """Takes working memory. The overflow handler is asked if it does not fit."""
        working, heading = self.request.working, self.headings["working"]
        own = set() if working is None else {one.id for one in working.entries.values()}
        scratch = [unit for unit in self.units["working"] if unit.first.id in own]
        others = [unit for unit in self._ranked("working") if unit.first.id not in own]
        if working is not None and sum(unit.tokens for unit in scratch) + heading > allowance:
            fitted = working.within(allowance - heading, self.count)
            admitted = [one for one in fitted if self._refusal(one) is None]
            scratch = group(replace(one, tokens=tokens_of(one, self.count)) for one in admitted)
        self._take("working", [*scratch, *others], allowance)

    def _session_need(self) -> int:
        """Returns the most tokens that the session can use."""
        needed = 0
        of_session: tuple[tuple[SegmentName, list[Unit]], ...] = (
            ("turns", self.units["turns"]),
            ("summary", self.summaries[-1:]),
        )
        for name, units in of_session:
            if units:
                needed += sum(unit.tokens for unit in units) + self.headings[name]
        limit = self._session_limit()
        return needed if limit is None else min(needed, limit)

    def _session_limit(self) -> int | None:
        """Returns the most tokens of the session, with a turn that the model has to answer."""
        budget = self.request.session_budget
        if budget is None:
            return None
        turns = self.units["turns"]
        return budget + sum(one.tokens for one in turns if one.mandatory and not one.pinned)

    def _shortened(self) -> list[Unit]:
        """Returns the summaries by the turns that they cover."""
        return [
            Unit((shorten(unit.first, self.largest_summary, self.count),))
            for unit in sorted(self.units["summary"], key=lambda one: one.first.sequence)
        ]

    def _session(self, allowance: int) -> bool:
        """Takes the summary and the turns of the session. Returns whether the context begins like
        the previous one."""
        request = self.request
        units = self.units["turns"]
        is_first = not self.chosen.get("added")
        headings = (self.headings["summary"], self.headings["added"] if is_first else 0)
        allowance = max(0, allowance - (self.headings["turns"] if units else 0))
        reserved = sum(unit.tokens for unit in units if unit.mandatory)
        largest = largest_summary(request.window - request.reserve, allowance - reserved)
        if largest < self.largest_summary:
            self.largest_summary = largest
            self.summaries = self._shortened()
        content = SessionContent(
            units=units,
            summaries=self.summaries,
            unread=request.unread,
            goes_on=request.previous is not None,
            weights={**TURNS, **request.turn_weights},
        )
        chosen = choose_turns(content, allowance, headings, request.strategy, self.previous)
        if chosen is None:
            return False
        self.epoch, self.uncovered = chosen.epoch, chosen.uncovered
        self.chosen["summary"] = [] if chosen.summary is None else [chosen.summary]
        self.chosen["turns"] = chosen.verbatim
        self.chosen.setdefault("added", []).extend(chosen.recalled)
        return True

    def _remind(self, free: int) -> None:
        """Gives what is still free to turns with statements that the shown summary lacks."""
        limit = self._session_limit()
        free = free if limit is None else min(free, limit - self._used("session"))
        for shown in self.chosen.get("summary", ()):
            whole = next(one for one in self.units["summary"] if one.first.id == shown.first.id)
            there = self._shown()
            left = [unit for unit in self.units["turns"] if id(unit) not in there]
            added = self.chosen.setdefault("added", [])
            ranked = turns_with_statements(left, missing_statements(whole.first, shown.first))
            added += fill(ranked, free, 0 if added else self.headings["added"])[0]

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

    def _list_dropped(self) -> None:
        """Lists what was not chosen, with the reasons."""
        # A summary is shown shortened, and the tools that do not fit by one item.
        shown = {unit.first.id for units in self.chosen.values() for unit in units}
        is_summarized = bool(self.chosen.get("summary"))
        for name in SEGMENTS:
            for unit in self.units[name]:
                if unit.first.id in shown:
                    continue
                reason: DropReason = "over_budget"
                if name == "turns" and is_summarized and unit.first.sequence <= self.epoch:
                    reason = "summarized"
                elif name == "summary" and unit.first.sequence != self.epoch:
                    reason = "superseded" if unit.first.sequence < self.epoch else "turns_shown"
                self._drop(unit.items, reason)

    def _result(self, budgets: Mapping[GroupName, int]) -> Compiled:
        request = self.request
        room = request.window - request.reserve
        used = self._used()
        if used > room:
            raise RuntimeError(f"the context takes {used} tokens of {room}")
        self._list_dropped()
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
        return Compiled(
            window=request.window,
            reserve=request.reserve,
            tokens=used,
            segments=tuple(segments),
            dropped=tuple(self.dropped),
            largest_summary=self.largest_summary,
            uncovered=self.uncovered,
            slices=Slices(
                epoch=self.epoch,
                first_turn=_first_turn(self.chosen.get("turns", [])),
                kept={
                    one: tuple(key_of(unit) for unit in self.chosen.get(one, [])) for one in _SLICED
                },
            ),
        )


def _first_turn(verbatim: Sequence[Unit]) -> int:
    """Returns the first turn from which on all turns are shown, beside pinned ones; 0 for none."""
    unpinned = [unit for unit in verbatim if not unit.pinned] or verbatim
    return unpinned[0].first.sequence if unpinned else 0


def key_of(unit: Unit) -> tuple[str, int]:
    """Returns the name of a unit in a slice: an item of another version is another one."""
    return unit.first.id, unit.first.version


def kept_units(units: Sequence[Unit], segment: SegmentName, previous: Slices) -> list[Unit]:
    """Returns the units that a slice of the previous context had, in its order. A changed source
    stands before the first item that was derived from it. An item that a lesson rejects has left,
    and so has one that is contradicted by a memory which the slices do not show."""
    kept = previous.kept.get(segment, ())
    places: dict[tuple[str, int], float] = {one: at for at, one in enumerate(kept)}
    by_id = {name: at for at, (name, _) in enumerate(kept)}
    shown = {name for pairs in previous.kept.values() for name, _ in pairs}
    for unit in units:
        derived = [by_id[name] for name in unit.first.beside if name in by_id]
        if unit.first.reason == DEMOTED or not shown.issuperset(unit.first.contradicted_by):
            places.pop(key_of(unit), None)
        elif derived:
            places.setdefault(key_of(unit), min(derived) - 0.5)
    return sorted((unit for unit in units if key_of(unit) in places),
                  key=lambda one: places[key_of(one)])  # fmt: skip
