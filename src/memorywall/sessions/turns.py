"""The turns of a session: adding, reading and removing them.

A turn writes its entry, its event and the counters of the session, and not the entry of the
session. The transactions of a tenant run one after another, so the sequence has no gaps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from memorywall.kinds.sessions import (
    CHECKPOINT,
    SUMMARY,
    TURN,
    Checkpoint,
    Role,
    Summary,
    ToolCall,
    Turn,
    client_turn,
)
from memorywall.records.clock import after, check_duration, check_instant, parse_duration
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry, Origin
from memorywall.records.errors import ResourceConflictError, ValidationError
from memorywall.records.event import EventType
from memorywall.records.session import SessionCounters
from memorywall.redaction.personal_data import find
from memorywall.service.entries.governed_entries import read_value, read_values
from memorywall.service.entries.removal import remove_entry
from memorywall.service.entries.writes import create_new_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_content, check_name
from memorywall.sessions.access import check_open, load_session
from memorywall.sessions.checkpoints import make_due_checkpoint
from memorywall.sessions.checks import check_metadata
from memorywall.sessions.collaborators import count_tokens
from memorywall.sessions.large_parts import digest_of, move_large_parts, restore_turn
from memorywall.sessions.life import change, remove_members
from memorywall.sessions.personal_data import policy_of, screen
from memorywall.sessions.stored import (
    LoadedSession,
    load_counters,
    make_entry,
    sequence_key,
    store_counters,
)
from memorywall.sessions.turn_sources import source_version

MOST_TURNS = 100
"""The most turns of one request."""
_MOST_IN_LOOP = 100
"""The most turns, of the largest size, that are read in the event loop: some 10 milliseconds."""
_AT_ONCE = 500
_MOST_WHOLE = 10
"""The most turns of a page whose large parts are read."""
_SMALL = 8_192
"""The characters of a text that fits into an entry, whatever they are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewTurn:
    """A new turn; see `Turn`.

    place: that of its message in the request, from 0
    valid_for: the time after which the content counts as stale (ISO 8601 duration)
    said_at: an RFC 3339 instant
    """

    place: int = 0
    role: Role
    content: str | list[dict[str, Any]]
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_error: bool = False
    client_id: str | None = None
    source: str | None = None
    trusted: bool = True
    valid_for: str | None = None
    said_at: str | None = None
    metadata: dict[str, str | int | float] = dataclasses.field(default_factory=dict)
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)


class StoredTurn(msgspec.Struct, frozen=True, gc=False):
    """A turn and its entry."""

    entry: Entry
    turn: Turn


@dataclass(frozen=True, slots=True)
class AddedTurns:
    """The result of adding turns.

    turns: the turns in the order of the request; of a repeated one the turn that is stored
    """

    turns: list[StoredTurn]
    counters: SessionCounters


async def add(context: OperationContext, session_id: str, wanted: Sequence[NewTurn]) -> AddedTurns:
    """Adds turns at the end of a session, all or none.

    Raises ValidationError, ValueTooLargeError, ResourceNotFoundError, MemoryAccessError,
    SessionClosedError, SessionQuarantinedError, MemoryCapacityError, and ResourceConflictError for
    a `client_id` with which the caller has added other content.
    """
    for one in wanted:
        check_content(f"turns[{one.place}].content", one.content)
    wanted = [_checked(one, f"turns[{one.place}]") for one in wanted]
    _check_client_ids(wanted)
    loaded = await load_session(context, session_id, Verb.CREATE)
    known = await _find_repeated(context, loaded, wanted)
    counters = await load_counters(context, loaded.id)
    if all(one.client_id in known for one in wanted):
        return AddedTurns([known[one.client_id or ""] for one in wanted], counters)
    check_open(loaded, counters, context.moment)
    turns: list[StoredTurn] = []
    for one in wanted:
        stored = known.get(one.client_id or "")
        if stored is None:
            stored = await _insert(context, loaded, one, counters.last_sequence + 1)
            counters = _count(counters, stored.turn)
            await context.transaction.give_way()
        turns.append(stored)
    counters = replace(counters, last_activity_at=context.now)
    if loaded.value.status == "checkpointed":
        loaded = await change(context, loaded, status="active")
    has_failed = any(one.turn.is_error for one in turns)
    counters = await make_due_checkpoint(context, loaded, counters, has_failed=has_failed)
    await store_counters(context, counters)
    return AddedTurns(turns, counters)


async def list_turns(
    context: OperationContext,
    session_id: str,
    *,
    after: int,
    before: int | None,
    limit: int,
    newest_first: bool,
    whole: bool = False,
) -> list[StoredTurn]:
    """Returns up to `limit` turns between two sequences without both, in order or in reverse
    order. Raises ValidationError, ResourceNotFoundError, MemoryAccessError, WorkNeededError.

    whole: whether parts in attachments stand in their places again, which takes a small `limit`
    """
    if whole and limit > _MOST_WHOLE:
        raise ValidationError(f"`whole` needs a `limit` of at most {_MOST_WHOLE}")
    check_page(context, limit)
    loaded = await load_session(context, session_id, Verb.READ)
    found = await load_turns(
        context, loaded, after=after, before=before, limit=limit, newest_first=newest_first
    )
    if whole:
        return [StoredTurn(one.entry, await restore_turn(context, one.turn)) for one in found]
    return found


def check_page(context: OperationContext, limit: int) -> None:
    """Raises WorkNeededError for pages whose turns may take long to read."""
    if limit > _MOST_IN_LOOP:
        context.require_long_run()


async def load_turns(
    context: OperationContext,
    loaded: LoadedSession,
    *,
    after: int = 0,
    before: int | None = None,
    limit: int,
    newest_first: bool = False,
    is_live: bool = True,
) -> list[StoredTurn]:
    """Returns turns of a loaded session; see `list_turns`.

    is_live: whether turns that are withdrawn or otherwise not live are left out; default: true
    """
    found = list[Entry]()
    bounds = {"after": sequence_key(after)}
    if before is not None:
        bounds["before"] = sequence_key(before)
    while (lacking := limit - len(found)) > 0:
        page = await context.transaction.entries.of_session(
            loaded.id, TURN.name, loaded.owner, lacking, newest_first=newest_first, **bounds
        )
        found += [one for one in page if one.state == "live" or not is_live]
        if len(page) < lacking:
            break
        bounds["before" if newest_first else "after"] = page[-1].key
    return await open_turns(context, found)


async def open_turns(context: OperationContext, entries: Sequence[Entry]) -> list[StoredTurn]:
    """Returns entries of the kind `turn` as turns."""
    return list(map(StoredTurn, entries, await read_values(context, entries, Turn)))


async def remove_from(
    context: OperationContext, session_id: str, first: int = 1, last: int | None = None
) -> tuple[LoadedSession, SessionCounters]:
    """Removes the turns from a sequence on, with the checkpoints and summaries that cover them; the
    next turn gets the sequence of the first removed one.

    first: the sequence; default: 1, all turns
    last: the sequence that the last turn must have; default: None, any
    Raises ResourceNotFoundError, MemoryAccessError, SessionClosedError, SessionQuarantinedError,
    and ResourceConflictError if the last turn is another one.
    """
    loaded = await load_session(context, session_id, Verb.DELETE)
    counters = await load_counters(context, loaded.id)
    check_open(loaded, counters, context.moment)
    if last is not None and last != counters.last_sequence:
        raise ResourceConflictError("the session has another last turn now; list the last turns")
    kept = min(first - 1, counters.last_sequence)
    removed = await remove_members(context, loaded, TURN.name, sequence_key(kept))
    if not removed:
        return loaded, counters
    tokens = [turn.tokens for turn in await read_values(context, removed, Turn)]
    summarized = await _remove_covering(context, loaded, SUMMARY.name, kept)
    checkpointed = await _remove_covering(context, loaded, CHECKPOINT.name, kept)
    usage = counters.token_usage - sum(tokens)
    counters = replace(
        counters,
        last_sequence=kept,
        turn_count=counters.turn_count - len(removed),
        token_usage=usage,
        summarized_through=summarized,
        summarized_tokens=min(counters.summarized_tokens, usage) if summarized else 0,
        checkpointed_through=checkpointed,
    )
    await store_counters(context, counters)
    return loaded, counters


async def _remove_covering(
    context: OperationContext, loaded: LoadedSession, kind: str, last: int
) -> int:
    """Removes the summaries or checkpoints that cover turns after `last`; returns the last turn
    that the newest of the others covers, 0 without one."""
    entries = await context.transaction.entries.of_session(
        loaded.id, kind, loaded.owner, _AT_ONCE, newest_first=True
    )
    for entry in entries:
        if kind == SUMMARY.name:
            covered = (await read_value(context, entry, Summary)).last
        else:
            covered = (await read_value(context, entry, Checkpoint)).turn_count
        if covered <= last:
            return covered
        await remove_entry(context, EventType.DELETED, entry)
    return 0


async def _find_repeated(
    context: OperationContext, loaded: LoadedSession, wanted: Sequence[NewTurn]
) -> dict[str | None, StoredTurn]:
    """Returns the caller's stored turns that the client ids name, by client id. Raises
    ResourceConflictError if the content of one differs from what is repeated."""
    author, names = context.principal.id, [one.client_id for one in wanted]
    edges = [client_turn(loaded.id, author, name) for name in names if name is not None]
    if not edges:
        return {}
    ids = await context.transaction.edges.sources(
        edges[0].relation, [one.target for one in edges], len(edges)
    )
    entries = await context.transaction.entries.get_many(ids, context.now) if ids else ()
    found = {one.turn.client_id: one for one in await open_turns(context, entries)}
    for at, one in enumerate(wanted):
        stored = found.get(one.client_id or "")
        if stored is not None and not _is_same(context, stored.turn, one):
            raise ResourceConflictError(
                f"`turns[{at}].client_id` is that of an earlier turn with other content;"
                " send another `client_id`, or the same content"
            )
    return found


def _is_same(context: OperationContext, stored: Turn, wanted: NewTurn) -> bool:
    """Returns whether a repeated turn has what is stored. The policy of personal data may have
    changed since, and instants and what the server derives do not count."""
    repeated = _turn_of(context, wanted, stored.session_id, stored.sequence)
    own = replace(
        stored,
        valid_until=repeated.valid_until,
        said_at=repeated.said_at,
        tokens=0,
        personal_data=(),
        source_version=None,
    )
    alike = [repeated, replace(screen("mask", repeated), personal_data=())]
    if stored.moved:
        # Only a digest of the content is at hand.
        alike = [replace(one, content="", digest=digest_of(one.content)) for one in alike]
        own = replace(own, content="", moved=(), searched="")
    return own in alike


async def _insert(
    context: OperationContext, loaded: LoadedSession, wanted: NewTurn, sequence: int
) -> StoredTurn:
    """Stores a turn of a request."""
    policy = policy_of(context, loaded.value)
    if policy == "mask" and wanted.client_id is not None and find(wanted.client_id):
        raise ValidationError(
            f"`turns[{wanted.place}].client_id` must not contain personal data in this session"
        )
    given = _turn_of(context, wanted, loaded.id, sequence)
    version = await source_version(context, wanted.source)

    def complete() -> Turn:
        turn = screen(policy, given)
        return replace(turn, tokens=count_tokens(turn), source_version=version)

    turn = await context.transaction.compute(len(msgspec.json.encode(given)), complete)
    return await insert_turn(context, loaded, turn, f"turns[{wanted.place}].content")


def _turn_of(context: OperationContext, wanted: NewTurn, session_id: str, sequence: int) -> Turn:
    valid_for = wanted.valid_for
    return Turn(
        session_id=session_id,
        sequence=sequence,
        role=wanted.role,
        content=wanted.content,
        author=context.principal.id,
        name=wanted.name,
        tool_calls=wanted.tool_calls,
        tool_call_id=wanted.tool_call_id,
        is_error=wanted.is_error,
        client_id=wanted.client_id,
        source=wanted.source,
        trusted=wanted.trusted,
        valid_until=None if valid_for is None else after(context.moment, parse_duration(valid_for)),
        said_at=wanted.said_at,
        metadata=wanted.metadata,
        extra=wanted.extra,
    )


async def insert_turn(
    context: OperationContext, loaded: LoadedSession, turn: Turn, field: str = "content"
) -> StoredTurn:
    """Stores a turn of a session, its large parts in attachments.

    field: the name of its content in messages
    Raises ValueTooLargeError, MemoryCapacityError, ResourceConflictError.
    """
    entry_id = context.service.ids.next("mem")
    if not isinstance(turn.content, str) or len(turn.content) > _SMALL:
        turn = await move_large_parts(context, entry_id, loaded.owner, turn, field)
    entry = make_entry(
        context,
        loaded,
        TURN,
        sequence_key(turn.sequence),
        turn,
        entry_id=entry_id,
        origin=_origin(turn),
        source=turn.source,
        field=field,
    )
    # The session has a policy of its own, which the turn has passed.
    return StoredTurn(await create_new_entry(context, entry, policy="keep"), turn)


def _count(counters: SessionCounters, turn: Turn) -> SessionCounters:
    return replace(
        counters,
        last_sequence=turn.sequence,
        turn_count=counters.turn_count + 1,
        token_usage=counters.token_usage + turn.tokens,
    )


def _origin(turn: Turn) -> Origin | None:
    """Returns the origin of the content if it is less trusted than the writer."""
    if not turn.trusted:
        return "document"
    return "tool" if turn.role == "tool" else None


def _checked(wanted: NewTurn, place: str) -> NewTurn:
    """Returns a turn with its names in NFC. Raises ValidationError for fields that are invalid
    without stored data.

    place: the name of the turn in messages
    """
    named: dict[str, Any] = {
        field: check_name(f"{place}.{field}", text)
        for field in ("client_id", "name", "tool_call_id")
        if (text := getattr(wanted, field)) is not None
    }
    # The id of a tool call is that in the calls of an earlier turn.
    named.pop("tool_call_id", None)
    if wanted.tool_calls and wanted.role != "assistant":
        raise ValidationError(f"`{place}.tool_calls` belong to a turn of the role `assistant`")
    if wanted.tool_call_id is not None and wanted.role != "tool":
        raise ValidationError(f"`{place}.tool_call_id` belongs to a turn of the role `tool`")
    if wanted.is_error and wanted.role != "tool":
        raise ValidationError(f"`{place}.is_error` belongs to a turn of the role `tool`")
    if wanted.valid_for is not None:
        check_duration(f"{place}.valid_for", wanted.valid_for)
    if wanted.said_at is not None:
        named["said_at"] = check_instant(f"{place}.said_at", wanted.said_at)
    check_metadata(f"{place}.metadata", wanted.metadata)
    for name in wanted.extra:
        check_name(f"{place}: the name of a field", name)
    return dataclasses.replace(wanted, **named)


def _check_client_ids(wanted: Sequence[NewTurn]) -> None:
    """Raises ValidationError if two turns of a request have the same `client_id`."""
    places: dict[str, int] = {}
    for at, one in enumerate(wanted):
        if one.client_id is not None and places.setdefault(one.client_id, at) != at:
            raise ValidationError(
                f"`turns[{at}].client_id` is also that of `turns[{places[one.client_id]}]`;"
                " give each turn its own"
            )
