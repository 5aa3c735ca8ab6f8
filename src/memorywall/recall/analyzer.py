"""Converts texts to terms. A search finds the texts that share terms with the query.

A term is the stem of a word. Stop words have no term.
"""

from __future__ import annotations

import re

import apsw

_WORD = re.compile(r"[^\W_]+")
_MOST_REMEMBERED = 200_000
"""The most cached words, about 30 MB; most texts use only words among them."""
_LONGEST = 64
"""The characters of a word that count; longer strings are not words of a language."""

# By word class. "may" is omitted, because it is also a month.
_ARTICLES = "a an the"
_PRONOUNS = """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
    himself she her hers herself it its itself they them their theirs themselves one ones
"""
_POINTING = "this that these those there here"
_INTERROGATIVES = "what when where which who whom whose why how"
_AUXILIARIES = """
    am is are was were be been being do does did doing done has have had having will would shall
    should can could might must
"""
_PREPOSITIONS = """
    about above across after against along among around as at before below between by down during
    for from in into of off on onto out over since through till to toward towards under until up
    upon via with within without
"""
_CONJUNCTIONS = "and but or nor so if than then because while though although unless whether"
_QUANTITIES = """
    all any both each either every few many more most much neither no none not only other others
    some such same own several very too also just ever yet again even still once
"""
_SHORT_FORMS = """
    s t d m ll re ve don didn doesn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn
    cannot
"""
STOPWORDS = frozenset(
    " ".join(
        (
            _ARTICLES,
            _PRONOUNS,
            _POINTING,
            _INTERROGATIVES,
            _AUXILIARIES,
            _PREPOSITIONS,
            _CONJUNCTIONS,
            _QUANTITIES,
            _SHORT_FORMS,
        )
    ).split()
)


class Analyzer:
    """Converts words to terms, with a cache. For one thread at a time.

    The stemmer is that of SQLite, which is installed anyway; nothing is stored in a database.
    """

    def __init__(self) -> None:
        self._database = apsw.Connection(":memory:")
        self._tokenize = self._database.fts5_tokenizer("porter", ["unicode61"])
        self._known: dict[str, str] = {}

    def of(self, text: str) -> tuple[list[str], int]:
        """The terms of a text, in order and with repetitions, and its number of words."""
        words = words_of(text)
        known = self._known
        found = []
        for word in words:
            term = known.get(word)
            if term is None:
                term = self._learn(word)
            if term:
                found.append(term)
        return found, len(words)

    def of_word(self, word: str) -> str:
        """The term of a word in lower case; empty for a stop word."""
        term = self._known.get(word)
        return self._learn(word) if term is None else term

    def _learn(self, word: str) -> str:
        term = "" if word in STOPWORDS else self._stem(word[:_LONGEST])
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[word] = term
        return term

    def _stem(self, word: str) -> str:
        tokens = self._tokenize(
            word.encode(errors="replace"),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        # A string that the stemmer does not accept as a word is its own term.
        return "".join(str(token) for token in tokens) or word


def words_of(text: str) -> list[str]:
    """The words of a text in lower case."""
    return _WORD.findall(text.lower())


def words_as_written(text: str) -> list[str]:
    """The words of a text."""
    return _WORD.findall(text)
