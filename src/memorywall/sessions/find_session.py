"""Finds the session that a new text continues."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from memorywall.kinds.content_parts import spoken_text
from memorywall.kinds.session_end import OPEN, find_end_reason
from memorywall.kinds.sessions import SESSION, Session, SessionStatus
from memorywall.recall.analyzer import STOPWORDS, Analyzer
from memorywall.recall.index import index_of
from memorywall.records.decision import Verb
from memorywall.records.errors import UnavailableError
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.service.access.visibility import load_visibility
from memorywall.service.entries.governed_entries import read_value
from memorywall.service.requests.namespace_names import stored_filter
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.sessions.follow_ups import announces_follow_up, has_no_matter, only_open
from memorywall.sessions.known_words import find_known_terms
from memorywall.sessions.matching import (
    Choice,
    SharedWords,
    choose_by_meaning,
    choose_by_words,
    find_shared_words,
)
from memorywall.sessions.meanings import (
    Comparison,
    Meaning,
    measure_meaning,
    prepare_comparison,
)
from memorywall.sessions.stored import LoadedSession, load_counters
from memorywall.sessions.turns import load_turns

MOST_CANDIDATES = 30
"""The most sessions of a person that are compared, the newest ones."""
_STATUSES = (*OPEN, "closed")
_FIRST, _LAST = 6, 24
"""The number of turns at the beginning and at the end of a session whose words are compared."""
_EMBEDDED_SESSIONS, _EMBEDDED_TURNS = 8, 6
_MOST_ANALYZED_AT_ONCE = 50_000
"""The characters of texts that are analyzed on the event loop; more are in a thread."""


@dataclass(frozen=True, slots=True)
class ComparedSession:
    """A session, and the texts of the person in it, oldest first."""

    session_id: str
    status: SessionStatus
    texts: list[str]


@dataclass(frozen=True, slots=True)
class SessionMatch:
    """The comparison of a text with the sessions of a person.

    method: see `MatchResponse`
    """

    candidates: list[ComparedSession]
    choice: Choice
    method: str


async def find_session(
    transactions: OperationTransactions, text: str, subject: str | None
) -> SessionMatch:
    """Compares a text with the newest sessions of a person.

    subject: the person; None for sessions that are about nobody
    """
    candidates = await transactions.read_long(_load_candidates, subject)
    is_open = [one.status in OPEN for one in candidates]
    if has_no_matter(text, STOPWORDS):
        unknown = Choice(only_open(is_open), [0.0 for _ in candidates], 0.0)
        return SessionMatch(candidates, unknown, "follow_up")
    texts = ["\n".join(one.texts) for one in candidates]
    score = partial(_shared_words, text, texts)
    size = len(text) + sum(map(len, texts))
    in_thread = size > _MOST_ANALYZED_AT_ONCE
    words = await transactions.service.store.compute(score) if in_thread else score()
    choice, method = choose_by_words(words), "words"
    meanings = await _meanings(transactions, text, candidates, words)
    if meanings is not None:
        choice, method = choose_by_meaning(words, meanings), "embedding"
    elif choice.index is None and announces_follow_up(text):
        place = only_open(is_open, choice.scores)
        if place is not None:
            choice, method = replace(choice, index=place), "follow_up"
    return SessionMatch(candidates, choice, method)


def _shared_words(text: str, candidates: list[str]) -> list[SharedWords]:
    known = find_known_terms(text, _terms_of)
    return find_shared_words(_terms_of(text), known, [_terms_of(one) for one in candidates])


def _terms_of(text: str) -> Collection[str]:
    return _analyzer().of(text)[0]


async def _load_candidates(context: OperationContext, subject: str | None) -> list[ComparedSession]:
    wanted = EntryFilter(
        tenant=context.tenant,
        tiers=(Tier.SESSION,),
        agent_id=context.principal.id,
        kind=SESSION.name,
        statuses=_STATUSES,
        about=() if subject is None else (subject,),
        limit=MOST_CANDIDATES,
        counted=False,
    )
    wanted = await stored_filter(context, wanted)
    visible = await load_visibility(context, Verb.READ, wanted)
    found: list[ComparedSession] = []
    page, _ = await context.transaction.entries.search(wanted, visible, context.now)
    for entry in page:
        loaded = LoadedSession(entry, await read_value(context, entry, Session))
        if subject is None and loaded.value.subject is not None:
            continue
        counters = await load_counters(context, entry.id)
        reason = find_end_reason(loaded.value, counters.last_activity_at, context.now)
        status: SessionStatus = "closed" if reason else loaded.value.status
        found.append(ComparedSession(entry.id, status, await _texts(context, loaded)))
    return [one for one in found if one.texts]


async def _texts(context: OperationContext, loaded: LoadedSession) -> list[str]:
    first = await load_turns(context, loaded, limit=_FIRST)
    last = await load_turns(context, loaded, limit=_LAST, newest_first=True)
    turns = {one.turn.sequence: one.turn for one in (*first, *reversed(last))}
    spoken = [spoken_text(one.content) for one in turns.values() if one.role == "user"]
    title = loaded.value.title
    return [title, *spoken] if title else spoken


async def _meanings(
    transactions: OperationTransactions,
    text: str,
    candidates: list[ComparedSession],
    words: list[SharedWords],
) -> list[Meaning | None] | None:
    """Returns how alike the text and each candidate are; None without an embedder, or while it is
    not available. Only the best candidates by words and the newest ones are compared."""
    index = index_of(transactions)
    if index.embedder is None or not candidates:
        return None
    by_words = sorted(range(len(words)), key=lambda at: -(words[at].known + words[at].bare))
    chosen = sorted({*by_words[: _EMBEDDED_SESSIONS // 2], *range(_EMBEDDED_SESSIONS // 2)})
    places = [one for one in chosen if one < len(candidates)]
    spoken = [_shortened(candidates[one].texts) for one in places]
    prepare = partial(_compare, text, spoken)
    compared = await transactions.service.store.compute(prepare)
    texts = list(dict.fromkeys(part for one in compared for part in one.texts))
    try:
        rows = dict(zip(texts, await index.embed(texts), strict=True))
    except (UnavailableError, TimeoutError):
        return None
    found: list[Meaning | None] = [None for _ in candidates]
    for place, one in zip(places, compared, strict=True):
        found[place] = measure_meaning(one, rows)
    return found


def _shortened(texts: list[str]) -> list[str]:
    half = _EMBEDDED_TURNS // 2
    return [*texts[:half], *texts[-half:]] if len(texts) > _EMBEDDED_TURNS else texts


def _compare(text: str, sessions: Sequence[Sequence[str]]) -> list[Comparison]:
    return [prepare_comparison(text, one, _terms_of) for one in sessions]


@cache
def _analyzer() -> Analyzer:
    return Analyzer()
