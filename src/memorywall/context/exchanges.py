"""The calls of tools among turns, each with its result.

A provider refuses a call without its result, and a result that does not follow its call. A call
that has no result is left out, and its turn keeps its text. A late result moves behind its call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from memorywall.context.item import ContextItem
from memorywall.context.provider_rules import RULES, Provider, fit_id
from memorywall.context.rendering import STRAY_RESULT, turn_lead


@dataclass(slots=True)
class ToolExchange:
    """A turn with the results of its calls. A result without a call is a turn of its own.

    results: by the place of the call in the turn
    """

    turn: ContextItem
    results: dict[int, ContextItem] = field(default_factory=dict)

    @property
    def items(self) -> tuple[ContextItem, ...]:
        """The turn and the results in the order of their turns."""
        return self.turn, *sorted(self.results.values(), key=lambda one: one.sequence)

    @property
    def calls(self) -> list[tuple[dict[str, Any], ContextItem]]:
        """The calls that have a result, each with it."""
        return [
            (self.turn.tool_calls[place], self.results[place]) for place in sorted(self.results)
        ]

    @property
    def lead(self) -> str:
        """The words before the text of the turn."""
        mark = STRAY_RESULT if self.turn.role == "tool" else ""
        return f"{mark}{turn_lead(self.turn)}"

    @property
    def is_empty(self) -> bool:
        """Whether the turn was only for calls that have no result."""
        return bool(self.turn.tool_calls) and not self.results and not self.turn.text.strip()


def pair_exchanges(turns: Iterable[ContextItem]) -> list[ToolExchange]:
    """Returns turns in order, the results of calls with their calls.

    A result belongs to the last call of its id that has none. One without an id belongs to the next
    call of the turn that it follows.
    """
    found: list[ToolExchange] = []
    waiting: dict[str, list[tuple[ToolExchange, int]]] = {}
    last: ToolExchange | None = None
    for turn in turns:
        if turn.role != "tool":
            last = ToolExchange(turn)
            found.append(last)
            # Of two calls of one turn with one id, the first gets the first result.
            for at in reversed(range(len(turn.tool_calls))):
                waiting.setdefault(str(turn.tool_calls[at]["id"]), []).append((last, at))
        elif (place := _unnamed_call(turn, last)) is not None and last is not None:
            last.results[place] = turn
        elif turn.tool_call_id is not None and (call := _waiting(waiting, turn.tool_call_id)):
            call[0].results[call[1]] = turn
        else:
            found.append(ToolExchange(turn))
    return found


def _unnamed_call(result: ContextItem, last: ToolExchange | None) -> int | None:
    """Returns the place of the call of the last turn to which a result without an id belongs."""
    if result.tool_call_id is not None or last is None:
        return None
    return next(
        (
            place
            for place, call in enumerate(last.turn.tool_calls)
            if place not in last.results and result.name in (None, call["name"])
        ),
        None,
    )


def _waiting(
    waiting: dict[str, list[tuple[ToolExchange, int]]], call_id: str
) -> tuple[ToolExchange, int] | None:
    calls = waiting.get(call_id, [])
    while calls:
        exchange, place = calls.pop()
        if place not in exchange.results:
            return exchange, place
    return None


def pair_with_ids(
    turns: Iterable[ContextItem], provider: Provider
) -> Iterator[tuple[ToolExchange, list[str]]]:
    """Yields the exchanges of turns like `pair_exchanges`, each with the ids of its calls, which a
    provider accepts and no other call has.

    An id that repeats gets the sequence of its turn, so that most ids stay the same from one
    context to the next.
    """
    longest = RULES.providers[provider].longest_id
    taken: set[str] = set()
    for exchange in pair_exchanges(turns):
        ids = []
        for call, _ in exchange.calls:
            wanted = fit_id(str(call["id"]), provider)
            own, number = wanted, exchange.turn.sequence
            while own in taken:
                own = f"{wanted[: longest - len(str(number)) - 1]}_{number}"
                number += 1
            taken.add(own)
            ids.append(own)
        yield exchange, ids
