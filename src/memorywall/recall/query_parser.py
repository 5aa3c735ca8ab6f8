"""Parses a query: its questions, named authors, languages, dates, words and vectors."""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cache, partial
from typing import Any, NamedTuple

from memorywall.recall.analyzer import STOPWORDS, capitals_of, words_of
from memorywall.recall.candidates import Variant
from memorywall.recall.dates import WORDS_TOO, FromEvent, dates_from_events, dates_named
from memorywall.recall.filtering import ShardFilter, readable_in
from memorywall.recall.index import Index
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.languages import ENGLISH, LANGUAGES, language_of, stopwords_of
from memorywall.recall.named_things import capitalized_names, phrases_of
from memorywall.recall.parsed_query import ParsedQuery
from memorywall.recall.questions import Question, by_matter, questions_of
from memorywall.records.errors import UnavailableError
from memorywall.records.recall import Mode, SearchSpec
from memorywall.records.words import QUESTION_MARKS, find_words, fold_accents

Terms = tuple[tuple[str, str], ...]
_log = logging.getLogger("memorywall.recall")

_MOST_NAMES = 8
"""The most other names of a thing that count."""
_MOST_WITH_NAME = 50
"""The most documents that give a name other names. A more frequent name is of no single thing."""
_MOST_EVENTS = 2
"""The most events from which dates are counted; each takes a search."""
_LETTER_OF_NAME = re.compile(r"(?<= )(?:[stdm](?![\w'\u2019])|a(?=\W*$))")
"""A single letter that is a name, as in `vitamin d`, and no article or short form."""
_SAID_BY_ASSISTANT = re.compile(
    r"\b(?:assistant|you\s+(?:\w+\s+)?(?:said|told|gave|suggest|recommend|mention|list|explain|propos|advis)"
    r"|your\s+(?:\w+\s+)?(?:advice|answer|suggestion|recommendation|explanation|proposal|list))",
    re.IGNORECASE,
)


def authors_named(
    query: str, shards: Sequence[IndexShard], readable: Callable[[IndexShard], bytearray | None]
) -> tuple[list[str], set[str]]:
    """The parts of a query that name an author of a searched document, longest first, and these
    authors.

    An author is named by the whole name, or by its first word if no other author has it.

    readable: returns the readable documents of a shard; called only if needed
    """
    named: dict[str, set[str]] = {}
    for word in dict.fromkeys(words_of(query)):
        authors = {
            author
            for shard in shards
            if shard.named.get(word)
            for author in shard.authors_named(word, readable(shard))
        }
        whole = {author for author in authors if _is_named(author, query)}
        for author in whole:
            named.setdefault(author, set()).add(author)
        if not whole and len(authors) == 1 and _is_named(word, query):
            named.setdefault(word, set()).update(authors)
    names = sorted(named, key=lambda name: (-len(name), name))
    return names, set().union(*named.values())


def _is_named(name: str, query: str) -> bool:
    whole = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", query, re.IGNORECASE)
    if whole is None:
        return False
    is_a_word = name in STOPWORDS or name in WORDS_TOO
    return not is_a_word or whole[0][0].isupper()


def languages_in(
    shards: Sequence[IndexShard], readable: Callable[[IndexShard], bytearray | None]
) -> list[str]:
    """The languages of readable documents besides English.

    readable: returns the readable documents of a shard; called only if needed
    """
    return [
        language
        for language in LANGUAGES
        if any(
            shard.at(("language", language))
            and shard.frequency(("language", language), readable(shard))
            for shard in shards
        )
    ]


def asks_assistant(query: str) -> bool:
    """Whether a query asks what an assistant said, as in `what did you recommend?`."""
    return _SAID_BY_ASSISTANT.search(query) is not None


def aliases_named(
    query: str, shards: Sequence[IndexShard], readable: Callable[[IndexShard], bytearray | None]
) -> dict[str, list[str]]:
    """The names of things in a query that readable documents give other names, with these.

    readable: returns the readable documents of a shard; called only if needed
    """
    if not any(shard.places.has_nodes for shard in shards):
        return {}
    found = {name: _other_names(name, shards, readable) for name in phrases_of(query)}
    return {name: others for name, others in found.items() if others}


def _other_names(
    name: str,
    shards: Sequence[IndexShard],
    readable: Callable[[IndexShard], bytearray | None],
) -> list[str]:
    """The other names that most of the readable documents with a name give; none if very many
    have the name."""
    place = ("alias", name)
    parts = [(shard, readable(shard)) for shard in shards if shard.at(place)]
    if sum(shard.frequency(place, may) for shard, may in parts) > _MOST_WITH_NAME:
        return []
    counts: Counter[str] = Counter()
    places: dict[str, int] = {}
    for shard, may in parts:
        for number in shard.at(place):
            document = shard.documents[number]
            if document is None or not (may is None or may[number]):
                continue
            counts.update(document.aliases)
            for at, other in enumerate(document.aliases):
                places[other] = min(at, places.get(other, at))
    # The `name` of a value stands before its aliases.
    others = (one for one in counts if fold_accents(one) != name)
    return sorted(others, key=lambda one: (-counts[one], places[one], one))[:_MOST_NAMES]


def remove_names(query: str, names: Iterable[str]) -> str:
    """A query without names of authors, which are no part of the content."""
    rest = query
    for name in names:
        rest = re.sub(rf"(?<!\w){re.escape(name)}(?:['’]s)?(?!\w)", " ", rest, flags=re.IGNORECASE)  # noqa: RUF001
    rest = " ".join(rest.split())
    return rest if find_words(rest) else query


class KnownText(NamedTuple):
    """A query or one of its questions, with what the readable documents say about it.

    spec: the search, with this text as its query
    question: None for the whole query
    languages: the languages of the documents
    aliases: the names in the text with their other names, as `aliases_named` returns them
    names, authors: the authors that the text names, as `authors_named` returns them
    """

    spec: SearchSpec
    question: Question | None
    languages: Sequence[str]
    aliases: Mapping[str, Sequence[str]]
    names: Sequence[str]
    authors: set[str]


def known_texts(
    spec: SearchSpec, parts: Sequence[ShardFilter], shards: Sequence[IndexShard]
) -> list[KnownText]:
    """The whole query, followed by its questions if it has several."""
    readable = cache(partial(readable_documents, parts=parts))
    languages = languages_in(shards, readable)
    texts = []
    for question in (None, *questions_of(spec.query)):
        one = spec if question is None else replace(spec, query=question.text)
        named = authors_named(one.query, shards, readable)
        if one.context and not named[0]:
            # "And what did she say?" is about the person of the turn before.
            named = authors_named(one.context, shards, readable)
        aliases = aliases_named(one.query, shards, readable)
        texts.append(KnownText(one, question, languages, aliases, *named))
    return texts


async def parse_queries(
    index: Index, texts: Sequence[KnownText], vectors: dict[tuple[str, str], Any]
) -> list[ParsedQuery]:
    """The whole query, followed by its questions if they are about different matters; questions
    about one matter are joined.

    vectors: of the texts that were embedded already, to which those of these texts are added
    """
    whole, *parsed = [await _parse_query(index, one, vectors) for one in texts]
    matters = by_matter(parsed, index.weights) if parsed else []
    return [
        whole,
        *[
            parsed[places[0]]
            if len(places) == 1
            else await _parse_query(index, _joined([texts[1 + at] for at in places]), vectors)
            for places in matters
        ],
    ]


def _joined(texts: Sequence[KnownText]) -> KnownText:
    first, last = texts[0], texts[-1]
    query = " ".join(one.spec.query for one in texts)
    return KnownText(
        replace(first.spec, query=query),
        Question(query, last.question is not None and last.question.is_earlier),
        first.languages,
        {name: others for one in texts for name, others in one.aliases.items()},
        list(dict.fromkeys(name for one in texts for name in one.names)),
        set().union(*(one.authors for one in texts)),
    )


async def _parse_query(
    index: Index, known: KnownText, vectors: dict[tuple[str, str], Any], *, is_event: bool = False
) -> ParsedQuery:
    spec, question, languages = known.spec, known.question, known.languages
    bare = remove_names(spec.query, known.names)
    before = remove_names(spec.context, known.names) if spec.context else ""
    terms: Terms = ()
    context: Terms = ()
    names: Terms = ()
    mentioned: list[tuple[str, ...]] = []
    dates: list[Hashable] = []
    events: list[tuple[FromEvent, ParsedQuery]] = []
    if spec.mode is not Mode.DENSE:
        terms = _terms(index, bare, languages)
        context = _terms(index, before, languages) if before else ()
        names = _terms(index, " ".join(known.names), languages) if known.names else ()
        for name in capitalized_names(bare):
            if found := _terms(index, name.lower(), languages):
                mentioned.append(tuple(term for _, term in found))
        if not (context or question or is_event or known.names):
            terms = _stop_terms(index, bare, languages) or terms
        # In the form of the store, an instant begins with its day in UTC.
        today = date.fromisoformat((spec.reference_time or index.services.now())[:10])
        distances = dates_from_events(bare)[:_MOST_EVENTS]
        dates = _dates_in(bare, today, distances)
        # Each event takes a search, so the date of an event is not counted from another one.
        for distance in distances:
            if is_event or distance.day is not None:
                continue
            named = known._replace(spec=replace(spec, query=distance.event), question=None)
            event = await _parse_query(index, named, vectors, is_event=True)
            # Nothing is known about the event of "two days before that".
            if event.terms:
                events.append((distance, event))
    dense = spec.dense_weight if spec.mode is Mode.HYBRID else None
    vector: Any = None
    if spec.mode is not Mode.LEXICAL and index.embedder is not None:
        if (bare, before) not in vectors:
            vectors[bare, before] = await _embed(index, bare, before)
        vector = vectors[bare, before]
    return ParsedQuery(
        terms=terms,
        context=context,
        names=names,
        mentioned=tuple(mentioned),
        variants=_variants(index, known.aliases, terms, languages),
        dates=tuple(dates),
        events=tuple(events),
        author=next(iter(known.authors)) if len(known.authors) == 1 else None,
        vector=vector,
        lexical=0.0 if spec.mode is Mode.DENSE else index.weights.lexical,
        dense=index.weights.dense if dense is None else dense,
        is_weighted=dense is not None,
        languages=languages,
        asks_assistant=asks_assistant(spec.query),
        question=None if question is None else question.text,
        share=1.0
        if question is None or not question.is_earlier
        else index.weights.earlier_question,
    )


def _dates_in(text: str, today: date, distances: Iterable[FromEvent]) -> list[Hashable]:
    """The dates that a text names, with those that it counts from a date in full, in place of that
    date."""
    dates, rest = [], " ".join(text.split())
    for distance in distances:
        if distance.day is not None:
            dates += distance.dates(distance.day)
            rest = rest.replace(distance.event, " ")
    return [*dates, *dates_named(rest, today)]


def _variants(
    index: Index, aliases: Mapping[str, Sequence[str]], terms: Terms, languages: Sequence[str]
) -> dict[str, tuple[Variant, ...]]:
    """The terms of other names, for each term of the names in a query. A name of several words
    counts as one."""
    asked = {term for _, term in terms}
    found: dict[str, dict[str, float]] = {}
    for name, others in aliases.items():
        named = asked.intersection(term for _, term in _terms(index, name, languages))
        for other in others:
            words = dict.fromkeys(term for _, term in _terms(index, other, languages))
            for term in named:
                for word in words:
                    share = index.weights.alias / len(words)
                    there = found.setdefault(term, {})
                    there[word] = max(share, there.get(word, 0.0))
    return {
        term: tuple(Variant(text, share) for text, share in variants.items())
        for term, variants in found.items()
    }


def _terms(index: Index, text: str, languages: Sequence[str]) -> Terms:
    """The words of a text, each with its terms in English and in other languages of the searched
    documents; without stop words."""
    words = words_of(text)
    spoken = language_of(words) if languages else ENGLISH
    # Words such as "die" and "was" mean nothing in one language and something in another.
    ignored = STOPWORDS if spoken == ENGLISH else stopwords_of(spoken)
    pairs = [
        (word, index.terms.of_word(word, language))
        for word in words
        if word not in ignored
        for language in (ENGLISH, *languages)
    ]
    # In "vitamin A" and "the IT department", the letter and the word are names.
    names = () if text.isupper() else capitals_of(text, STOPWORDS)
    letters = (*filter(str.isupper, names), *_LETTER_OF_NAME.findall(text))
    pairs += [(name.lower(), name.upper()) for name in letters]
    return tuple(pair for pair in pairs if pair[1])


def _stop_terms(index: Index, text: str, languages: Sequence[str]) -> Terms:
    """The terms of a query that consists of stop words, as `The Who` does; none of any other."""
    words, spoken = words_of(text), (ENGLISH, *languages)
    if any(all(index.terms.of_word(word, language) for language in spoken) for word in words):
        return ()
    if text.rstrip().endswith(QUESTION_MARKS):
        # "Who are you?" asks about everything that was said, and "Who are The Who?" about a name.
        return tuple((name.lower(), name.upper()) for name in capitals_of(text, STOPWORDS))
    pairs = [
        (word, index.terms.of_any_word(word, language)) for word in words for language in spoken
    ]
    names = [word for word in find_words(text) if word[0].isupper()]
    return (*pairs, *((name.lower(), name.upper()) for name in names))


async def _embed(index: Index, text: str, before: str) -> Any:
    """The vector of a query with the text before it; None if the embedder is not available in
    time."""
    try:
        if not before:
            return (await index.embed([text]))[0]
        asked, context = await index.embed([text, before])
        both = asked + index.weights.vector_context * context
        return both / (math.hypot(*both) or 1.0)
    except (UnavailableError, TimeoutError):
        _log.warning("the embedder is not available; searched by words only")
        return None


def readable_documents(shard: IndexShard, parts: Sequence[ShardFilter]) -> bytearray | None:
    """The documents of a shard that may be read; None for all of them."""
    return readable_in(shard, [part for part in parts if part.owner == shard.owner])
