"""Finds what must not drift in a text: numbers, dates, amounts, identifiers and names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memorywall.summaries.cue import Cue

_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec"
    "|januar|februar|märz|mai|juni|juli|oktober|dezember"
    "|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
)
_DAYS = (
    "mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?"
    "|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag"
    "|lunes|martes|miércoles|jueves|viernes|sábado|domingo"
)
_NUMBER = r"\d+(?:[.,:'’/]\d+)*"
_WORDS = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty"
    "|sixty|ninety|hundred|thousand|million|half|twice|dozen|zwei|drei|vier|fünf|dos|tres|cuatro"
)
# A search for a pattern that begins with a digit looks at digits only. One that begins with a word
# boundary is tried at every character.
_DIGIT_DATE = re.compile(
    r"\d(?:(?<=\b\d)(?:\d{3}-\d\d?-\d\d?\b|\d?[./]\d\d?[./](?:\d{4}|\d\d)\b|\d?:\d\d(?::\d\d)?\b"
    rf"|\d?(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?(?:{_MONTHS})\b(?:\s+(?:de\s+)?\d{{4}})?"
    r"|\d?(?:st|nd|rd|th)\b|\d?\s?(?:am|pm|uhr)\b)"
    r"|\d*\s*[年月日])"
)
# "May" and "Mar" are dates only beside a number or after a preposition; other months always are.
_WORD_DATE = Cue(
    rf"\b(?:{_MONTHS})\b\.?\s+\d{{1,4}}(?:st|nd|rd|th)?\b(?:,?\s+\d{{4}})?",
    r"\b(?:january|february|april|june|july|august|september|october|november|december)\b",
    rf"\b(?:{_DAYS})\b",
    r"\b(?:tomorrow|tonight|yesterday|today|next (?:week|month|year)|noon|midnight"
    r"|morgen früh|übermorgen|mañana)\b",
    r"明天|昨天|明日|昨日|来週|下周|غد[اًا]|أمس",
)
_AMOUNT = re.compile(
    rf"[$€£¥₹₩]\s?{_NUMBER}(?:\s?(?:k|m|bn|million|billion))?\b"
    rf"|\b{_NUMBER}\s?(?:[$€£¥₹₩%]|(?:dollars?|euros?|pounds?|usd|eur|gbp|chf|yen|percent|prozent"
    r"|pesos?|francs?)\b|元|円|块|ريال|دولار)"
)
_IDENTIFIER = re.compile(
    r"[\w.+-]+@[\w-]+\.[\w.-]+|https?://[^\s<>\"”]+"
    r"|\b(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[A-Za-z0-9][A-Za-z0-9_-]*[A-Za-z0-9]\b|`[^`]+`"
)
_OF_IDENTIFIERS = re.compile(r"[A-Za-z_-]\d|\d[A-Za-z_-]|[@`]|://")
"""The pattern that every identifier contains."""
_DIGITS = re.compile(_NUMBER)
_WORD_NUMBER = Cue(
    rf"\b(?:{_WORDS})(?:[\s-](?:{_WORDS}|more|business|or|and))*[\s-]"
    r"(?:hours?|minutes?|seconds?|days?|weeks?|months?|years?|times|people|persons|kids|children"
    r"|percent|degrees|miles|kilometres|pages|copies|rooms|tickets|stunden|tage|wochen|jahre|días"
    r"|semanas|meses|años)\b|\b(?:half|twice)\b(?! the )"
)
_QUANTITY = re.compile(
    r"[一二三四五六七八九十百千万億亿两]+(?=[个個人元円块天年月日次名位件本台度回点時时分岁歳])"
)

_CAPITAL = r"[A-ZÀ-ÖØ-ÞĀŁŚŞŠŽČĆŐŰİ](?:[^\W\d]|[’'&-])*[^\W\d](?![\w-]*\d)"
_TITLED = re.compile(
    rf"\b(?:Mr|Mrs|Ms|Dr|Prof|Professor|Frau|Herrn?|Señora?|Sr|Sra|Don|Doña)\.?\s+{_CAPITAL}"
    rf"(?:\s+{_CAPITAL})?"
)
_CAPITALS = re.compile(
    rf"(?:{_CAPITAL}|[A-Z](?=\s[A-Z]))(?:[ ](?:(?:de|da|van|von|der|la|del)[ ])?{_CAPITAL})*"
)
_HEADING = re.compile(r"\W{0,4}[^:.!?]{1,60}:\*\*|\*\*[^*]{1,80}\*\*")
# A person does or says something: "Ngozi owns the schema".
_ACTOR = re.compile(
    r"^[\"'“„«(]*(?!(?:Every|Any|Some|No)\w+|\w+(?:ness|ity|tion|ment|ence|ance|ship|ing|one|body)\b)"
    rf"({_CAPITAL})(?= (?:owns?|helps?|said|says|told|wants|needs|has|does|did|works|called|asked"
    r"|is (?:my|our|the|an?)|will|wrote|thinks|prefers|agreed|expects|runs|leads)\b)"
)
_UNCASED_NAME = re.compile(
    r"[\u4e00-\u9fff\u3040-\u30ff々ー・]{1,6}(?:さん|様|氏|先生|女士|小姐)"
    r"|(?:我叫|名字是|名前は)[\u4e00-\u9fff\u30a0-\u30ff·・]{2,8}|[\u30a1-\u30faー]{2,}(?:・[\u30a1-\u30faー]+)+"
    r"|(?:السيدة?|الدكتورة?|الأستاذة?|اسمي)\s+[\u0621-\u064a]+"
)
# Words that are capital without being a name, mostly at the start of a clause.
_NO_NAMES = frozenset(
    "may mar i i'm i'll i've i'd ok okay yes no oh so and but or if when then the this that these "
    "those it he she we you they there here what how why who where which hi hello hey thanks thank "
    "please sorry well sure great good perfect let's let my your our his her its their a an in "
    "on at for to of as by with from pdf faq ai api id url todo pros cons note step option".split()
)
_GERMAN = re.compile(
    r"\b(?:der|die|das|und|ist|nicht|ich|wir|ein|eine|für|mit|auf|bitte|kein|wenn)\b"
)


class Carriers(NamedTuple):
    """The values that a statement carries, each as written.

    numbers: also those within dates, amounts and identifiers
    words: numbers in words, such as `five months`
    """

    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    amounts: tuple[str, ...]
    identifiers: tuple[str, ...]
    names: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def values(self) -> frozenset[str]:
        """All values, in lower case."""
        all_of = self.numbers + self.dates + self.amounts + self.identifiers + self.names
        return frozenset(map(str.lower, all_of))


def numbers(text: str) -> tuple[str, ...]:
    """The numbers of a text as written: digits of any script with their separators."""
    return tuple(_DIGITS.findall(text))


def carriers(text: str) -> Carriers:
    """Finds the carriers of a sentence."""
    small = _in_small_letters(text)
    digits = numbers(text)
    return Carriers(
        numbers=digits,
        dates=_as_written(_dates(small) if digits else _WORD_DATE.find(small), text),
        amounts=_as_written(_AMOUNT.finditer(small), text) if digits else (),
        identifiers=tuple(_IDENTIFIER.findall(text)) if _OF_IDENTIFIERS.search(text) else (),
        names=_names(text, small),
        words=_as_written(_WORD_NUMBER.find(small), text)
        + (() if text.isascii() else tuple(_QUANTITY.findall(text))),
    )


def _as_written(matches: Iterable[re.Match[str]], text: str) -> tuple[str, ...]:
    return tuple(text[match.start() : match.end()] for match in matches)


def _dates(small: str) -> Iterator[re.Match[str]]:
    """The dates of a text with digits, none of which overlaps the one before it."""
    found = [*_DIGIT_DATE.finditer(small), *_WORD_DATE.find(small)]
    end = 0
    for match in sorted(found, key=re.Match.start):
        if match.start() >= end:
            end = match.end()
            yield match


def _in_small_letters(text: str) -> str:
    """The text in small letters, each at the place of its capital one: patterns without regard to
    the case of letters are several times slower."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(one if len(one.lower()) != 1 else one.lower() for one in text)


def _names(text: str, small: str) -> tuple[str, ...]:
    """Names: capital words within a sentence; at its start only two of them, or one with a title.

    German writes every noun with a capital letter; there a name has two words or a title.
    """
    found = list(_TITLED.findall(text))
    found += [] if text.isascii() else _UNCASED_NAME.findall(text)
    found += [name for name in _ACTOR.findall(text) if not _is_no_name(name)]
    heading = _HEADING.match(text)
    german: bool | None = None
    for match in _CAPITALS.finditer(text, heading.end() if heading else 0):
        words = [word for word in match[0].split(" ") if not _is_no_name(word)]
        at_start = _starts_clause(text, match.start())
        if at_start and len(words) == len(match[0].split(" ")) and len(words) < 2:
            continue
        if len(words) == 1 and german is None:
            german = len(_GERMAN.findall(small)) >= 2
        if len(words) >= (2 if german else 1):
            found.append(" ".join(words))
    return tuple(dict.fromkeys(found))


def _is_no_name(word: str) -> bool:
    plain = word.lower().replace("’", "'")
    is_known = plain in _NO_NAMES or plain.split("'")[0] in _NO_NAMES
    return is_known or _WORD_DATE.fullmatch(word.lower())


def _starts_clause(text: str, start: int) -> bool:
    before = text[:start].rstrip(" \"'“„«(*¿¡")
    return not before or before[-1] in ".!?:…—-"
