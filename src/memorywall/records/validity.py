"""The validity of a value: the period in which what it says holds.

The fields `valid_from` and `valid_until` of any value limit it. This is the time of the world; when
something was stored is another matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from memorywall.records.clock import parse_instant

ANY_TIME: Final = "any"
"""In place of an instant: whether something holds does not matter."""
VALID_FROM: Final = "valid_from"
VALID_UNTIL: Final = "valid_until"

DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
"""A date without a time, which stands for a whole day in UTC."""

_IN_VALUE = b'"valid_'
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Validity(NamedTuple):
    """A period.

    start: the first instant at which it holds, in the stored form; None without a limit
    end: the first instant at which it no longer holds, likewise
    """

    start: str | None = None
    end: str | None = None

    def holds_at(self, instant: str) -> bool:
        """Whether it holds at an instant in the stored form; always at `ANY_TIME`."""
        return instant == ANY_TIME or (
            (self.start is None or self.start <= instant)
            and (self.end is None or instant < self.end)
        )


def validity_of(value: Mapping[str, Any]) -> Validity:
    """Returns the validity of a value. A date is a whole day in UTC: what is valid until a day also
    holds on that day. What is neither an instant nor a date is no limit."""
    start, end = (instant_of_field(name, value.get(name)) for name in (VALID_FROM, VALID_UNTIL))
    return Validity(start, end)


def validity_in(value: bytes) -> Validity:
    """Returns the validity of a value in JSON."""
    # Few values have one, and most of them are not decoded for it.
    return validity_of(_decode(value)) if _IN_VALUE in value else Validity()


def instant_of_field(name: str, found: object) -> str | None:
    """Returns the instant in a field of a value in the stored form; None for anything else. A date
    is its beginning in UTC, and its end in `valid_until`.

    name: of the field
    """
    if not isinstance(found, str):
        return None
    try:
        if DATE.fullmatch(found) is not None:
            day = date.fromisoformat(found) + timedelta(days=name == VALID_UNTIL)
            return parse_instant(f"{day.isoformat()}T00:00:00Z")
        return parse_instant(found)
    except (ValueError, OverflowError):
        return None
