"""Ids, names, access and the nouns of work: those that have rules of their own."""

from __future__ import annotations

import itertools
import random
import re
import unicodedata
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorywall.records.clock import format_instant
from memorywall.records.coordinator import Guardrails
from memorywall.records.identifiers import IdSource, is_clean
from memorywall.records.intent import IntentGrant
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.namespace import Access
from memorywall.records.task import TERMINAL_STATUSES, TRANSITIONS, Assignment, Task, TaskStatus
from tests.support.service import START, TestClock

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


def test_ids_increase_after_the_clock_is_set_back() -> None:
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
        # Joiners within words of Persian, Hindi and Sinhala, and within sequences of emoji.
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0915\u094d\u200d\u0937",
        "\u0dc1\u0dca\u200d\u0dbb\u0dd3", "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001f469\U0001f3fd\u200d\U0001f52c", "\u2764\ufe0f\u200d\U0001f525",
        # Variation selectors that choose a style, an ideograph and a Mongolian letter.
        "\u2764\ufe0f", "\u2194\ufe0e", "1\ufe0f\u20e3", "\u2139\ufe0f", "\u845b\U000e0100",
        "\u182d\u180b",
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
        "a\ufe0fb",
        "1\ufe0f",
        "+\ufe0f",
        "a\ufe00",
        "\u845b\ufe0f",
        "a\U000e0100",
        "\u180b\u1820",
        "^\u200d\U0001f525",
        "\U0001f468\u200d",
        "\U0001f468\u200ca",
        "a\u2800",
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
    blank = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0x1D159}
    # Variation selectors mean nothing after this letter.
    blank.update((0x180B, 0x180C, 0x180D, 0x180F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
    wrong = [
        hex(point)
        for point in range(0x110000)
        if is_clean(f"a{chr(point)}b", 9)
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


# Tasks

_OPEN = set(TaskStatus) - TERMINAL_STATUSES
_NOW = format_instant(START)


def _task(status: TaskStatus = TaskStatus.READY, *assignments: Assignment) -> Task:
    return Task(
        tenant="acme",
        id="task_1",
        intent_id="int_1",
        name="post",
        status=status,
        assignments=assignments,
        created_by="ada",
        created_at=_NOW,
        updated_at=_NOW,
    )


def _reachable(status: TaskStatus) -> set[TaskStatus]:
    """Where a task can come to from a state, in any number of steps."""
    found: set[TaskStatus] = set()
    ahead = [status]
    while ahead:
        new = TRANSITIONS[ahead.pop()] - found
        found |= new
        ahead.extend(new)
    return found


def test_task_can_continue_from_every_state_but_three() -> None:
    assert set(TRANSITIONS) == set(TaskStatus)
    last = {status for status in TaskStatus if not TRANSITIONS[status]}
    assert last == {TaskStatus.COMPLETED, TaskStatus.CANCELLED, TaskStatus.SKIPPED}
    assert last | {TaskStatus.FAILED} == TERMINAL_STATUSES


@pytest.mark.parametrize("status", list(TaskStatus))
def test_no_state_follows_itself_and_none_comes_before_the_first(status: TaskStatus) -> None:
    assert status not in TRANSITIONS[status]
    assert TaskStatus.PENDING not in TRANSITIONS[status]


@pytest.mark.parametrize("status", sorted(_OPEN))
def test_an_open_task_can_come_to_every_end_and_be_cancelled_at_once(status: TaskStatus) -> None:
    assert _reachable(status) >= TERMINAL_STATUSES | (_OPEN - {TaskStatus.PENDING})
    assert TaskStatus.CANCELLED in TRANSITIONS[status]


def test_failed_step_restarts_or_ends() -> None:
    assert TRANSITIONS[TaskStatus.FAILED] == {TaskStatus.READY}


def test_only_claimed_tasks_have_a_result() -> None:
    def before(status: TaskStatus) -> set[TaskStatus]:
        return {one for one in TaskStatus if status in TRANSITIONS[one]}

    taken = {TaskStatus.CLAIMED, TaskStatus.RUNNING}
    assert before(TaskStatus.COMPLETED) == taken
    assert before(TaskStatus.FAILED) == taken | {TaskStatus.BLOCKED}
    assert before(TaskStatus.RUNNING) == {TaskStatus.CLAIMED, TaskStatus.BLOCKED}
    assert taken.isdisjoint(before(TaskStatus.SKIPPED))


@pytest.mark.parametrize("status", list(TaskStatus))
def test_a_task_is_over_or_under_way_by_its_state(status: TaskStatus) -> None:
    words = {"completed", "failed", "cancelled", "skipped"}
    assert _task(status).is_terminal is (status.value in words)
    assert _task(status).is_under_way is (status.value in {"claimed", "running", "blocked"})


def test_a_task_is_accepted_by_who_has_it_now() -> None:
    def time_with_it(accepted: bool, ended: bool) -> Assignment:
        return Assignment(
            agent_id="ada",
            assigned_by="grace",
            assigned_at=_NOW,
            accepted_at=_NOW if accepted else None,
            ended_at=_NOW if ended else None,
        )

    assert not _task().is_accepted
    for before, accepted, ended in itertools.product((False, True), repeat=3):
        history = [time_with_it(True, True)] if before else []
        task = _task(TaskStatus.RUNNING, *history, time_with_it(accepted, ended))
        assert task.is_accepted is (accepted and not ended)


# Guardrails


@pytest.mark.parametrize(
    ("allowed", "denied", "admitted"),
    [
        (None, None, {"tax", "tax/2026", "taxes", "law"}),
        ((), None, set[str]()),
        (None, (), {"tax", "tax/2026", "taxes", "law"}),
        (("tax",), None, {"tax"}),
        (("tax*",), None, {"tax", "tax/2026", "taxes"}),
        (("tax/*",), None, {"tax/2026"}),
        (("tax/*", "law"), None, {"tax/2026", "law"}),
        (("*",), None, {"tax", "tax/2026", "taxes", "law"}),
        (None, ("tax/*",), {"tax", "taxes", "law"}),
        (None, ("*",), set[str]()),
        (("tax*",), ("tax/*",), {"tax", "taxes"}),
        (("tax",), ("tax",), set[str]()),
        (("tax",), ("*",), set[str]()),
        (("*",), ("law",), {"tax", "tax/2026", "taxes"}),
        (("Tax*", "t?x", "[tl]aw", "t*x", "ta", ".*", ""), None, set[str]()),
        (None, ("Tax*", "t?x", "[tl]aw", "t*x", "ta", ".*", ""), {"tax", "tax/2026", "taxes",
                                                                  "law"}),
    ],
)  # fmt: skip
def test_guardrails_admit_allowed_and_not_denied_namespaces(
    allowed: tuple[str, ...] | None, denied: tuple[str, ...] | None, admitted: set[str]
) -> None:
    guardrails = Guardrails(allowed_semantic_namespaces=allowed, denied_semantic_namespaces=denied)
    names = {"tax", "tax/2026", "taxes", "law"}
    assert {name for name in names if guardrails.admits(name)} == admitted


_names = st.text("ab/", min_size=1, max_size=4)
_patterns = st.lists(st.builds(str.__add__, _names, st.sampled_from(["", "*"])), max_size=4)


@given(_names, st.none() | _patterns, _patterns)
def test_a_denial_wins_whatever_is_allowed(
    name: str, allowed: list[str] | None, denied: list[str]
) -> None:
    def fits(patterns: list[str]) -> bool:
        texts = (re.escape(one).replace(r"\*", ".*") for one in patterns)
        return any(re.fullmatch(text, name) for text in texts)

    guardrails = Guardrails(
        allowed_semantic_namespaces=None if allowed is None else tuple(allowed),
        denied_semantic_namespaces=tuple(denied),
    )
    expected = not fits(denied) and (allowed is None or fits(allowed))
    assert guardrails.admits(name) is expected


def test_guardrails_that_say_nothing_ask_for_an_archive_and_bound_nothing() -> None:
    silent = msgspec.convert({}, Guardrails)
    assert silent == Guardrails()
    assert silent.memory_archive_required
    assert silent.max_working_memory_per_task is None
    assert silent.max_episodic_memory_per_agent is None
    assert silent.admits("anything")


# What ends by itself


@pytest.mark.parametrize(("passed", "expected"), [(-1, True), (0, False), (1, False)])
def test_what_ends_has_ended_at_its_end(passed: int, expected: bool) -> None:
    now = format_instant(START + passed)
    for kind in LeaseKind:
        lease = Lease(
            tenant="acme",
            id="lse_1",
            kind=kind,
            parent="int_1",
            name="",
            holder="ada",
            acquired_at=format_instant(START - 1_000),
            renewed_at=format_instant(START - 1_000),
            expires_at=_NOW,
        )
        assert lease.is_live(now) is expected
    line = IntentGrant(
        tenant="acme",
        intent_id="int_1",
        id="acl_1",
        principal_id="ada",
        access=Access.READ,
        granted_by="grace",
        granted_at=format_instant(START - 1_000),
        expires_at=_NOW,
    )
    assert line.is_active(now) is expected
    assert msgspec.structs.replace(line, expires_at=None).is_active(now)


@pytest.mark.parametrize(
    ("name", "is_allowed"),
    [
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", True),
        ("\u0915\u094d\u200d\u0937", True),
        ("\u0915\u094d\u200c\u0937", True),
        ("na\u200cme", False),
        ("na\u200dme", False),
        ("\u200c\u0645\u06cc", False),
        ("\u0645\u06cc\u200c", False),
        ("\u0645\u06cc\u200c\u200c\u062e", False),
        ("\u0645\u06cc\u200c x", False),
        ("\u0645\u06cc\u200b\u062e", False),
        ("\u0645\u06cc\u202e\u062e", False),
    ],
)
def test_joiners_are_allowed_only_where_a_script_needs_them(name: str, is_allowed: bool) -> None:
    assert is_clean(name, 64) is is_allowed
