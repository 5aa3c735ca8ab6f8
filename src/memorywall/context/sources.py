"""Entries of the store as items of a context."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from memorywall.context.item import ContextItem, SegmentName
from memorywall.context.rendering import MESSAGE_TOKENS
from memorywall.kinds.sessions import SUMMARY, TURN, Summary, Turn, source_entry, speaker_of
from memorywall.longterm.entry_lines import text_of
from memorywall.records.entry import Entry, origin_of
from memorywall.records.lease import Lease
from memorywall.tokens.estimate import estimate

CURRENT_SOURCE = "current_source"
"""The reason of an item of which other items were derived from an earlier version."""
WHOLE = "session, whole"
"""The reason of a turn that is shown with its large parts, which are in attachments."""
LIVE_CLAIM = "live_claim"
"""The reason of an item that is a live claim on a key of shared state, and no entry."""
DEMOTED = "query, demoted by a lesson"
"""The reason of an item that a lesson rejects. It does not stay where an earlier context had it."""
_CALL_TOKENS, _MARK_TOKENS = 24, 32
_TRUSTED = frozenset({"user", "human", "agent", "system", "service"})


def item_of(
    entry: Entry, segment: SegmentName, *, moment: str, reason: str, score: float = 0.0
) -> ContextItem:
    """Returns an entry, with its value in clear text, as an item.

    moment: the instant at which the item is fresh or stale
    """
    if entry.kind == TURN.name:
        return turn_item(entry, msgspec.json.decode(entry.value, type=Turn), moment, score)
    summary = None
    if entry.kind == SUMMARY.name:
        summary = msgspec.json.decode(entry.value, type=Summary)
    return ContextItem(
        id=entry.id,
        segment=segment,
        content=text_of(entry) if summary is None else summary.text,
        sequence=0 if summary is None else summary.last,
        quality=None if summary is None else summary.quality,
        statements=() if summary is None else summary.statements,
        version=entry.version,
        score=score,
        session_id=entry.scope.session_id,
        subjects=entry.subjects,
        expires_at=entry.expires_at,
        provenance=_provenance(entry),
        reason=reason,
        trusted=origin_of(entry.provenance) in _TRUSTED,
        mandatory=segment == "core",
        sources=tuple((one.id, one.version) for one in entry.provenance.derived_from),
    )


def state_item(
    entry: Entry, *, moment: str, reason: str = "shared", score: float = 0.0
) -> ContextItem:
    """Returns an entry of shared state, with its value in clear text, as an item that names its key
    and version. See `item_of`."""
    item = item_of(entry, "shared", moment=moment, reason=reason, score=score)
    about = f"{entry.key} (version {entry.version}, {entry.updated_at}): {item.text}"
    return replace(item, content=about)


def turn_item(entry: Entry, turn: Turn, moment: str, score: float = 0.0) -> ContextItem:
    """Returns a turn as an item."""
    is_stale = turn.valid_until is not None and turn.valid_until <= moment
    # The estimate is stored with the turn. Marks and calls of tools are estimated generously.
    tokens = turn.tokens + MESSAGE_TOKENS + 1 + _CALL_TOKENS * len(turn.tool_calls)
    if is_stale or not turn.trusted:
        tokens += _MARK_TOKENS
    if speaker := speaker_of(turn):
        tokens += estimate(f"{speaker}: ")
    # What a provider sent besides is counted with the turn, and no context shows it.
    is_text = isinstance(turn.content, str) and not turn.extra and not turn.moved
    return ContextItem(
        tokens=tokens if is_text and turn.tokens else 0,
        id=entry.id,
        segment="turns",
        content=turn.content,
        version=entry.version,
        score=score,
        sequence=turn.sequence,
        role=turn.role,
        name=turn.name,
        tool_calls=tuple(msgspec.to_builtins(call) for call in turn.tool_calls),
        tool_call_id=turn.tool_call_id,
        session_id=turn.session_id,
        subjects=entry.subjects,
        stale_at=turn.valid_until if is_stale else None,
        provenance=turn.source or turn.author,
        reason="session",
        trusted=turn.trusted,
        sources=_sources_of(turn),
    )


def _sources_of(turn: Turn) -> tuple[tuple[str, int], ...]:
    """Returns the entry that the source of a turn names, and its version then."""
    named = source_entry(turn.source)
    return () if named is None or turn.source_version is None else ((named, turn.source_version),)


def claim_item(claim: Lease, scope: str) -> ContextItem:
    """Returns a live claim as an item, so that an agent sees what others are doing."""
    purpose = f" for: {claim.purpose}" if claim.purpose else ""
    return ContextItem(
        id=claim.id,
        segment="shared",
        content=f"{claim.holder} holds `{claim.name}` in {scope} since {claim.acquired_at},"
                f" until {claim.expires_at}{purpose}",
        score=1.0,
        provenance=claim.holder,
        reason=LIVE_CLAIM,
    )  # fmt: skip


def _provenance(entry: Entry) -> str:
    return entry.provenance.source or f"{entry.provenance.principal}, {entry.updated_at}"
