"""Recognizes a text that memory has already, such as a recalled memory that comes back.

A text is known if it consists of whole sentences of entries that the caller may read, in any order
and with other marks of lists, quotations and headings. Sentences are compared word by word, so that
a negation, or another number, date or name, makes another sentence.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import Final, NamedTuple

from memorywall.longterm.statement_cues import REFERRING
from memorywall.longterm.worthiness import LONGEST_READ
from memorywall.recall.document import own_text
from memorywall.recall.index import index_of
from memorywall.recall.search import search
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.filter import EntryFilter
from memorywall.records.recall import LONGEST_QUERY, Mode, SearchSpec
from memorywall.records.tier import Tier
from memorywall.records.words import normalize_text
from memorywall.service.access.targets import load_target
from memorywall.service.entries.writes import with_lifetime
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.summaries.sentences import sentences
from memorywall.summaries.words import content_words

_TIERS: Final = (Tier.EPISODIC, Tier.SEMANTIC, Tier.PROCEDURAL)
"""The tiers of long-term memory. What was said in a session is not kept by it."""
_HITS: Final = 20
_MOST_SEARCHES: Final = 16
_OTHER_VALUE: Final = 0.6
"""The least share of common words of two sentences that say different things of one matter."""
_LIST_MARK = re.compile(r"^\s*(?:(?:[-*•>#–—]+|\(?\d{1,3}[.)]|\[\d{1,3}\])(?=\s|\*|>)\s*)+")
_LABEL = re.compile(
    r"^\W*(?:recalled|remembered|i (?:recall|remember)|(?:relevant |known |long-term |stored |core"
    r" |working |further )?memor(?:y|ies)|known facts|earlier experience|procedures"
    r"|erinnerung(?:en)?|recuerdos?|souvenirs?|ricordi|lembranças?|记忆|記憶)"
    r"(?:\W*$|(?: that|[:：])\W*)"
    r"|^\(from memory\b[^)]*\)$",
    re.IGNORECASE,
)
"""What stands before recalled memories, in contexts of this server and of others."""
_ASIDE = re.compile(
    r"\((?:untrusted data|source_changed|stale since)[^)]*\)"
    r"|[\[(](?:(?:memory|id)[:= ]+)?mem_\w+[\])]|\bmem_[0-9A-Z]{26}\b"
)
"""The marks of memories in contexts, and ids of entries."""
_TOKEN = re.compile(r"(?<!\w)-\d(?:[\w.,:]*\w)?|\w+(?:[.,:'’/@+-]\w+)*\+*|[%$€£°<>=?؟]")
Sentence = tuple[str, ...]
"""The words of a sentence, with the signs that change what it says."""


class Known(NamedTuple):
    """What a search says about a text: the id and the version of the entry that says the same."""

    entry_id: str
    version: int


def words_of(text: str) -> Sentence:
    """The words of a text in one form, without the marks that only format it."""
    said: list[str] = []
    for line in normalize_text(text).split("\n"):
        plain = _ASIDE.sub(" ", _LABEL.sub("", _LIST_MARK.sub("", line)))
        said += (word.strip("_") for word in _TOKEN.findall(plain.lower()))
    return tuple(filter(None, said))


def sentences_of(text: str) -> set[Sentence]:
    """The sentences of a stored text, each as its words."""
    return {words for one in sentences(text) if (words := words_of(one))}


def count_known(
    said: Sentence, known: Mapping[str, Iterable[Sentence]], free: Collection[int] = ()
) -> int:
    """Returns how many words at the beginning of a text are whole known sentences.

    A sentence that refers to the one before it, such as "It failed", counts only after a sentence
    of the same entry, unless it begins an item of a list.

    known: the sentences by the id of their entry
    free: the places of the words that begin an item of a list
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
        is_free = not place or place in free or found is None or not _refers(found)
        if found is None or not (is_free or owners[found] & last):
            break
        place, last = place + len(found), owners[found]
    return place


def _refers(one: Sentence) -> bool:
    return REFERRING.search(" ".join(one))


async def find_known(
    transactions: OperationTransactions, text: str, subjects: Sequence[str], *, is_person: bool
) -> Known | None:
    """Returns the readable entry that says most of a text all of which memory has; None for a text
    that says anything new.

    subjects: the people that the text is about; only what is about the same people counts
    is_person: whether a person says it, who may say something again after saying another thing
    """
    if len(text) > LONGEST_READ:
        return None
    parts: list[Sentence] = []
    items: list[int] = []
    for line in text.split("\n"):
        items += [len(parts)] if _LIST_MARK.match(line) else []
        parts += (words for one in sentences(line) if (words := words_of(one)))
    said: Sentence = tuple(chain.from_iterable(parts))
    begins = [0, *accumulate(map(len, parts))]
    free = {begins[one] for one in items}
    if not said:
        return None
    known: dict[str, set[Sentence]] = {}
    entries: dict[str, Entry] = {}
    query, tried = text, -1
    for _ in range(_MOST_SEARCHES):
        await _search(transactions, query, subjects, known, entries)
        reached = count_known(said, known, free)
        if reached == len(said):
            return _best(said, known, entries, is_person=is_person)
        # The best entries for a text of many sentences may lack that of one of them.
        place = bisect_right(begins, reached) - 1
        if place == tried or len(parts) == 1:
            return None
        query, tried = " ".join(parts[place]), place
    return None


async def _search(
    transactions: OperationTransactions,
    query: str,
    subjects: Sequence[str],
    known: dict[str, set[Sentence]],
    entries: dict[str, Entry],
) -> None:
    """Adds the entries with the words of a text, and their sentences, by their ids."""
    index = index_of(transactions)
    spec = SearchSpec(
        query=query[:LONGEST_QUERY],
        wanted=EntryFilter(tenant=transactions.principal.tenant, tiers=_TIERS),
        mode=Mode.LEXICAL,
        limit=_HITS,
    )
    page = await search(index, transactions, spec, counted=False)
    found = [
        hit.entry
        for hit in page.hits
        if hit.entry.id not in known and set(subjects) == set(hit.entry.subjects)
    ]
    entries.update((entry.id, entry) for entry in found)
    known |= await index.read_texts(
        found, lambda: {one.id: sentences_of(own_text(one, index.fields)) for one in found}
    )


def _best(
    said: Sentence,
    known: dict[str, set[Sentence]],
    entries: dict[str, Entry],
    *,
    is_person: bool,
) -> Known | None:
    """The entry that has most of the words, the oldest of several."""
    shares = {
        entry_id: sum(len(one) for one in stated if _is_part(one, said))
        for entry_id, stated in known.items()
    }
    best = entries[max(sorted(shares), key=lambda one: shares[one])]
    if is_person and _has_newer_value(said, best, known, entries):
        return None
    return Known(best.id, best.version)


def _is_part(one: Sentence, said: Sentence) -> bool:
    return any(
        said[place : place + len(one)] == one for place, word in enumerate(said) if word == one[0]
    )


def _has_newer_value(
    said: Sentence, best: Entry, known: dict[str, set[Sentence]], entries: dict[str, Entry]
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


async def load_known(context: OperationContext, new: Entry, known: Known | None) -> Entry | None:
    """The entry that was found to say the same as a new one; None if it was changed meanwhile, and
    if it does not last as long as the new one."""
    if known is None:
        return None
    entry = await context.transaction.entries.get(known.entry_id, context.now)
    if entry is None or entry.version != known.version or entry.state != "live":
        return None
    expires_at = (await with_lifetime(context, new)).expires_at
    if entry.expires_at is not None and (expires_at is None or expires_at > entry.expires_at):
        return None
    is_readable = context.allows(Verb.READ, await load_target(context, Verb.READ, entry))
    return entry if is_readable else None
