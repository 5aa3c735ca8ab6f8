"""Converts texts to terms. A search finds the texts that share terms with the query.

A term is the stem of a word without accents. The terms of stop words differ from all others: only a
query of nothing else asks for them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from string import ascii_lowercase
from threading import Lock

import apsw

from memorywall.recall.languages import ENGLISH, stemmer_of, stopwords_of
from memorywall.records.words import NO_SPACES, fold_accents, normalize_text, split_words

_CAPITAL_INSIDE = "(?<=[a-z][A-Z])|(?<=[A-Z])[A-Z][a-z]"
_CUT_BEHIND = r"[ .,'\u2019\u066c()/-]{1,3}\d|[ -][A-Z]{4}\b"
"""What follows a digit in a number that is cut into several words."""
_COMPOUND = re.compile(rf"[A-Z0-9](?:{_CAPITAL_INSIDE}|(?<=[0-9])[A-Za-z])")
"""In texts without it, no word has parts. The set of characters at its start makes it fast."""
_RUN = re.compile(rf"[{NO_SPACES}]+|[^{NO_SPACES}]+")
_WITHOUT_SPACES = re.compile(rf"[{NO_SPACES}]")
_LETTER = re.compile(rf"[{NO_SPACES}](?<=\w)")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_QUANTITY = re.compile(r"(\d+)([A-Za-z]{1,3})")
_COMPOUND_OR_CUT = re.compile(
    rf"[A-Z0-9](?:{_CAPITAL_INSIDE}|(?<=[0-9])(?:[A-Za-z]|{_CUT_BEHIND}))"
)
"""The same for parts of words and for numbers that are cut into several words."""
_CUT = re.compile(rf"\d(?:{_CUT_BEHIND})")
_THOUSANDS = re.compile(
    r"[1-9](?<![\d.,][1-9])\d{0,2}"
    r"(?:(?:,\d\d)*(?:,\d{3})+|(?:['\u2019\u066c]\d{3})+|(?:\.\d{3}){1,2}(?!\.\d))(?!\d)"
)
"""A number with separators of thousands, those of India included, and no address of a network."""
_NOT_OF_WORD = re.compile(r"[\W_]+")
_CODE = re.compile(
    r"\d(?:(?<=\b[A-Za-z]{2}\d)\d"
    r"(?:(?:[ -]?\d{4}){2,7}(?:[ -]?\d{1,3})?(?![ -]?[A-Z\d]*\d)"
    r"|(?:[ -]?[A-Z\d]{4}){2,7}(?:[ -]?[A-Z\d]{1,3})?)"
    r"|(?<!\w\d)\d*(?:(?:[ .]| ?[()/-] ?)\d+)+)(?!\w)"
)
"""A number that people write with and without spaces: an IBAN without its country, thousands, a
telephone number. The patterns begin with a class of characters, which makes them fast."""
_SPACED = re.compile(r"\d{1,3}(?: \d{3})+")
_COUNTRY = re.compile(r"[A-Za-z]{2}")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_FEWEST_DIGITS, _MOST_DIGITS = 7, 19
"""Of telephone numbers and of the numbers of cards."""
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


_STOP = "."
"""Begins the term of a stop word, which only queries of nothing else ask for."""
_CAPITALS = re.compile(
    r"[A-Z](?:(?<=[\w,)] [A-Z])[A-Za-z]{0,9}|(?<!\w[A-Z])[A-Z]{1,9})(?![\w'\u2019])"
)
"""A word with a capital within a sentence, or in capitals."""


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
        return [term for term in self._all(words, language) if term[0] != _STOP], len(words)

    def of_document(self, text: str, language: str = ENGLISH) -> tuple[list[str], int]:
        """All terms by which a text is found, and its number of words.

        Stop words have terms, and others where they are written as names, such as `WHO`. A text
        without spaces between words has its letters, too, each of which may be a word.
        """
        text = normalize_text(text)
        words = _words_in(text)
        found = self._all(words, language)
        ignored = STOPWORDS if language == ENGLISH else stopwords_of(language)
        found += map(str.upper, capitals_of(text, ignored))
        if not text.isascii():
            found += _LETTER.findall(text)
        return found, len(words)

    def of_word(self, word: str, language: str = ENGLISH) -> str:
        """The term of a word in lower case; empty for a stop word of the language."""
        term = self.of_any_word(word, language)
        return "" if term[0] == _STOP else term

    def of_any_word(self, word: str, language: str = ENGLISH) -> str:
        """The term of a word in lower case, or of a stop word."""
        known = self._known.setdefault(language, {})
        return known.get(word) or self._learn(word, language)

    def _all(self, words: list[str], language: str) -> list[str]:
        known = self._known.setdefault(language, {})
        return [known.get(word) or self._learn(word, language) for word in words]

    def _learn(self, word: str, language: str) -> str:
        with self._learning:
            return self._learn_alone(word, language)

    def _learn_alone(self, word: str, language: str) -> str:
        if word in (STOPWORDS if language == ENGLISH else stopwords_of(language)):
            term = _STOP + word
        elif language == ENGLISH:
            term = self._stem(fold_accents(word[:_LONGEST]))
        else:
            # Accents are removed last, because the stemmers know endings by them.
            term = fold_accents(stemmer_of(language).stemWord(word[:_LONGEST]))
        known = self._known.setdefault(language, {})
        if len(known) >= _MOST_REMEMBERED:
            known.clear()
        known[word] = term = term or word
        return term

    def _stem(self, word: str) -> str:
        if not word.isascii():
            return word
        tokens = self._tokenize(
            word.encode(),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        # A string that the stemmer does not accept as a word is its own term.
        return "".join(str(token) for token in tokens) or word


def capitals_of(text: str, ignored: Collection[str]) -> list[str]:
    """The stop words of a text that are written as names: `IT`, and `Who` within a sentence.

    ignored: the stop words
    """
    names = _names_like(frozenset(ignored))
    return list(filter(names.__contains__, _CAPITALS.findall(text)))


@cache
def _names_like(ignored: frozenset[str]) -> frozenset[str]:
    forms = {form for word in ignored for form in (word.upper(), word.capitalize())}
    return frozenset(forms - {"I"})


def words_of(text: str) -> list[str]:
    """The words of a text in lower case.

    The parts of `camelCase`, and number and unit of `5kg`, follow the whole word. Numbers lose
    their separators of thousands, and codes that are written with spaces follow the text without
    them. A text without spaces between words becomes its pairs of letters.
    """
    return _words_in(normalize_text(text))


def _words_in(text: str) -> list[str]:
    """The words of a text in the form of `normalize_text`."""
    if _COMPOUND_OR_CUT.search(text) is None and not _has_no_spaces(text):
        return split_words(text.lower())
    codes: list[str] = []
    if _CUT.search(text) is not None:
        text = _THOUSANDS.sub(lambda found: _NOT_OF_WORD.sub("", found[0]), text)
        codes = list(_codes(text))
    if _is_plain(text):
        return split_words(text.lower()) + codes
    found: list[str] = []
    for word in split_words(text):
        if _is_plain(word):
            found.append(word.lower())
            continue
        for run in _RUN.findall(word):
            found.extend(_parts(run))
    return found + codes


def _codes(text: str) -> Iterator[str]:
    """The numbers in several groups, joined. A date is none."""
    for found in _CODE.finditer(text):
        digits, start = _NOT_OF_WORD.sub("", found[0]), found.start()
        country = _COUNTRY.search(text, start - 2 if start > 1 else 0, start)
        fewest = 4 if _SPACED.fullmatch(found[0]) else _FEWEST_DIGITS
        groups = len(_NOT_OF_WORD.findall(found[0])) + 1
        # Neither a single group nor numbers in a row.
        is_code = 1 < groups <= len(digits) / 1.5 and _DAY.fullmatch(found[0]) is None
        if is_code and (country or fewest <= len(digits) <= _MOST_DIGITS):
            yield f"{country[0] if country else ''}{digits}".lower()


def _is_plain(text: str) -> bool:
    """Whether no word of a text has parts."""
    return _COMPOUND.search(text) is None and not _has_no_spaces(text)


def _has_no_spaces(text: str) -> bool:
    return not text.isascii() and _WITHOUT_SPACES.search(text) is not None


def _parts(run: str) -> list[str]:
    """The words of a run of letters of one kind."""
    if _WITHOUT_SPACES.match(run):
        return [run[at : at + 2] for at in range(max(1, len(run) - 1))]
    if (quantity := _QUANTITY.fullmatch(run)) is not None:
        return [run.lower(), quantity[1], quantity[2].lower()]
    parts = [part.lower() for part in _HUMP.split(run) if len(part) >= _SHORTEST_PART]
    whole = run.lower()
    return [whole, *(part for part in parts if part != whole)]


def long_words_of(text: str) -> set[str]:
    """The words of a text without accents, but for short ones, which say little: those of less than
    three letters in scripts with spaces between words."""
    words = map(fold_accents, words_of(text))
    return {word for word in words if len(word) >= _SHORTEST_PART or not word.isascii()}


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
