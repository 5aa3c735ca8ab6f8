"""Converts the dates of messages in chat files to the form that recall reads."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_FORMS = (
    "%I:%M %p on %d %B, %Y",
    "%d %B %Y %H:%M",
    "%d %B %Y",
    "%d %B, %Y",
    "%B %d, %Y %H:%M",
    "%B %d, %Y %I:%M %p",
    "%B %d, %Y",
    "%a %b %d %H:%M:%S %Y",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
)
"""Unambiguous forms only; 4/5/2023 means different days in different countries."""
_SECONDS_DIGITS = 10
_MILLISECONDS_DIGITS = 13
_MILLISECONDS_FROM = 100_000_000_000
"""In seconds this is a day in the year 5138, in milliseconds a day in 1973."""


def read_date(written: str | float) -> str:
    """A date as ISO 8601 text, or the given text if its form is unknown.

    written: text, or seconds or milliseconds since 1970
    """
    if not isinstance(written, str):
        return _since_1970(written) or str(written)
    text = written.strip()
    if text.isascii() and text.isdigit() and len(text) in (_SECONDS_DIGITS, _MILLISECONDS_DIGITS):
        return _since_1970(int(text)) or text
    if _is_iso(text):
        return text
    moment = _in_words(text)
    return text if moment is None else moment.isoformat()


def _is_iso(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _since_1970(number: float) -> str | None:
    seconds = number / 1000 if abs(number) >= _MILLISECONDS_FROM else number
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def _in_words(text: str) -> datetime | None:
    for form in _FORMS:
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007 - no offset is written
        except ValueError:
            continue
    try:
        # The form of mail: "Mon, 8 May 2023 13:56:00 +0200".
        return parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
