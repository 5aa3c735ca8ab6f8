"""Time: an injected clock, RFC 3339 instants and ISO 8601 durations.

An instant is stored and sent as text: RFC 3339 in UTC with milliseconds and `Z`
("2026-02-08T10:00:00.000Z"). The width is fixed, so that texts sort in the order of time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from threading import Lock
from typing import Protocol

from memorywall.records.errors import ValidationError

_DURATION = re.compile(
    r"P(?=.)(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)
_CALENDAR = re.compile(r"P(?=\d)(?:\d+Y)?(?:\d+M)?(?:\d+W)?(?:\d+D)?(?:T[\dHMS.]*)?", re.ASCII)
_SHORT_DURATION = re.compile(r"(\d{1,9})([smhd]?)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_INSTANT = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)


class Clock(Protocol):
    """A source of wall-clock time in milliseconds since the epoch that never goes backwards."""

    def now(self) -> int:
        """The present, in milliseconds since 1970-01-01T00:00:00Z."""
        ...

    def not_before(self, instant: int) -> None:
        """Makes `now()` return at least `instant` from now on.

        instant: milliseconds since the epoch, such as the instant of the last event in the store
        """
        ...


class SystemClock:
    """The machine's clock. If the machine's clock is set back, time continues at its usual pace.

    The time is the monotonic clock plus an offset: the largest difference between wall clock and
    monotonic clock so far. The offset only grows. The time therefore never goes back, follows the
    wall clock forward, and never stops, so leases and entries always expire.

    wall, monotonic: clocks in nanoseconds; tests inject their own
    """

    def __init__(
        self,
        wall: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._lock = Lock()
        self._ahead = wall() - monotonic()

    def now(self) -> int:
        # In this order, a pause between the two readings cannot put the time ahead of the wall
        # clock.
        wall = self._wall()
        monotonic = self._monotonic()
        if wall - monotonic > self._ahead:
            self._be_ahead(wall - monotonic)
        return (monotonic + self._ahead) // 1_000_000

    def not_before(self, instant: int) -> None:
        self._be_ahead(instant * 1_000_000 - self._monotonic())

    def _be_ahead(self, ahead: int) -> None:
        # Several threads read the time, and no thread may lower the offset that another has set.
        with self._lock:
            self._ahead = max(self._ahead, ahead)


_latest = (-1, "")
"""The instant that was formatted last, and its text: a busy server handles many requests within a
millisecond."""


def format_instant(milliseconds: int) -> str:
    """Milliseconds since the epoch as RFC 3339 text."""
    global _latest
    known, text = _latest
    if known != milliseconds:
        seconds, rest = divmod(milliseconds, 1000)
        text = f"{_format_second(seconds)}.{rest:03d}Z"
        _latest = (milliseconds, text)
    return text


@lru_cache(maxsize=64)
def _format_second(seconds: int) -> str:
    """RFC 3339 text up to the second. Nearly all instants lie in the present one."""
    moment = _EPOCH + timedelta(seconds=seconds)
    return moment.isoformat(timespec="seconds")[:-6]


def parse_instant(text: str) -> str:
    """RFC 3339 text with any offset, in the stored form. Raises ValueError for any other text."""
    # RFC 3339 section 5.6 allows `t` and `z`.
    text = text.upper()
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or "T" not in text:
        raise ValueError("an instant needs a date, a time and an offset")
    try:
        moment = moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("an instant lies between the years 1 and 9999") from error
    return moment.isoformat(timespec="milliseconds")[:-6] + "Z"


def instant_to_milliseconds(text: str) -> int:
    """An instant in the stored form as milliseconds since the epoch."""
    return round((datetime.fromisoformat(text) - _EPOCH) / timedelta(milliseconds=1))


def iso_duration(text: str) -> str:
    """A duration such as `60s`, `30m`, `12h`, `90d` or `60` (seconds) in ISO 8601; another text
    unchanged."""
    short = _SHORT_DURATION.fullmatch(text)
    if short is None:
        return text
    number, unit = short.groups()
    return f"P{number}D" if unit == "d" else f"PT{number}{unit.upper() or 'S'}"


def parse_duration(text: str, *, may_be_zero: bool = False) -> timedelta:
    """An ISO 8601 duration of weeks, days, hours, minutes and seconds, or a short form of one; see
    `iso_duration`.

    Years and months have no fixed length and are refused. Raises ValueError, whose text says what
    a duration must be.

    may_be_zero: whether the duration may be zero; default: false
    """
    text = iso_duration(text)
    match = _DURATION.fullmatch(text)
    if match is None:
        if _CALENDAR.fullmatch(text):
            raise ValueError("must not have years or months, whose lengths differ; give days")
        raise ValueError(
            "must be a duration such as `30m`, `12h` or `90d`, or an ISO 8601 duration of weeks,"
            " days, hours, minutes and seconds"
        )
    try:
        parts = {name: float(number) for name, number in match.groupdict(default="0").items()}
        duration = timedelta(**parts)
    except OverflowError as error:
        raise ValueError(f"must be at most {timedelta.max.days} days") from error
    if duration <= timedelta(0) and not may_be_zero:
        raise ValueError("must be longer than zero")
    return duration


def check_instant(field: str, text: str) -> str:
    """The instant in a field, in the stored form. Raises ValidationError with an example."""
    try:
        return parse_instant(text)
    except ValueError:
        raise ValidationError(
            f"`{field}` must be an RFC 3339 instant with an offset, such as 2026-11-01T00:00:00Z"
        ) from None


def check_duration(
    field: str, text: str, *, prefix: str = "", may_be_zero: bool = False
) -> timedelta:
    """The duration in a field. Raises ValidationError with an example.

    prefix: what comes before the duration in the text; default: nothing
    may_be_zero: whether the duration may be zero; default: false
    """
    try:
        if not text.startswith(prefix):
            raise ValueError(f"must begin with `{prefix}`")
        return parse_duration(text.removeprefix(prefix), may_be_zero=may_be_zero)
    except ValueError as error:
        raise ValidationError(
            f"`{field}` {error}, such as `{prefix}P30D` (30 days) or `{prefix}PT15M` (15 minutes)"
        ) from None


def after(now: int, duration: timedelta) -> str:
    """The instant `duration` after `now` (milliseconds since the epoch), in the stored form; at
    most the last instant of RFC 3339."""
    moment = _EPOCH + timedelta(milliseconds=now)
    moment = moment + duration if duration <= _LAST_INSTANT - moment else _LAST_INSTANT
    return moment.isoformat(timespec="milliseconds")[:-6] + "Z"
