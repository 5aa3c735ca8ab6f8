"""Converts texts to terms. A search finds the texts that share terms with the query.

A term is the stem of a word. Stop words have no term.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import ascii_lowercase
from threading import Lock
from unicodedata import combining, normalize

import apsw

from memorywall.recall.languages import ENGLISH, stemmer_of, stopwords_of

_WORD = re.compile(r"[^\W_]+")
_NO_SPACES = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""The letters of Thai, Lao, Japanese, Chinese and Korean, with few spaces between words."""
_COMPOUND = re.compile(r"[A-Z0-9](?:(?<=[a-z][A-Z])|(?<=[A-Z])[A-Z][a-z]|(?<=[0-9])[A-Za-z])")
"""In texts without it, no word has parts. The set of characters at its start makes it fast."""
_RUN = re.compile(rf"[{_NO_SPACES}]+|[^{_NO_SPACES}]+")
_WITHOUT_SPACES = re.compile(rf"[{_NO_SPACES}]")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_QUANTITY = re.compile(r"(\d+)([A-Za-z]{1,3})")
_SHORTEST_PART = 3
_SHORTEST_CORRECTED = 5
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
    """Converts words to terms, with a cache. For any threads.

    The stemmer is that of SQLite, which is installed anyway; nothing is stored in a database.
    """

    def __init__(self) -> None:
        self._database = apsw.Connection(":memory:")
        self._tokenize = self._database.fts5_tokenizer("porter", ["unicode61"])
        self._known: dict[str, dict[str, str]] = {ENGLISH: {}}
        self._learning = Lock()

    def of(self, text: str, language: str = ENGLISH) -> tuple[list[str], int]:
        """The terms of a text, in order and with repetitions, and its number of words.

        language: see `languages.language_of`; default: English
        """
        words = words_of(text)
        known = self._known.setdefault(language, {})
        found = []
        for word in words:
            term = known.get(word)
            if term is None:
                term = self._learn(word, language)
            if term:
                found.append(term)
        return found, len(words)

    def of_word(self, word: str, language: str = ENGLISH) -> str:
        """The term of a word in lower case; empty for a stop word of the language."""
        term = self._known.setdefault(language, {}).get(word)
        return self._learn(word, language) if term is None else term

    def _learn(self, word: str, language: str) -> str:
        with self._learning:
            return self._learn_alone(word, language)

    def _learn_alone(self, word: str, language: str) -> str:
        if language == ENGLISH:
            term = "" if word in STOPWORDS else self._stem(word[:_LONGEST])
        elif word in stopwords_of(language):
            term = ""
        else:
            # Accents are removed last, because the stemmers know endings by them.
            term = _without_accents(stemmer_of(language).stemWord(word[:_LONGEST]))
        known = self._known.setdefault(language, {})
        if len(known) >= _MOST_REMEMBERED:
            known.clear()
        known[word] = term
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


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    split = normalize("NFD", word)
    return normalize("NFC", "".join(one for one in split if not combining(one)))


def words_of(text: str) -> list[str]:
    """The words of a text in lower case.

    The parts of `camelCase`, and number and unit of `5kg`, follow the whole word. A text without
    spaces between words becomes its pairs of letters.
    """
    if _is_plain(text):
        return _WORD.findall(text.lower())
    found: list[str] = []
    for word in _WORD.findall(text):
        if _is_plain(word):
            found.append(word.lower())
            continue
        for run in _RUN.findall(word):
            found.extend(_parts(run))
    return found


def _is_plain(text: str) -> bool:
    """Whether no word of a text has parts."""
    if _COMPOUND.search(text) is not None:
        return False
    return text.isascii() or _WITHOUT_SPACES.search(text) is None


def _parts(run: str) -> list[str]:
    """The words of a run of letters of one kind."""
    if _WITHOUT_SPACES.match(run):
        return [run[at : at + 2] for at in range(max(1, len(run) - 1))]
    if (quantity := _QUANTITY.fullmatch(run)) is not None:
        return [run.lower(), quantity[1], quantity[2].lower()]
    parts = [part.lower() for part in _HUMP.split(run) if len(part) >= _SHORTEST_PART]
    whole = run.lower()
    return [whole, *(part for part in parts if part != whole)]


def words_as_written(text: str) -> list[str]:
    """The words of a text."""
    return _WORD.findall(text)


def one_edit_away(term: str) -> Iterator[str]:
    """The terms that differ from a term by one letter too many, wrong, missing or in the wrong
    place; none for short terms, which are one edit away from too many others."""
    if len(term) < _SHORTEST_CORRECTED or not (term.isascii() and term.isalpha()):
        return
    for at in range(len(term) + 1):
        before, after = term[:at], term[at:]
        if after:
            yield before + after[1:]
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]
        for letter in ascii_lowercase:
            yield before + letter + after
            if after:
                yield before + letter + after[1:]
