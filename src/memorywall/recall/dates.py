"""The dates that a query names: months and days, and what is counted from today, as "last week".

They are facets of documents; see `index_shard.facets_of`. A document with several of them fits
better, and a rare date weighs more than a frequent one.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from datetime import date
from typing import NamedTuple

from memorywall.records.words import fold_accents, normalize_text, split_words

_MONTHS = {
    fold_accents(name): number
    for names in (
        "january february march april may june july august september october november december",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "gennaio febbraio marzo aprile maggio giugno"
        " luglio agosto settembre ottobre novembre dicembre",
    )
    for number, name in enumerate(names.split(), 1)
}
_WEEKDAYS = {
    fold_accents(name): number
    for names in (
        "monday tuesday wednesday thursday friday saturday sunday",
        "montag dienstag mittwoch donnerstag freitag samstag sonntag",
        "lunes martes miércoles jueves viernes sábado domingo",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    )
    for number, name in enumerate(names.split())
}
NAMES_OF_DATES = frozenset((*_MONTHS, *_WEEKDAYS))
"""The names of months and weekdays, in lower case without accents."""
WORDS_TOO = frozenset(
    {"may", "march", "april", "june", "august", "mars", "will", "mark", "grace", "hope"}
)
"""Names and months that are also words; they count as names only with a capital letter."""
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_OF = frozenset({"of", "de", "di"})
_YEAR = re.compile(r"(?:19|20)\d\d")
_ISO_DATE = re.compile(r"\b(\d{4})-(0[1-9]|1[0-2])(?:-(\d{2}))?\b(?!-)")
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The first month of each, in the northern half of the earth."""
_COUNTS = "one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {name: number for number, name in enumerate(_COUNTS.split(), 1)}
_NUMBERS |= {"a": 1, "an": 1, "the": 1, "couple": 2, "few": 3}
_AGO = re.compile(r"\b(\d{1,3}|[a-z]+)(?:\s+of)?\s+(day|week|month|year)s?\s+ago\b")
_NEAR = re.compile(r"\b(last|past|previous|this)\s+(\w+)(?:\s+(day|week|month|year)s?\b)?")
_SEASON = re.compile(
    r"\b(?:(last|this)\s+|(?:in|during|of)\s+(?:the\s+)?)?(spring|summer|autumn|fall|winter)"
    r"(?:\s+(?:of\s+)?((?:19|20)\d\d))?\b"
)
_SINCE = re.compile(r"\b(?:since|after)\s+(\w+)|\bbetween\s+(\w+)\s+and\s+(\w+)")
UNITS = ("day", "week", "month", "year")
_LONGEST_RANGE = 31
_AFTER_LAST_DAY = date.max.toordinal() + 1
_COUNTED_BACK = re.compile(r"\b(?:yesterday|ago|last|past|previous)\b", re.IGNORECASE)
_FROM_EVENT = re.compile(
    r"\b(\d{1,3}|[a-z]+)(?:\s+of)?\s+(day|week|month|year)s?\s+(before|after)\s+([^,.;:?!]+)",
    re.IGNORECASE,
)
_ON_DATE = re.compile(
    r"(?:the\s+)?(?:(\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?([a-z]+)"
    r"|([a-z]+)\s+(\d{1,2})(?:st|nd|rd|th)?)\b,?\s+((?:19|20)\d\d)\b",
    re.IGNORECASE,
)


def dates_named(query: str, today: date) -> list[Hashable]:
    """The parts of dates in a query.

    today: the day from which "yesterday" or "last week" is counted, in UTC
    """
    query = normalize_text(query)
    words = split_words(query)
    found: list[Hashable] = []
    for place, word in enumerate(words):
        lower = fold_accents(word.lower())
        if (month := _MONTHS.get(lower)) and (lower not in WORDS_TOO or word[0].isupper()):
            found.append(("month", month))
            found.extend(_days_beside(words, place))
        elif (weekday := _WEEKDAYS.get(lower)) is not None:
            found.append(("weekday", weekday))
        elif _YEAR.fullmatch(word):
            found.append(("year", int(word)))
    for year, month_text, day in _ISO_DATE.findall(query):
        found.extend((("year", int(year)), ("month", int(month_text))))
        found.extend([("day", int(day))] if day else [])
    text = " ".join(fold_accents(query.lower()).split())
    for said in (_days, _ago, _near, _seasons, _spans):
        found.extend(said(text, today))
    return list(dict.fromkeys(found))


def dates_told(text: str, day: date) -> set[tuple[str, int]]:
    """The facets of the dates that a text tells by counting back from its own day, such as
    "yesterday" and "three weeks ago".

    day: the day of the text
    """
    if _COUNTED_BACK.search(text) is None:
        return set()
    found: set[tuple[str, int]] = set()
    lower = " ".join(text.lower().split())
    for told in (_days, _ago, _near):
        places = list(told(lower, day))
        days = [date.fromordinal(place[1]) for place in places if place[0] == "date"]
        found.update(places)
        if len(days) == 1:
            found.update(parts_of(days[0]))
        # For one of several possible days, what a query for a longer time names.
        found.update(part for one in days for part in (("year", one.year), ("month", one.month)))
    return found


def parts_of(day: date) -> Iterator[tuple[str, int]]:
    """A date, and its parts."""
    yield ("date", day.toordinal())
    yield ("year", day.year)
    yield ("month", day.month)
    yield ("day", day.day)
    yield ("weekday", day.weekday())


class FromEvent(NamedTuple):
    """A date that is counted from an event, as in "two weeks before the move".

    event: the words that name the event, or a date in full
    steps: the distance in units; below 0 before the event
    unit: one of `UNITS`
    day: the date, None for an event whose date memory knows
    """

    event: str
    steps: int
    unit: str
    day: date | None = None

    def dates(self, day: date) -> list[Hashable]:
        """The facets of the date.

        day: that of the event
        """
        return list(_counted(day, self.steps, self.unit))


def dates_from_events(query: str) -> list[FromEvent]:
    """The dates in a query that are counted from an event."""
    found, text = [], " ".join(query.split())
    for told in _FROM_EVENT.finditer(text):
        said, unit, which, event = told.groups()
        count = int(said) if said.isdecimal() else _NUMBERS.get(said.lower(), 0)
        if count:
            steps = count if which.lower() == "after" else -count
            named, day = _date_at(text, told.start(4))
            found.append(FromEvent(named or event.strip(), steps, unit.lower(), day))
    return found


def _date_at(text: str, place: int) -> tuple[str, date | None]:
    """The date in full that begins at a place of a text, as in the text and as a date."""
    found = _ON_DATE.match(text, place)
    if found is None:
        return "", None
    month = _MONTHS.get((found[2] or found[3]).lower())
    try:
        return found[0], date(int(found[5]), month or 0, int(found[1] or found[4]))
    except ValueError:
        return "", None


def _counted(day: date, count: int, unit: str) -> Iterator[tuple[str, int]]:
    """The day, week, month or year at a distance from a day."""
    if unit == "day":
        yield from _range(day, count, 1)
    elif unit == "week":
        # Weeks are rarely counted to the day.
        yield from _range(day, 7 * count - 3, 7)
    elif unit == "month":
        yield from _month(day, count)
    else:
        yield ("year", day.year + count)


def _days_beside(words: Sequence[str], place: int) -> Iterable[Hashable]:
    is_after_of = place > 1 and words[place - 1].lower() in _OF
    for beside in (place - 2 if is_after_of else place - 1, place + 1):
        if 0 <= beside < len(words) and (day := _DAY.fullmatch(words[beside].lower())):
            yield ("day", int(day[1]))


def _days(text: str, today: date) -> Iterator[tuple[str, int]]:
    """`today`, `yesterday`."""
    if re.search(r"\bday before yesterday\b", text):
        yield from _range(today, -2, 1)
    elif re.search(r"\byesterday\b", text):
        yield from _range(today, -1, 1)
    if re.search(r"\btoday\b", text):
        yield from _range(today, 0, 1)


def _ago(text: str, today: date) -> Iterator[tuple[str, int]]:
    """`three days ago`, `a couple of weeks ago`."""
    for said, unit in _AGO.findall(text):
        count = int(said) if said.isdecimal() else _NUMBERS.get(said, 0)
        if count:
            yield from _counted(today, -count, unit)


def _near(text: str, today: date) -> Iterator[tuple[str, int]]:
    """`last week`, `this month`, `the past three days`, `last Monday`."""
    for which, what, unit in _NEAR.findall(text):
        back = 0 if which == "this" else 1
        if what.rstrip("s") in {"week", "month", "year"}:
            if what.startswith("week"):
                yield from _range(today, -today.weekday() - 7 * back, 7)
            elif what.startswith("month"):
                yield from _month(today, -back)
            else:
                yield ("year", today.year - back)
        elif back and (weekday := _WEEKDAYS.get(what)) is not None:
            yield from _range(today, -((today.weekday() - weekday - 1) % 7) - 1, 1)
        elif back and unit in {"day", "week"}:
            count = int(what) if what.isdecimal() else _NUMBERS.get(what, 0)
            days = min(count * (7 if unit == "week" else 1), _LONGEST_RANGE)
            yield from _range(today, -days, days + 1 if days else 0)


def _seasons(text: str, today: date) -> Iterator[tuple[str, int]]:
    """`last spring`, `in the summer of 2023`. A season alone is a word as any other."""
    for found in _SEASON.finditer(text):
        which, name, year = found.groups()
        if found[0] == name:
            continue
        first = _SEASONS[name]
        for month in range(first, first + 3):
            yield ("month", (month - 1) % 12 + 1)
        if year:
            yield ("year", int(year))
        elif which:
            begun = today.year if today.month >= first else today.year - 1
            is_running = today.month in range(first, first + 3) and today.year == begun
            yield ("year", begun - 1 if which == "last" and is_running else begun)


def _spans(text: str, today: date) -> Iterator[tuple[str, int]]:
    """`since June`, `between March and May`."""
    for since, start, end in _SINCE.findall(text):
        first, last = _MONTHS.get(since or start), _MONTHS.get(end) if end else today.month
        if first is not None and last is not None:
            for step in range((last - first) % 12 + 1):
                yield ("month", (first + step - 1) % 12 + 1)


def _range(day: date, steps: int, days: int) -> Iterator[tuple[str, int]]:
    """Some days, the first of them at a distance from a day; the calendar limits them."""
    first = day.toordinal() + steps
    for number in range(max(first, 1), min(first + days, _AFTER_LAST_DAY)):
        yield ("date", number)


def _month(today: date, months: int) -> Iterator[tuple[str, int]]:
    place = today.year * 12 + today.month - 1 + months
    yield ("year", place // 12)
    yield ("month", place % 12 + 1)
