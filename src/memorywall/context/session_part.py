"""Gathers what a context may contain of its session: summaries, turns, and what the previous
context keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from memorywall.context.item import ContextItem, Slices
from memorywall.context.rendering import MESSAGE_TOKENS
from memorywall.context.sources import WHOLE, item_of, turn_item
from memorywall.kinds.contexts import CONTEXT, StoredContext
from memorywall.kinds.sessions import SUMMARY, TURN, Turn
from memorywall.records.entry import Entry, is_expired
from memorywall.records.session import SessionCounters
from memorywall.service.entries.governed_entries import MOST_TOKENS_IN_LOOP, read_value
from memorywall.service.requests.operation_context import OperationContext
from memorywall.sessions.access import check_open
from memorywall.sessions.continuation import load_inherited_summary
from memorywall.sessions.large_parts import restore_turn
from memorywall.sessions.stored import LoadedSession, load_counters, sequence_key
from memorywall.sessions.turns import StoredTurn, load_turns, open_turns

_PAGE = 500
"""The most turns that are read at once."""
_SPARE_TURNS = 4
"""Turns that are read beside those that fit if they have the mean length of the session."""
_MOST_TURNS = 200
"""The most turns that are read in the event loop."""
_OPENING_TURNS = 4
"""The first turns of a session, among which its first message of the user is looked for."""
_SEARCHED_AT_ONCE, _MOST_SEARCHED = 32, 512
"""The turns that are read at once, and the most of them, to find the question that an agent works
on."""
_MOST_WHOLE = 16 * 1024 * 1024
"""The most bytes of large parts that are shown as they were sent."""
_RECENT_CONTEXTS = 8
_SUMMARIES = 5
"""The most summaries among which that of the previous context is looked for."""


@dataclass(frozen=True, slots=True)
class SessionPart:
    """The candidates for the content of a context from its session.

    previous: what the next context keeps of the previous one; None without one
    turns_omitted: the oldest turns that were not read, because they cannot fit
    unread: the sequence of the last turn that was not read; 0 for none
    """

    items: list[ContextItem]
    previous: Slices | None
    turns_omitted: int
    unread: int


async def gather_session(
    context: OperationContext,
    loaded: LoadedSession,
    room: int,
    shape: str,
    *,
    is_asked: bool,
    is_whole: bool,
) -> SessionPart:
    """Returns what a context may contain of a session that the principal may read.

    room: the tokens for everything
    shape: see `StoredContext`
    is_asked: whether the request has a message of the user, so that no turn is the question
    is_whole: whether parts of turns that are in attachments are shown as they were sent
    Raises SessionClosedError, SessionQuarantinedError, and WorkNeededError for many turns.
    """
    counters = await load_counters(context, loaded.id)
    check_open(loaded, counters, context.moment)
    mean = _mean_tokens(counters)
    turns_read = min(counters.turn_count, room // mean)
    if turns_read > _MOST_TURNS or turns_read * mean > MOST_TOKENS_IN_LOOP:
        context.require_long_run()
    size = _turns_that_fit(counters, room)
    # Mostly the newest context is of the same form, and the values of the others are large.
    wanted = {CONTEXT.name: 1, SUMMARY.name: _SUMMARIES, TURN.name: size}
    newest = await context.transaction.entries.newest_of_session(loaded.id, loaded.owner, wanted)
    previous = await _previous(context, loaded, shape, newest[CONTEXT.name])
    epoch = 0 if previous is None else previous.epoch
    summaries = newest[SUMMARY.name]
    first = await load_inherited_summary(context, loaded)
    if first is not None and all(one.id != first.id for one in summaries):
        summaries = [*summaries, first]
    summaries = [one for one in summaries if one.state == "live"]
    items = await _summary_items(context, summaries, epoch)
    turns = await open_turns(context, newest[TURN.name])
    read, left = len(turns), room - _tokens(turns)
    while read == size and (left >= 0 or _lacks(turns, is_asked=is_asked)):
        if (before := turns[-1].turn.sequence) == 1:
            break
        size = _turns_that_fit(counters, left) if left >= 0 else _SEARCHED_AT_ONCE
        page = await load_turns(
            context, loaded, before=before, limit=size, newest_first=True, is_live=False
        )
        turns += page
        read, left = len(page), left - _tokens(page)
    unread = _last_unread(turns) if len(turns) < counters.turn_count else 0
    if unread:
        turns += await _opening(context, loaded, turns[-1].turn.sequence)
    wholes = await _load_wholes(context, turns) if is_whole else {}
    for place, one in enumerate(reversed(turns)):
        if place % _MOST_TURNS == 0:
            await context.transaction.give_way()
        if one.entry.state == "live":
            whole = wholes.get(one.entry.id)
            item = turn_item(one.entry, one.turn if whole is None else whole, context.now)
            items.append(item if whole is None else replace(item, reason=WHOLE))
    omitted = max(0, counters.turn_count - len(turns))
    return SessionPart(items, previous, omitted, unread if omitted else 0)


async def _load_wholes(context: OperationContext, turns: Sequence[StoredTurn]) -> dict[str, Turn]:
    """Returns turns with their large parts as they were sent, by the ids of their entries: the
    newest ones, as far as they are not too large together.

    turns: newest first
    """
    found: dict[str, Turn] = {}
    left = _MOST_WHOLE
    for one in turns:
        left -= sum(part.size for part in one.turn.moved)
        if left < 0:
            break
        if one.turn.moved:
            context.require_long_run()
            found[one.entry.id] = await restore_turn(context, one.turn)
    return found


def _mean_tokens(counters: SessionCounters) -> int:
    return counters.token_usage // max(1, counters.turn_count) + MESSAGE_TOKENS


def _turns_that_fit(counters: SessionCounters, room: int) -> int:
    """Returns how many turns to read at once for so many tokens. Reading a turn costs more than
    choosing among turns, so few are read that cannot fit."""
    mean = _mean_tokens(counters)
    return min(_PAGE, max(0, room // mean) + _SPARE_TURNS)


def _lacks(turns: Sequence[StoredTurn], *, is_asked: bool) -> bool:
    """Returns whether turns that do not fit have to be read before the newest ones: the calls of
    results of a tool, and the question that an agent works on."""
    if all(one.turn.role == "tool" for one in turns):
        return True
    return not is_asked and len(turns) < _MOST_SEARCHED and not any(map(_is_question, turns))


def _is_question(one: StoredTurn) -> bool:
    return one.entry.state == "live" and one.turn.role == "user" and one.turn.trusted


async def _opening(
    context: OperationContext, loaded: LoadedSession, before: int
) -> list[StoredTurn]:
    """Returns the turns that a session begins with, newest first: those of the system, and the
    first one of the user.

    before: the first turn that was read
    """
    turns = await load_turns(context, loaded, before=before, limit=_OPENING_TURNS, is_live=False)
    place = next((at for at, one in enumerate(turns) if _is_question(one)), None)
    if place is None:
        return []
    return [turns[place], *(one for one in turns[:place][::-1] if one.turn.role == "system")]


def _last_unread(turns: Sequence[StoredTurn]) -> int:
    """Returns the sequence of the last turn that was not read. A result of a tool without its call
    counts as such.

    turns: newest first
    """
    first = next((one.turn for one in reversed(turns) if one.turn.role != "tool"), turns[0].turn)
    return first.sequence - 1


def _tokens(turns: Sequence[StoredTurn]) -> int:
    return sum(one.turn.tokens + MESSAGE_TOKENS for one in turns)


async def _summary_items(
    context: OperationContext, summaries: Sequence[Entry], epoch: int
) -> list[ContextItem]:
    """Returns the newest summary, that of the previous context, and the one that the session has
    begun with.

    summaries: the newest ones and the first one, newest first
    epoch: that of the previous context
    """
    items = []
    for place, entry in enumerate(summaries):
        if place == 0 or entry.key in (sequence_key(epoch), sequence_key(0)):
            opened = await context.service.cipher.open(context.transaction, entry)
            summary = item_of(opened, "summary", moment=context.now, reason="summary")
            # The session that it was carried over from may change without making it stale.
            items.append(replace(summary, sources=()))
    return items


async def _previous(
    context: OperationContext, loaded: LoadedSession, shape: str, newest: Sequence[Entry]
) -> Slices | None:
    """Returns what the next context keeps of the previous one of the same form, if there is one.

    newest: the newest context of the session, if there is one
    """
    for entry in newest:
        if (slices := await _slices(context, entry, shape)) is not None:
            return slices
        others = await context.transaction.entries.of_session(
            loaded.id, CONTEXT.name, loaded.owner, _RECENT_CONTEXTS - 1, before=entry.key,
            newest_first=True,
        )  # fmt: skip
        for other in others:
            if (slices := await _slices(context, other, shape)) is not None:
                return slices
    return None


async def _slices(context: OperationContext, entry: Entry, shape: str) -> Slices | None:
    """Returns what the next context keeps of a context of the same form and agent."""
    if entry.created_by != context.principal.id or is_expired(entry, context.now):
        return None
    value = await read_value(context, entry, StoredContext)
    if value.shape != shape:
        return None
    kept = {name: tuple((one, at) for one, at in pairs) for name, pairs in value.kept.items()}
    return Slices(epoch=value.epoch, first_turn=value.first_turn, kept=kept)
