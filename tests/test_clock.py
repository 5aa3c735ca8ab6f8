"""Time: instants, durations, and a clock that goes on whatever is done to the machine's."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorywall.records.clock import (
    SystemClock,
    after,
    format_instant,
    instant_to_milliseconds,
    parse_duration,
    parse_instant,
)
from tests.support.service import START

_LAST = 253_402_300_799_999
_HOUR = 3_600_000
_instants = st.integers(0, _LAST)


# Instants


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (999, "1970-01-01T00:00:00.999Z"),
        (1_770_544_800_000, "2026-02-08T10:00:00.000Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (_LAST, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_an_instant_has_one_text(milliseconds: int, text: str) -> None:
    assert format_instant(milliseconds) == text
    assert instant_to_milliseconds(text) == milliseconds
    assert parse_instant(text) == text


@given(_instants, _instants)
def test_texts_sort_as_instants_compare(one: int, other: int) -> None:
    first, second = format_instant(one), format_instant(other)
    assert (first < second) == (one < other)
    assert instant_to_milliseconds(first) == one
    assert len(first) == 24


@given(
    st.datetimes(
        min_value=datetime(2, 1, 1),  # noqa: DTZ001 - Hypothesis wants it so
        max_value=datetime(9998, 12, 31),  # noqa: DTZ001
        timezones=st.timezones() | st.just(UTC),
    )
)
def test_any_offset_comes_to_the_same_instant(moment: datetime) -> None:
    text = parse_instant(moment.isoformat())
    exact = moment.astimezone(UTC)
    assert datetime.fromisoformat(text) == exact.replace(
        microsecond=exact.microsecond // 1000 * 1000
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-02-08T10:00:00Z", "2026-02-08T10:00:00.000Z"),
        ("2026-02-08T12:00:00+02:00", "2026-02-08T10:00:00.000Z"),
        ("2026-02-07T22:30:00-11:30", "2026-02-08T10:00:00.000Z"),
        ("2026-02-08T10:00:00-00:00", "2026-02-08T10:00:00.000Z"),
        ("2026-02-08T10:00:00.5Z", "2026-02-08T10:00:00.500Z"),
        ("2026-02-08T10:00:00.123999Z", "2026-02-08T10:00:00.123Z"),
        ("2026-02-08t10:00:00z", "2026-02-08T10:00:00.000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"),
    ],
)
def test_an_instant_is_read_in_any_rfc_3339_form(text: str, expected: str) -> None:
    assert parse_instant(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-02-08",
        "10:00:00Z",
        "2026-02-08T10:00:00",
        "2026-02-08 10:00:00Z",
        "2026-02-30T10:00:00Z",
        "2026-13-01T10:00:00Z",
        "2026-02-08T25:00:00Z",
        "2026-02-08T10:60:00Z",
        "2026-02-08T10:00:00+25:00",
        "2025-02-29T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        " 2026-02-08T10:00:00Z",
        "2026-02-08T10:00:00Z\n",
        "2026-02-08T10:00:00Z and more",
        "\u0662026-02-08T10:00:00Z",
        "1770544800",
    ],
)
def test_invalid_instant_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_instant(text)


# Durations


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT1S", timedelta(seconds=1)),
        ("PT0.5S", timedelta(milliseconds=500)),
        ("PT90M", timedelta(minutes=90)),
        ("PT36H", timedelta(hours=36)),
        ("P7D", timedelta(days=7)),
        ("P2W", timedelta(weeks=2)),
        ("P1W2DT3H4M5.25S", timedelta(weeks=1, days=2, hours=3, minutes=4, seconds=5.25)),
        ("P0DT1S", timedelta(seconds=1)),
        ("P007D", timedelta(days=7)),
        ("P1DT0S", timedelta(days=1)),
    ],
)
def test_a_duration_is_read(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "P", "PT", "P1DT", "T1H", "1D", "P1", "PT1", "P1Y", "P1M", "P1Y2M3D", "P-1D", "-P1D",
        "+P1D", "P+1D", "p1d", "PT1M1H", "P1D1W", "PT1D", "P1H", "P1.5D", "PT1.5H", "PT.5S",
        "PT1.S", "PT1,5S", "P1 D", " P1D", "P1D ", "P1D\n", "P\u0661D", "P\uff11D", "P1D2D",
        "P0D", "PT0S", "PT0.0S", "P99999999999D", "PT" + "9" * 400 + "S", "PTinfS", "PTnanS",
    ],
)  # fmt: skip
def test_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_duration(text)


@given(
    st.integers(0, 9), st.integers(0, 99), st.integers(0, 99), st.integers(0, 99),
    st.integers(1, 99_999),
)  # fmt: skip
def test_the_parts_of_a_duration_add_up(
    weeks: int, days: int, hours: int, minutes: int, milliseconds: int
) -> None:
    text = f"P{weeks}W{days}DT{hours}H{minutes}M{milliseconds / 1000}S"
    expected = timedelta(
        weeks=weeks, days=days, hours=hours, minutes=minutes, milliseconds=milliseconds
    )
    assert parse_duration(text) == expected


def test_after_adds_and_stops_at_the_last_instant() -> None:
    assert after(0, timedelta(milliseconds=1)) == "1970-01-01T00:00:00.001Z"
    assert after(START, timedelta(days=1)) == format_instant(START + 86_400_000)
    last = "9999-12-31T23:59:59.999Z"
    assert after(_LAST - 1, timedelta(milliseconds=1)) == last
    assert after(_LAST, timedelta(milliseconds=1)) == last
    assert after(0, timedelta.max) == last
    assert after(START, parse_duration("P400000W")) == format_instant(
        START + 400_000 * 7 * 86_400_000
    )
    assert after(START, parse_duration("P99999999W")) == last


@given(_instants, st.timedeltas(min_value=timedelta(milliseconds=1)))
def test_after_is_never_before(now: int, duration: timedelta) -> None:
    assert format_instant(now) <= after(now, duration) <= "9999-12-31T23:59:59.999Z"


# The clock


@dataclass
class _Machine:
    """Its two clocks, in nanoseconds: one that can be set, and one that only ever goes on."""

    wall: int = START * 1_000_000
    monotonic: int = 5_000_000_000_000

    def clock(self) -> SystemClock:
        return SystemClock(lambda: self.wall, lambda: self.monotonic)

    def go_on(self, milliseconds: float) -> None:
        self.wall += round(milliseconds * 1_000_000)
        self.monotonic += round(milliseconds * 1_000_000)

    def sleep(self, milliseconds: float) -> None:
        """While a machine is suspended its monotonic clock stands still; the other goes on."""
        self.wall += round(milliseconds * 1_000_000)

    def set_by(self, milliseconds: float) -> None:
        self.wall += round(milliseconds * 1_000_000)


def test_the_clock_goes_with_the_machines() -> None:
    machine = _Machine()
    clock = machine.clock()
    told = []
    for step in (0, 0.4, 0.599_999, 0.000_001, 999, _HOUR):
        machine.go_on(step)
        told.append(clock.now() - START)
    assert told == [0, 0, 0, 1, 1_000, _HOUR + 1_000]


def test_the_clock_follows_the_machines_forward() -> None:
    machine = _Machine()
    clock = machine.clock()
    machine.set_by(_HOUR)
    assert clock.now() == START + _HOUR
    machine.go_on(10)
    assert clock.now() == START + _HOUR + 10
    machine.sleep(5 * _HOUR)
    assert clock.now() == START + 6 * _HOUR + 10


def test_clock_continues_while_the_machine_clock_is_behind() -> None:
    """A clock that stood still until the machine's had caught up would end no lease meanwhile."""
    machine = _Machine()
    clock = machine.clock()
    machine.set_by(-_HOUR)
    told = []
    for _ in range(4):
        told.append(clock.now() - START)
        machine.go_on(20 * 60_000)
    assert told == [0, 20 * 60_000, 40 * 60_000, _HOUR]


def test_clock_continues_after_a_jump_ahead_and_back() -> None:
    machine = _Machine()
    clock = machine.clock()
    machine.go_on(1_000)
    machine.set_by(_HOUR)
    assert clock.now() == START + _HOUR + 1_000
    machine.set_by(-_HOUR)
    assert clock.now() == START + _HOUR + 1_000
    machine.go_on(30_000)
    assert clock.now() == START + _HOUR + 31_000
    machine.go_on(2 * _HOUR)
    assert clock.now() == START + 3 * _HOUR + 31_000
    machine.set_by(_HOUR + 1)
    assert clock.now() == START + 3 * _HOUR + 31_001


def test_a_jump_that_nobody_looked_at_has_not_been() -> None:
    machine = _Machine()
    clock = machine.clock()
    machine.set_by(_HOUR)
    machine.set_by(-_HOUR)
    assert clock.now() == START


def test_setting_back_again_and_again_does_not_add_up() -> None:
    machine = _Machine()
    clock = machine.clock()
    for _ in range(1_000):
        for change in (-7, 7):
            machine.set_by(change)
            clock.now()
    assert clock.now() == START


def test_clock_stops_when_both_machine_clocks_stop() -> None:
    clock = _Machine().clock()
    assert {clock.now() for _ in range(100)} == {START}


def test_clock_continues_from_the_last_stored_instant() -> None:
    machine = _Machine()
    clock = machine.clock()
    clock.not_before(START - 500)
    assert clock.now() == START
    clock.not_before(START + 7_000)
    clock.not_before(START + 6_000)
    assert clock.now() == START + 7_000
    machine.go_on(0.999_999)
    assert clock.now() == START + 7_000
    machine.go_on(0.000_001)
    assert clock.now() == START + 7_001
    machine.go_on(60_000)
    assert clock.now() == START + 67_001
    machine.set_by(7_001)
    assert clock.now() == START + 67_002
    clock.not_before(START + 67_001)
    assert clock.now() == START + 67_002


_steps = st.tuples(
    st.sampled_from(["go on", "set", "sleep", "not before"]), st.integers(-2 * _HOUR, 2 * _HOUR)
)


@given(st.lists(_steps, max_size=60))
def test_the_clock_never_goes_back_nor_slower_than_time_nor_behind_the_machines(
    steps: list[tuple[str, int]],
) -> None:
    machine = _Machine()
    clock = machine.clock()
    told, seen = clock.now(), machine.monotonic
    for what, number in steps:
        least = 0
        if what == "go on":
            machine.go_on(abs(number) / 7)
        elif what == "sleep":
            machine.sleep(abs(number))
        elif what == "set":
            machine.set_by(number)
        else:
            least = told + number
            clock.not_before(least)
        now = clock.now()
        # Milliseconds are cut off, so one may be told a part of a millisecond late.
        passed = (machine.monotonic - seen) // 1_000_000
        assert now >= told + passed
        assert now >= max(machine.wall // 1_000_000, least)
        ahead = max(machine.wall // 1_000_000, least, told + passed + 1)
        assert now <= ahead
        told, seen = now, machine.monotonic


@pytest.mark.parametrize("paused_at", ["wall", "monotonic"])
def test_what_a_thread_saw_before_a_pause_undoes_nothing(paused_at: str) -> None:
    machine = _Machine()
    looked, may_go_on = threading.Event(), threading.Event()

    def reading_of(name: str) -> int:
        reading = machine.wall if name == "wall" else machine.monotonic
        if name == paused_at and threading.current_thread() is slow:
            looked.set()
            assert may_go_on.wait(20)
        return reading

    slow = threading.Thread(target=lambda: told.append(clock.now()))
    told: list[int] = []
    clock = SystemClock(lambda: reading_of("wall"), lambda: reading_of("monotonic"))
    machine.set_by(10)
    slow.start()
    assert looked.wait(20)
    machine.set_by(_HOUR)
    assert clock.now() == START + _HOUR + 10
    machine.set_by(-_HOUR)
    may_go_on.set()
    slow.join(20)
    assert clock.now() == told[0] == START + _HOUR + 10


def test_the_clock_tells_the_present() -> None:
    """The machine's own, unless others are given."""
    before = time.time_ns() // 1_000_000
    clock = SystemClock()
    told = [clock.now() for _ in range(1_000)]
    assert before <= told[0]
    assert told == sorted(told)
    assert told[-1] <= time.time_ns() // 1_000_000
