"""Parses a query: named authors, languages, and the remaining text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from memorywall.recall.analyzer import STOPWORDS, words_as_written, words_of
from memorywall.recall.dates import WORDS_TOO
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.languages import LANGUAGES

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
    whole = re.search(rf"\b{re.escape(name)}\b", query, re.IGNORECASE)
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


def remove_names(query: str, names: Iterable[str]) -> str:
    """A query without names of authors, which are no part of the content."""
    rest = query
    for name in names:
        rest = re.sub(rf"\b{re.escape(name)}(?:['’]s)?\b", " ", rest, flags=re.IGNORECASE)  # noqa: RUF001
    rest = " ".join(rest.split())
    return rest if words_as_written(rest) else query
