"""Parses a query: named authors, dates, and the remaining text."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence

from memorywall.recall.analyzer import STOPWORDS, words_as_written, words_of
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.languages import LANGUAGES

_MONTHS = [
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
]
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_WORDS_TOO = frozenset({"may", "march", "april", "june", "august", "will", "mark", "grace", "hope"})
"""Names and months that are also words; they count as names only with a capital letter."""
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_SAID_BY_ASSISTANT = re.compile(
    r"\b(?:assistant|you\s+(?:\w+\s+)?(?:said|told|gave|suggest|recommend|mention|list|explain|propos|advis)"
    r"|your\s+(?:\w+\s+)?(?:advice|answer|suggestion|recommendation|explanation|proposal|list))",
    re.IGNORECASE,
)
_ISO_DATE = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")


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
    whole = re.search(rf"\b{re.escape(name)}\b", query, re.IGNORECASE)
    if whole is None:
        return False
    is_a_word = name in STOPWORDS or name in _WORDS_TOO
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


def remove_names(query: str, names: Iterable[str]) -> str:
    """A query without names of authors, which are no part of the content."""
    rest = query
    for name in names:
        rest = re.sub(rf"\b{re.escape(name)}(?:['’]s)?\b", " ", rest, flags=re.IGNORECASE)  # noqa: RUF001
    rest = " ".join(rest.split())
    return rest if words_as_written(rest) else query


def dates_named(query: str) -> list[Hashable]:
    """The parts of dates in a query, as facets of documents."""
    words = words_as_written(query)
    found: list[Hashable] = []
    for place, word in enumerate(words):
        lower = word.lower()
        if lower in _MONTHS and (lower not in _WORDS_TOO or word[0].isupper()):
            found.append(("month", _MONTHS.index(lower) + 1))
            found.extend(_days_beside(words, place))
        elif lower in _WEEKDAYS:
            found.append(("weekday", _WEEKDAYS.index(lower)))
        elif _YEAR.fullmatch(word):
            found.append(("year", int(word)))
    for year, month, day in _ISO_DATE.findall(query):
        found.extend((("year", int(year)), ("month", int(month)), ("day", int(day))))
    return list(dict.fromkeys(found))


def _days_beside(words: Sequence[str], place: int) -> Iterable[Hashable]:
    for beside in (place - 1, place + 1):
        if 0 <= beside < len(words) and (day := _DAY.fullmatch(words[beside].lower())):
            yield ("day", int(day[1]))
