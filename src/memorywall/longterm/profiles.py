"""The profile of a person: what memory says about the person now, computed when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from memorywall.kinds.contexts import CORE
from memorywall.kinds.episodes import cut_text
from memorywall.kinds.facts import FACT
from memorywall.longterm.entry_lines import text_of
from memorywall.recall.document import trust_of
from memorywall.recall.lessons import lesson_of
from memorywall.records.clock import format_instant
from memorywall.records.entry import Entry, Source
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.records.validity import validity_of
from memorywall.service.access.subjects import check_subject
from memorywall.service.entries.matches import find_matches
from memorywall.service.requests.operation_context import OperationContext
from memorywall.tokens.estimate import estimate
from memorywall.wire.episodes import ProfileLine, ProfileResponse

_READ = 200
"""The most entries that are read of the newest, and of those that have not changed for longest."""
_LARGE = 500_000
"""The bytes of values from which reading them holds the event loop too long."""
_KINDS = frozenset({None, FACT.name, CORE.name})
"""The kinds of entries that state facts; None for free JSON."""
_TIERS: Final = (Tier.SEMANTIC, Tier.EPISODIC)
_RECENT_SHARE = 0.4
"""The share of the tokens that recent facts take before the stable ones."""
_RECENT_MILLISECONDS = 30 * 24 * 3600 * 1000
"""The age from which what has not changed is stable."""
_LONGEST_TEXT = 240
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _Fact(NamedTuple):
    """A fact about a person.

    line: its text with its source, as the profile shows it
    trust: 0 to 1
    """

    entry: Entry
    text: str
    line: str
    tokens: int
    trust: float
    section: Literal["stable", "recent"]


async def make_profile(context: OperationContext, subject: str, most: int) -> ProfileResponse:
    """Returns the profile of a person from the memory that the caller may read; an empty one if
    there is none. Some recent facts have room for certain, the newest first; then the stable ones,
    the most trusted first, and what is left goes to further recent ones.

    most: tokens
    Raises ValidationError for an id that no person has.
    """
    subject = check_subject("subject", subject, is_new=False)
    entries = await _load(context, subject)
    if sum(entry.size for entry in entries) > _LARGE:
        context.require_long_run()
    since = format_instant(context.moment - _RECENT_MILLISECONDS)
    read = await context.build(lambda entry: _fact(entry, context.now, since), entries)
    found = sorted(filter(None, read), key=lambda one: (one.trust, one.entry.updated_at))
    # Of facts with the same words, the most trusted one is shown.
    facts = sorted({one.text: one for one in found}.values(), key=_newest, reverse=True)
    recent = [one for one in facts if one.section == "recent"]
    stable = [one for one in facts if one.section == "stable"]
    stable.sort(key=lambda one: one.trust, reverse=True)
    chosen = list(_within(recent, int(most * _RECENT_SHARE)))
    chosen += _within(stable, most - _tokens(chosen))
    chosen += _within([one for one in recent if one not in chosen], most - _tokens(chosen))
    chosen.sort(key=lambda one: one.section == "recent")
    return ProfileResponse(
        subject=subject,
        text="\n".join(one.line for one in chosen),
        tokens=_tokens(chosen),
        lines=[
            ProfileLine(
                text=one.text,
                section=one.section,
                source=Source(id=one.entry.id, version=one.entry.version),
            )
            for one in chosen
        ],
        left_out=len(facts) - len(chosen),
    )


async def _load(context: OperationContext, subject: str) -> list[Entry]:
    """Returns the readable entries about a person of which a profile may consist."""
    wanted = EntryFilter(
        tenant=context.tenant,
        tiers=_TIERS,
        about=(subject,),
        limit=_READ,
        counted=False,
        order="updated",
    )
    oldest = msgspec.structs.replace(wanted, ascending=True)
    pages = [(await find_matches(context, one)).entries for one in (wanted, oldest)]
    found = {entry.id: entry for page in pages for entry in page if entry.kind in _KINDS}
    return list(found.values())


def _fact(entry: Entry, now: str, since: str) -> _Fact | None:
    """Returns the fact that an entry states; None for a lesson, for what does not hold at `now`,
    and for an entry without text.

    since: the instant after which a change is recent
    """
    value = _decode(entry.value)
    if not validity_of(value).holds_at(now) or lesson_of(entry) is not None:
        return None
    text = text_of(entry)
    if not text.strip():
        return None
    if entry.kind is None and entry.key != entry.id:
        # The key of a preference may be all that says what it is about.
        text = f"{entry.key}: {text}"
    text = cut_text(text, _LONGEST_TEXT)
    line = f"- {text} [{entry.id}]"
    return _Fact(
        entry=entry,
        text=text,
        line=line,
        tokens=estimate(line + "\n"),
        trust=trust_of(entry, value),
        section="recent" if entry.updated_at > since else "stable",
    )


def _newest(fact: _Fact) -> tuple[str, str]:
    return fact.entry.updated_at, fact.entry.id


def _tokens(facts: Sequence[_Fact]) -> int:
    return sum(one.tokens for one in facts)


def _within(facts: Sequence[_Fact], most: int) -> Iterator[_Fact]:
    """Yields the facts that have room together, in their order."""
    for one in facts:
        if one.tokens <= most:
            most -= one.tokens
            yield one
