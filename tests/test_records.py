"""Time, durations, ids and names: the nouns that have rules of their own."""

from __future__ import annotations

import itertools
import random
import time
import unicodedata
from collections.abc import Iterator
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
from memorywall.records.identifiers import IdSource, is_clean
from memorywall.records.namespace import Access
from tests.support.house import START, TestClock

_LAST = 253_402_300_799_999
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
def test_what_is_no_instant_is_refused(text: str) -> None:
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
def test_what_is_no_duration_is_refused(text: str) -> None:
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


def test_the_clock_goes_with_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([5_000_000_000, 5_000_999_999, 5_001_000_000, 9_000_000_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(readings))
    clock = SystemClock()
    assert [clock.now() for _ in range(4)] == [5_000, 5_000, 5_001, 9_000]


def test_the_clock_stands_still_while_the_machines_is_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings = iter([9_000, 3_000, 8_999, 9_001, 100])
    monkeypatch.setattr(time, "time_ns", lambda: next(readings) * 1_000_000)
    clock = SystemClock()
    assert [clock.now() for _ in range(5)] == [9_000, 9_000, 9_000, 9_001, 9_001]


def test_the_clock_goes_on_from_what_the_store_has_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_000 * 1_000_000)
    clock = SystemClock()
    clock.not_before(500)
    assert clock.now() == 1_000
    clock.not_before(7_000)
    clock.not_before(6_000)
    assert clock.now() == 7_000


def test_the_clock_tells_the_present() -> None:
    before = time.time_ns() // 1_000_000
    told = SystemClock().now()
    assert before <= told <= time.time_ns() // 1_000_000


# Ids


class _SteppingClock:
    """Tells a given series of readings, then stays at the last."""

    def __init__(self, *readings: int) -> None:
        self._readings = iter(readings)
        self._latest = 0

    def now(self) -> int:
        self._latest = next(self._readings, self._latest)
        return self._latest

    def not_before(self, instant: int) -> None:
        raise NotImplementedError


_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def _milliseconds_in(text: str) -> int:
    """The time that an id carries: its first ten digits of base 32."""
    number = 0
    for digit in text.rpartition("_")[2][:10]:
        number = number * 32 + _ALPHABET.index(digit)
    return number


def test_an_id_is_a_ulid_behind_its_prefix() -> None:
    made = IdSource(TestClock()).next("mem")
    prefix, _, digits = made.partition("_")
    assert prefix == "mem"
    assert len(digits) == 26
    assert set(digits) <= set(_ALPHABET)
    assert _milliseconds_in(made) == START


def test_the_digits_are_those_of_time_and_randomness() -> None:
    assert IdSource(TestClock(1), lambda bits: 0).next("x") == "x_" + "0000000001" + "0" * 16
    assert (
        IdSource(TestClock(32), lambda bits: 33).next("x") == "x_" + "0000000010" + "0" * 14 + "11"
    )


def test_ids_sort_and_differ_under_a_standing_clock() -> None:
    source = IdSource(TestClock())
    ids = [source.next("mem") for _ in range(100_000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert {_milliseconds_in(one) for one in ids} == {START}


@pytest.mark.parametrize("most", [True, False], ids=["all ones", "all zeros"])
def test_ids_sort_and_differ_whatever_the_randomness(most: bool) -> None:
    source = IdSource(TestClock(), lambda bits: (1 << bits) - 1 if most else 0)
    ids = [source.next("mem") for _ in range(10_000)]
    assert all(earlier < later for earlier, later in itertools.pairwise(ids))
    assert {_milliseconds_in(one) for one in ids} == {START}


def test_ids_go_on_after_a_clock_that_is_set_back() -> None:
    source = IdSource(_SteppingClock(START, START - 3_600_000, START - 1, START, START + 1))
    ids = [source.next("mem") for _ in range(5)]
    assert all(earlier < later for earlier, later in itertools.pairwise(ids))
    assert _milliseconds_in(ids[2]) == START
    assert _milliseconds_in(ids[4]) == START + 1


@given(st.lists(st.integers(0, 2**48 - 1), min_size=2, max_size=50), st.integers(0))
def test_ids_sort_and_differ_whatever_the_clock_tells(readings: list[int], seed: int) -> None:
    source = IdSource(_SteppingClock(*readings), random.Random(seed).getrandbits)
    ids = [source.next("mem") for _ in readings]
    assert all(earlier < later for earlier, later in itertools.pairwise(ids))


def test_two_sources_at_one_moment_make_different_ids() -> None:
    sources = [IdSource(TestClock()) for _ in range(1_000)]
    assert len({source.next("mem") for source in sources}) == 1_000


# Names


@pytest.mark.parametrize(
    "text",
    [
        "a", "A b", "invoices/2026-02", "caf\u00e9", "cafe\u0301", "\u6771\u4eac", "\u05d0\u05d1",
        "\U0001f44d", "\U0001f44d\U0001f3fd", "%_*?", "'\"\\", "{}", "a" * 9 + "z",
    ],
)  # fmt: skip
def test_a_name_people_write_is_clean(text: str) -> None:
    assert is_clean(text, 256)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        " a",
        "a ",
        "a\u3000",
        "a\x00b",
        "\x00",
        "a\nb",
        "a\tb",
        "a\x7fb",
        "a\x85b",
        "a\u00a0b",
        "a\u00adb",
        "a\u200bb",
        "a\u200cb",
        "a\u200db",
        "a\u200eb",
        "a\u202eb",
        "a\u2028b",
        "a\u2060b",
        "a\u2066b",
        "a\ufeffb",
        "a\ud800b",
        "a\ue000b",
        "a\ufffeb",
        "a\U000e0041b",
        "a\u034fb",
        "a\u115fb",
        "a\u3164b",
        "a\uffa0b",
        "a\U0010ffffb",
    ],
    ids=ascii,
)
def test_a_name_that_hides_something_is_not_clean(text: str) -> None:
    assert not is_clean(text, 256)


def test_every_character_is_clean_or_not_by_its_category() -> None:
    hidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
    # A joiner, the Hangul fillers and two Khmer vowels are letters and marks that nobody can see.
    blank = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0}
    wrong = [
        hex(point)
        for point in range(0x110000)
        if is_clean(f"a{chr(point)}b", 3)
        != (
            point == 0x20 or (unicodedata.category(chr(point)) not in hidden and point not in blank)
        )
    ]
    assert wrong == []


def _lengths() -> Iterator[tuple[int, int, bool]]:
    for longest in (1, 2, 128, 512):
        for length in (0, 1, longest - 1, longest, longest + 1, 10 * longest):
            yield length, longest, 0 < length <= longest


@pytest.mark.parametrize(("length", "longest", "expected"), list(_lengths()))
def test_a_name_is_as_long_as_it_may_be(length: int, longest: int, expected: bool) -> None:
    assert is_clean("\U0001f44d" * length, longest) is expected


# Access


def test_each_level_of_access_holds_the_ones_before_it() -> None:
    rising = [Access.NONE, Access.READ, Access.WRITE, Access.ADMIN]
    assert set(rising) == set(Access)
    for (place, level), (other, needed) in itertools.product(enumerate(rising), repeat=2):
        assert level.covers(needed) is (place >= other)
