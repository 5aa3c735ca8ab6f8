"""Recognizes a text that memory has already, such as a recalled memory that comes back.

A text is known if it consists of whole sentences of entries that the caller may read, in any order
and with other marks of lists, quotations and headings. Sentences are compared word by word, so that
a negation, or another number, date or name, makes another sentence.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from memorywall.longterm.statement_cues import REFERRING
from memorywall.longterm.worthiness import LONGEST_READ
from memorywall.recall.document import AuthorDateFields, is_searchable, own_text
from memorywall.recall.filtering import ShardFilter, wanted_in
from memorywall.recall.index import index_of
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.loading import owner_of
from memorywall.recall.query_parser import readable_documents
from memorywall.recall.search import search
from memorywall.recall.sentence_digests import (
    LASTING_TIERS,
    LIST_MARK,
    Sentence,
    SentenceDigests,
    digests_at,
    sentences_of,
    words_of,
)
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.filter import EntryFilter
from memorywall.records.recall import LONGEST_QUERY, Mode, SearchSpec
from memorywall.service.access.targets import load_target
from memorywall.service.entries.writes import with_lifetime
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.summaries.sentences import sentences
from memorywall.summaries.words import content_words

_HITS: Final = 20
_MOST_ALIKE: Final = 200
"""The entries with one sentence among which are those that say the same as a text."""
_LONG: Final = 400
"""The words of a text, in each shard, from which it is looked for in a thread, so that it delays no
request."""
_MOST_WORDS: Final = 500_000
"""The words that are looked at for one text, which take half a second. More only has a text of
hundreds of short sentences beside a stored one without an end."""
_MOST_CHANGES: Final = 500
"""The changes after a comparison among which another write of the same text is looked for."""
_OTHER_VALUE: Final = 0.6
"""The least share of common words of two sentences that say different things of one matter."""


class ComparedText(NamedTuple):
    """What memory said about a text before the transaction that stores it.

    said, items: see `count_known`
    since: the `seq` of the last event of the log before the comparison
    entry_id, version: those of the entry that says the same; None without one
    """

    said: Sentence
    items: Collection[int]
    since: int
    entry_id: str | None = None
    version: int = 0


def count_known(
    said: Sentence, known: Mapping[str, Iterable[Sentence]], items: Collection[int] = ()
) -> int:
    """Returns how many words at the beginning of a text are whole known sentences.

    A sentence that refers to the one before it, such as "It failed", counts only after a sentence
    of the same entry, unless it begins an item of a list.

    known: the sentences by the id of their entry
    items: the places of the words that begin an item of a list
    """
    owners: defaultdict[Sentence, set[str]] = defaultdict(set)
    by_first: defaultdict[str, set[Sentence]] = defaultdict(set)
    for entry_id, stated in known.items():
        for one in stated:
            owners[one].add(entry_id)
            by_first[one[0]].add(one)
    place, last = 0, set[str]()
    while place < len(said):
        here = sorted(by_first[said[place]], key=len, reverse=True)
        found = next((one for one in here if said[place : place + len(one)] == one), None)
        is_free = not place or place in items or found is None or not _refers(found)
        if found is None or not (is_free or owners[found] & last):
            break
        place, last = place + len(found), owners[found]
    return place


def _refers(one: Sentence) -> bool:
    return REFERRING.search(" ".join(one))


def read_text(text: str) -> tuple[Sentence, Collection[int]]:
    """The words of a text, and the places of those that begin an item of a list."""
    said, items = list[str](), set[int]()
    for line in text.split("\n"):
        if LIST_MARK.match(line):
            items.add(len(said))
        for one in sentences(line):
            said += words_of(one)
    return tuple(said), items


async def compare_text(
    transactions: OperationTransactions,
    text: str,
    subjects: Sequence[str],
    since: int,
    *,
    is_person: bool,
) -> ComparedText | None:
    """Compares a text with memory: names the readable entry that says most of a text all of which
    memory has, and none for a text that says anything new. Returns None for a text that is too
    long, or without words.

    subjects: the people that the text is about; only what is about the same people counts
    since: the `seq` of the last event of the log
    is_person: whether a person says it, who may say something again after saying another thing
    """
    if len(text) > LONGEST_READ:
        return None
    said, items = read_text(text)
    if not said:
        return None
    compared = ComparedText(said, items, since)
    ids = await _find_stating(transactions, said, set(subjects))
    if not ids:
        return compared
    index = index_of(transactions)
    entries = await transactions.read(_load_readable, ids)
    if is_person:
        # What says something else of the same matter has other sentences.
        entries += await _search_near(transactions, text)
    found = {one.id: one for one in entries if set(one.subjects) == set(subjects)}
    known = await index.read_texts(
        found.values(),
        lambda: {one.id: sentences_of(own_text(one, index.fields)) for one in found.values()},
    )
    if count_known(said, known, items) < len(said):
        return compared
    best = _best(said, known, found)
    if is_person and _has_newer_value(said, best, known, found):
        return compared
    return compared._replace(entry_id=best.id, version=best.version)


async def _find_stating(
    transactions: OperationTransactions, said: Sentence, people: set[str]
) -> list[str]:
    """Returns the ids of readable entries, about the same people, whose sentences make up a text;
    none if anything in it is new. An entry with more of the text comes first."""
    index, now = index_of(transactions), transactions.service.now()
    tenant = transactions.principal.tenant
    spec = SearchSpec(
        query="", wanted=EntryFilter(tenant=tenant, tiers=LASTING_TIERS), valid_at=now
    )
    tenant_index = index.tenant_index(tenant)
    async with tenant_index.lock.changing():
        ((parts, shards),) = await index.refresh(transactions, [spec.wanted], now)
        unmerged = [one.sentences for one in shards if not one.sentences.is_merged]
        work = partial(_divide, said, _Stating(spec, parts, shards, people), unmerged)
        is_long = bool(unmerged) or len(said) * len(shards) > _LONG
        divided = await index.in_thread(work) if is_long else work()
    weights = Counter[str]()
    for length, some in divided:
        weights.update(dict.fromkeys(some, length))
    order = sorted(weights, key=lambda one: (-weights[one], one))
    # Of each sentence at least the entry that has most of the text.
    chosen = (next(one for one in order if one in some) for _, some in divided)
    return list(dict.fromkeys((*order[:_HITS], *chosen)))


class _Stating:
    """The entries that a caller may read, and that are about these people, by their sentences.

    spec: what the entries are
    parts, shards: see `Readable`
    """

    def __init__(
        self,
        spec: SearchSpec,
        parts: Sequence[ShardFilter],
        shards: Sequence[IndexShard],
        people: set[str],
    ) -> None:
        self.lengths = set[int]().union(*(one.sentences.lengths for one in shards))
        self._spec = spec
        self._parts = parts
        self._shards = shards
        self._people = people
        self._wanted: dict[str, bytearray] = {}

    def find(self, digest: int) -> set[str]:
        """The ids of entries with a sentence of this digest."""
        found = set[str]()
        for shard in self._shards:
            there = shard.sentences.at(digest)
            if there:
                wanted = self._wanted_in(shard)
                some = islice((one for one in there if wanted[one]), _MOST_ALIKE)
                documents = filter(None, map(shard.documents.__getitem__, some))
                found |= {one.entry_id for one in documents if set(one.subjects) == self._people}
        return found

    def _wanted_in(self, shard: IndexShard) -> bytearray:
        """1 for each document of a shard that counts."""
        if shard.owner not in self._wanted:
            wanted = wanted_in(shard, self._spec, readable_documents(shard, self._parts))
            self._wanted[shard.owner] = shard.alive if wanted is None else wanted
        return self._wanted[shard.owner]


def _divide(
    said: Sentence, stating: _Stating, unmerged: Iterable[SentenceDigests]
) -> list[tuple[int, set[str]]]:
    """Divides a text into known sentences, the longest first: of each its number of words, and the
    entries that have it. Returns none if the text has anything else."""
    for one in unmerged:
        one.merge()
    divided, place, words = list[tuple[int, set[str]]](), 0, 0
    while place < len(said):
        words += min(max(stating.lengths, default=0), len(said) - place)
        digests = digests_at(said, place, stating.lengths) if words <= _MOST_WORDS else []
        known = ((length, stating.find(digest)) for length, digest in reversed(digests))
        longest = next((one for one in known if one[1]), None)
        if longest is None:
            return []
        divided.append(longest)
        place += longest[0]
    return divided


async def _load_readable(context: OperationContext, ids: Sequence[str]) -> list[Entry]:
    context.decide_by_row()
    return [
        one
        for one in await context.transaction.entries.get_many(ids, context.now)
        if one.state == "live"
        and one.listed
        and is_searchable(one)
        and context.allows(Verb.READ, await load_target(context, Verb.READ, one))
    ]


async def _search_near(transactions: OperationTransactions, text: str) -> list[Entry]:
    """The entries that have most of the words of a text."""
    spec = SearchSpec(
        query=text[:LONGEST_QUERY],
        wanted=EntryFilter(tenant=transactions.principal.tenant, tiers=LASTING_TIERS),
        mode=Mode.LEXICAL,
        limit=_HITS,
    )
    page = await search(index_of(transactions), transactions, spec, counted=False)
    return [hit.entry for hit in page.hits]


def _best(
    said: Sentence, known: Mapping[str, Iterable[Sentence]], entries: Mapping[str, Entry]
) -> Entry:
    """The entry that has most of the words, the oldest of several."""
    shares = {
        entry_id: sum(len(one) for one in stated if _is_part(one, said))
        for entry_id, stated in known.items()
    }
    return entries[max(sorted(shares), key=lambda one: shares[one])]


def _is_part(one: Sentence, said: Sentence) -> bool:
    return any(
        said[place : place + len(one)] == one for place, word in enumerate(said) if word == one[0]
    )


def _has_newer_value(
    said: Sentence,
    best: Entry,
    known: Mapping[str, Iterable[Sentence]],
    entries: Mapping[str, Entry],
) -> bool:
    """Whether a newer entry says another thing of the same matter, such as the opposite."""
    own = content_words(" ".join(said))
    for entry_id, stated in known.items():
        if entries[entry_id].updated_at <= best.updated_at or entry_id == best.id:
            continue
        for one in stated:
            other = content_words(" ".join(one))
            if one != said and len(own & other) >= _OTHER_VALUE * len(own | other):
                return True
    return False


async def load_known(
    context: OperationContext, new: Entry, compared: ComparedText | None
) -> Entry | None:
    """The entry that says the same as a new one; None if it was changed since the comparison, and
    if it does not last as long as the new one. What was written since says the same, too."""
    if compared is None:
        return None
    if compared.entry_id is None:
        entries = await load_written_since(context, new, compared.since)
        fields = AuthorDateFields.of(context.service.settings)
        entries = [
            one
            for one in entries
            if set(one.subjects) == set(new.subjects) and _says(own_text(one, fields), compared)
        ]
    else:
        entries = await _load_readable(context, [compared.entry_id])
        entries = [one for one in entries if one.version == compared.version]
    if not entries:
        return None
    expires_at = (await with_lifetime(context, new)).expires_at
    for one in entries:
        if one.expires_at is None or (expires_at is not None and expires_at <= one.expires_at):
            return one
    return None


def _says(text: str, compared: ComparedText) -> bool:
    known = {"": sentences_of(text)}
    return count_known(compared.said, known, compared.items) == len(compared.said)


async def load_written_since(context: OperationContext, new: Entry, since: int) -> list[Entry]:
    """The readable entries in the place of a new one, its tier and its owner or namespace, that
    were written after an event of the log.

    since: the `seq` of the event
    """
    changes, _ = await context.transaction.events.list_of_entries(since, _MOST_CHANGES)
    ids = {
        one.entry_id
        for one in changes
        if not one.ended and one.tier is new.tier and owner_of(one) == new.owner
    }
    found = await _load_readable(context, sorted(ids)) if ids else []
    return [one for one in found if new.owner or one.namespace == new.namespace]
