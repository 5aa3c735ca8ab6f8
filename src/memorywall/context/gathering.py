"""Gathers what a context may contain, under the visibility of the caller."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from memorywall.context.changed_sources import mark_changed
from memorywall.context.contradictions import mark_contradicted
from memorywall.context.item import ContextItem, SegmentName, Slices
from memorywall.context.session_part import gather_session
from memorywall.context.sources import DEMOTED, claim_item, item_of, state_item
from memorywall.context.working_items import WorkingMemory
from memorywall.coordination import claims
from memorywall.kinds.contexts import CORE, CoreBlock
from memorywall.kinds.episodes import EPISODE
from memorywall.kinds.facts import FACT
from memorywall.kinds.lessons import Correction, Lesson, NegativeRetrieval
from memorywall.kinds.sessions import TURN
from memorywall.kinds.working_memory import SCRATCH
from memorywall.recall.analyzer import words_of
from memorywall.recall.index import Index, index_of
from memorywall.recall.lessons import find_acting_lesson, lesson_of
from memorywall.recall.relevance import judge
from memorywall.recall.search import RankedSearch, ranking, show
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryAccessError, ResourceNotFoundError
from memorywall.records.filter import EntryFilter
from memorywall.records.recall import LONGEST_QUERY, MOST_HITS, Hit, SearchSpec
from memorywall.records.tier import Tier
from memorywall.records.validity import ANY_TIME, validity_in
from memorywall.service.access.targets import load_target
from memorywall.service.access.visibility import load_visibility
from memorywall.service.requests.namespace_names import USER_PREFIX
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.sessions.access import load_session
from memorywall.sessions.stored import LoadedSession
from memorywall.wire.contexts import ContextRequest
from memorywall.wire.leases import scope_namespace
from memorywall.working_memory.loaded_memory import load_working_memory

RECALLED_TURNS = 24
"""The most turns of the session that the query recalls."""
_SEGMENTS: dict[Tier, SegmentName] = {
    Tier.SEMANTIC: "semantic", Tier.EPISODIC: "episodic", Tier.PROCEDURAL: "procedural",
}  # fmt: skip
_KEPT: dict[str, SegmentName] = {"semantic": "semantic", "episodic": "episodic"}
"""The slices that are kept, and their segments."""
_TOLD_KINDS = frozenset({EPISODE.name, FACT.name})
"""The kinds of memories that the reason names."""
_LONG_QUERY = 50
"""The words of a query from which judging its results takes long."""
_CORE_BLOCKS = 64
"""The most blocks of core memory that are read, also those of which there are newer ones."""
_DEMOTED, _PROMOTED = 0.25, 2.0
"""Factors of the score of a memory that a lesson rejects or names as the right one."""


@dataclass(slots=True)
class Gathered:
    """The candidates for the content of a context.
    subjects: the stored forms of the people of the session, or of those that the request is bound
        to; None without any
    turns_omitted: the oldest turns that were not read, because they cannot fit
    unread: the sequence of the last turn that was not read; 0 for none
    """

    items: list[ContextItem] = field(default_factory=list)
    subjects: frozenset[str] | None = None
    previous: Slices | None = None
    turns_omitted: int = 0
    unread: int = 0
    lessons: list[str] = field(default_factory=list)
    query: str = ""
    session: LoadedSession | None = None
    working: WorkingMemory | None = None


async def gather(
    transactions: OperationTransactions, body: ContextRequest, room: int, shape: str
) -> Gathered:
    """Returns what the context of a request may contain.

    room: the tokens for everything
    shape: see `StoredContext`
    Raises ResourceNotFoundError, MemoryAccessError, SessionClosedError, SessionQuarantinedError.
    """
    found = await transactions.read(_stored, body, room, shape)
    if not _is_searched(body, found):
        return found
    specs = [_search_of_memories(transactions, body, found)]
    if found.session is not None and body.strategy in {"hierarchical", "importance"}:
        specs.append(_search_of_turns(transactions, found.session, found))
    index = index_of(transactions)
    async with ranking(index, transactions, specs) as ranked:
        return await transactions.read(_complete, body, found, index, ranked)


async def _stored(
    context: OperationContext, body: ContextRequest, room: int, shape: str
) -> Gathered:
    """Gathers what one snapshot shows without a search; everything if nothing is searched."""
    context.decide_by_row()
    found = Gathered()
    if (forms := context.principal.subject_forms) is not None:
        found.subjects = frozenset(forms)
    if body.session_id is not None:
        found.session = await load_session(context, body.session_id, Verb.READ)
        if found.session.value.subject is not None:
            people = {*found.session.entry.subjects, found.session.value.subject}
            found.subjects = frozenset(people)
        part = await gather_session(
            context,
            found.session,
            room,
            shape,
            is_asked=body.user is not None,
            is_whole=body.parts == "whole",
        )
        found.items += part.items
        found.previous = part.previous
        found.turns_omitted = part.turns_omitted
        found.unread = part.unread
    pages = await _find(context, _lists(context, body))
    for entry in sorted(pages["core"], key=lambda one: one.updated_at, reverse=True):
        item = item_of(entry, "core", moment=context.now, reason="core")
        label = msgspec.json.decode(entry.value, type=CoreBlock).label
        found.items.append(replace(item, name=label))
    if body.shared is not None:
        scope = scope_namespace(body.shared, context.principal.id)
        for claim in await claims.list_claims(context, scope, None):
            found.items.append(claim_item(claim, body.shared))
    _add_state(found, pages.get("scope", ()), context.now)
    _add_state(found, pages.get("task", ()), context.now)
    if body.task_id is not None:
        found.working = await _load_working(context, body.task_id)
    _add_working(found, pages.get("working of task", ()), context.now)
    _add_working(found, pages.get("working of session", ()), context.now)
    found.query = _query(body, found)
    return found if _is_searched(body, found) else await _complete(context, body, found)


def _is_searched(body: ContextRequest, found: Gathered) -> bool:
    return bool(body.memories and words_of(found.query))


def _lists(context: OperationContext, body: ContextRequest) -> dict[str, EntryFilter]:
    """Returns the filters of the entries that a context may contain without a search, by name:
    core memory, the shared state of the scope and of the task, and working entries."""
    own = EntryFilter(tenant=context.tenant, agent_id=context.principal.id, counted=False)
    working = replace(own, tiers=(Tier.WORKING,), limit=50)
    shared = EntryFilter(tenant=context.tenant, tiers=(Tier.SHARED,), limit=30, counted=False)
    lists = {"core": replace(own, kind=CORE.name, limit=_CORE_BLOCKS)}
    if body.shared is not None:
        scope = scope_namespace(body.shared, context.principal.id)
        lists["scope"] = replace(shared, namespace=scope)
    if body.task_id is not None:
        lists["task"] = replace(shared, task_id=body.task_id)
        lists["working of task"] = replace(working, task_id=body.task_id)
    if body.session_id is not None:
        lists["working of session"] = replace(working, session_id=body.session_id)
    return lists


async def _find(
    context: OperationContext, lists: Mapping[str, EntryFilter]
) -> dict[str, list[Entry]]:
    """Returns the readable and valid entries of each list with their values in clear text, newest
    first."""
    searches = [
        (wanted, await load_visibility(context, Verb.READ, wanted)) for wanted in lists.values()
    ]
    pages = await context.transaction.entries.search_each(searches, context.now)
    opened = {
        name: [await context.service.cipher.open(context.transaction, one) for one in page]
        for name, page in zip(lists, pages, strict=True)
    }
    return {
        name: [one for one in page if validity_in(one.value).holds_at(context.now)]
        for name, page in opened.items()
    }


async def _load_working(context: OperationContext, task_id: str) -> WorkingMemory | None:
    """Returns the working items of the caller in a task; None without one."""
    try:
        loaded = await load_working_memory(context, task_id, context.principal.id)
    except (ResourceNotFoundError, MemoryAccessError):
        # A task that the server does not know, or that is hidden, is only a name in a scope.
        return None
    items = tuple(one for one in loaded.items if loaded.entries[one.name].state == "live")
    if not items:
        return None
    entries = {
        one.name: await context.service.cipher.open(context.transaction, loaded.entries[one.name])
        for one in items
    }
    return WorkingMemory(task_id=task_id, items=items, state=loaded.state, entries=entries)


def _add_working(found: Gathered, page: Sequence[Entry], moment: str) -> None:
    """Adds working entries, newest first, without the items of working memory."""
    known = {item.id for item in found.items}
    for place, entry in enumerate(page):
        if entry.kind != SCRATCH.name and entry.id not in known:
            item = item_of(entry, "working", moment=moment, reason="working", score=-place)
            found.items.append(item)


def _add_state(found: Gathered, page: Sequence[Entry], moment: str) -> None:
    """Adds shared state."""
    known = {item.id for item in found.items}
    for entry in page:
        if entry.id not in known:
            found.items.append(state_item(entry, moment=moment, score=0.5))


def _query(body: ContextRequest, found: Gathered) -> str:
    if body.query is not None:
        return body.query[:LONGEST_QUERY]
    if isinstance(body.user, str):
        return body.user[:LONGEST_QUERY]
    if body.user is not None:
        texts = (part.get("text") for part in body.user)
        return " ".join(text for text in texts if isinstance(text, str))[:LONGEST_QUERY]
    said = [item for item in found.items if item.segment == "turns" and item.role == "user"]
    return said[-1].text[:LONGEST_QUERY] if said else ""


def _search_of_memories(
    transactions: OperationTransactions, body: ContextRequest, found: Gathered
) -> SearchSpec:
    wanted = EntryFilter(tenant=transactions.principal.tenant, tiers=tuple(_SEGMENTS))
    limit = min(MOST_HITS, body.memories * len(_SEGMENTS))
    return SearchSpec(query=found.query, wanted=wanted, limit=limit, only_answers=True)


def _search_of_turns(
    transactions: OperationTransactions, loaded: LoadedSession, found: Gathered
) -> SearchSpec:
    wanted = EntryFilter(
        tenant=transactions.principal.tenant, tiers=(Tier.SESSION,), kind=TURN.name
    )
    return SearchSpec(
        query=found.query,
        wanted=wanted,
        session_id=loaded.id,
        limit=RECALLED_TURNS,
        # A turn whose content is no longer valid is shown as that.
        valid_at=ANY_TIME,
    )


def _add_memories(
    found: Gathered, hits: Sequence[Hit], index: Index, moment: str, most: int
) -> None:
    """Adds memories of each tier. Lessons about sources change their order and take no tokens;
    those that do are listed. Other lessons are memories. A lesson that does not act is left out."""
    factors: dict[str, tuple[float, str]] = {}
    memories: list[tuple[Hit, str]] = []
    for hit in hits:
        entry = hit.entry
        lesson = lesson_of(entry)
        if entry.kind == CORE.name:
            continue
        if lesson is None:
            reason = f"query, {entry.kind}" if entry.kind in _TOLD_KINDS else "query"
            memories.append((hit, reason))
        elif find_acting_lesson(entry, index.fields, moment) is not None:
            if (sources := _steered(lesson)) is None:
                memories.append((hit, "query, lesson"))
                continue
            rejected, accepted = sources
            factors |= dict.fromkeys((one for one in rejected if one), (_DEMOTED, entry.id))
            factors |= dict.fromkeys((one for one in accepted if one), (_PROMOTED, entry.id))
    acted: set[str] = set()
    counts: dict[SegmentName, int] = {}
    for hit, reason in memories:
        entry = hit.entry
        segment = _SEGMENTS[entry.tier]
        counts[segment] = counts.get(segment, 0) + 1
        if counts[segment] > most:
            continue
        names = (name for name in _names(entry) if name in factors)
        factor, lesson_id = factors.get(next(names, ""), (1.0, ""))
        acted.add(lesson_id)
        reason = {1.0: reason, _DEMOTED: DEMOTED}.get(factor, "query, promoted by a lesson")
        score = hit.score * factor
        found.items.append(item_of(entry, segment, moment=moment, reason=reason, score=score))
    found.lessons = [hit.entry.id for hit in hits if hit.entry.id in acted]


def _names(entry: Entry) -> list[str]:
    """Returns the names by which a lesson can name an entry, the most exact first: its id, its
    namespace and key, also without the person, its key, and its source."""
    places = [entry.namespace]
    if entry.namespace.startswith(USER_PREFIX):
        places.append(entry.namespace.removeprefix(USER_PREFIX).partition("/")[2])
    full = [f"{place}/{entry.key}" for place in places]
    return [entry.id, *full, entry.key, entry.provenance.source or ""]


def _steered(lesson: Lesson) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Returns the sources that a lesson rejects and those that it names as right; None for a lesson
    that names no sources."""
    if isinstance(lesson, NegativeRetrieval):
        return (lesson.rejected_doc,), (lesson.accepted_doc,)
    if isinstance(lesson, Correction) and lesson.correct_source:
        return (), (lesson.correct_source,)
    return None


def _add_recalled(found: Gathered, hits: Sequence[Hit], moment: str) -> None:
    """Gives turns that the query recalls a score, and adds those that were not read."""
    scores = {hit.entry.id: hit.score for hit in hits}
    best = max(scores.values(), default=1.0) or 1.0
    found.items = [
        replace(item, score=scores[item.id] / best) if item.id in scores else item
        for item in found.items
    ]
    known = {item.id for item in found.items}
    older = [
        item_of(hit.entry, "turns", moment=moment, reason="recalled", score=hit.score / best)
        for hit in hits if hit.entry.id not in known
    ]  # fmt: skip
    # A turn of an exchange with a tool needs its whole exchange, which was not read.
    alone = [one for one in older if not one.tool_calls and one.role != "tool"]
    first = next((at for at, one in enumerate(found.items) if one.segment == "turns"), 0)
    found.items[first:first] = sorted(alone, key=lambda one: one.sequence)


async def _complete(
    context: OperationContext,
    body: ContextRequest,
    found: Gathered,
    index: Index | None = None,
    ranked: Sequence[RankedSearch] = (),
) -> Gathered:
    """Adds what the searches found and what the previous context kept, and marks items whose
    sources changed, except those that the caller has judged.

    ranked: the search for memories, and that for turns
    """
    context.decide_by_row()
    # This function may run again, so it does not change what it was given.
    found = dataclasses.replace(found, items=list(found.items), lessons=[])
    kept = _kept(found)
    if index is None:
        known = await _read(context, kept)
    else:
        # A compiled context counts no use; the feedback does.
        shown, known = await show(context, index, ranked, also=kept)
        if len(words_of(found.query)) > _LONG_QUERY:
            # The words of a long query are looked for in each memory.
            context.require_long_run()
        replies = [
            judge(one.spec, one.searched, results, index.terms).kept
            for one, results in zip(ranked, shown, strict=True)
        ]
        memories, *turns = (
            [Hit(entry=one.entry, score=one.ranked.score) for one in reply] for reply in replies
        )
        _add_memories(found, memories, index, context.now, body.memories)
        for hits in turns:
            _add_recalled(found, hits, context.now)
    await _add_kept(context, found, kept, known)
    shared = _shared_namespaces(ranked)
    found.items = await mark_contradicted(context, found.items, known, shared)
    items = [
        replace(item, sources=(), stale_at=None) if body.revalidated.get(item.id) else item
        for item in found.items
    ]
    found.items = await mark_changed(context, items)
    return found


def _shared_namespaces(ranked: Sequence[RankedSearch]) -> Collection[str]:
    """Returns the namespaces of the shared memory that was searched."""
    shards = (part.shard for one in ranked[:1] for part in one.searched)
    return next((shard.namespaces() for shard in shards if not shard.owner), ())


def _kept(found: Gathered) -> dict[str, SegmentName]:
    """Returns the segments of the memories that the previous context kept, by id."""
    if found.previous is None:
        return {}
    known = {item.id for item in found.items}
    return {
        one: segment
        for name, pairs in found.previous.kept.items()
        if (segment := _KEPT.get(name)) is not None
        for one, _ in pairs
        if one not in known
    }


async def _read(context: OperationContext, ids: Collection[str]) -> dict[str, Entry]:
    entries = await context.transaction.entries.get_many(ids, context.now) if ids else ()
    return {entry.id: entry for entry in entries}


async def _add_kept(
    context: OperationContext,
    found: Gathered,
    kept: Mapping[str, SegmentName],
    known: Mapping[str, Entry],
) -> None:
    """Adds the memories that the previous context kept and this query does not find, as long as
    the caller may read them, they are live and valid.

    known: the entries that were read, by id
    """
    there = {item.id for item in found.items}
    for name, segment in kept.items():
        entry = known.get(name)
        if entry is None or entry.state != "live" or name in there:
            continue
        target = await load_target(context, Verb.READ, entry)
        if context.allows(Verb.READ, target):
            opened = await context.service.cipher.open(context.transaction, entry)
            if validity_in(opened.value).holds_at(context.now):
                found.items.append(item_of(opened, segment, moment=context.now, reason="kept"))
