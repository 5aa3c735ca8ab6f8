"""How a worker keeps its lease and judges its time, with a clock that is set."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from memorywall.exceptions import AuthenticationError, MemorywallError, UnavailableError
from memorywall.records.errors import FencedError, MemoryAccessError, ResourceNotFoundError
from memorywall.sdk.worker_lease import (
    InterruptGuard,
    LeaseState,
    WorkerStopped,
    keep,
    run_blocking,
)
from tests.support.workers import UNREACHABLE, Clock


def run_keeper(
    hold: LeaseState, clock: Clock, renew: Callable[[], Any], until: float, late: float = 0.0
) -> None:
    """Keeps a lease until an instant; every wait ends `late` seconds after it should."""

    def wait(seconds: float) -> bool:
        assert seconds > 0
        clock.now += seconds + late
        return clock.now >= until

    run_blocking(keep(hold, renew, wait))


def test_a_lease_is_renewed_at_half_its_time() -> None:
    clock = Clock()
    renewals: list[float] = []

    def renew() -> None:
        renewals.append(clock.now - 1_000)
        clock.now += 2  # The reply takes its time; the next half counts from before the question.

    hold = LeaseState(7, 30, clock.now, clock)
    run_keeper(hold, clock, renew, until=1_000 + 70)
    assert renewals == [15, 30, 45, 60]
    assert not hold.lost


def test_a_renewal_that_fails_is_tried_again_until_the_time_is_over() -> None:
    clock = Clock()
    attempts: list[float] = []

    def renew() -> None:
        attempts.append(clock.now - 1_000)
        raise UNREACHABLE

    hold = LeaseState(7, 30, clock.now, clock)
    run_keeper(hold, clock, renew, until=9_999)
    assert hold.lost
    assert clock.now == pytest.approx(1_030)
    assert attempts[0] == 15
    assert len(attempts) > 10
    assert all(later - earlier <= 1.0 for earlier, later in pairwise(attempts))


def test_a_renewal_that_works_after_some_that_failed_counts() -> None:
    clock = Clock()
    replies: list[Exception | None] = [UNREACHABLE, UnavailableError(), AuthenticationError(), None]

    def renew() -> None:
        reply = replies.pop(0) if replies else None
        if reply is not None:
            raise reply

    hold = LeaseState(7, 30, clock.now, clock)
    run_keeper(hold, clock, renew, until=1_040)
    assert not replies
    assert not hold.lost
    assert hold.left > 14


@pytest.mark.parametrize(
    "answer", [FencedError(), MemoryAccessError(), ResourceNotFoundError()], ids=lambda e: e.code
)
def test_ended_lease_is_lost_at_once(answer: MemorywallError) -> None:
    clock = Clock()
    asked: list[float] = []

    def renew() -> None:
        assert not asked, "it has been told already"
        asked.append(clock.now)
        raise answer

    hold = LeaseState(7, 30, clock.now, clock)
    run_keeper(hold, clock, renew, until=9_999)
    assert asked == [1_015]
    assert clock.now == 1_015
    assert hold.lost
    with pytest.raises(FencedError):
        hold.check()


def test_paused_worker_detects_its_expired_lease_without_a_request() -> None:
    clock = Clock()
    hold = LeaseState(7, 30, clock.now, clock)

    def renew() -> None:
        raise AssertionError("it must not ask for what is over")

    run_keeper(hold, clock, renew, until=9_999, late=60)
    assert hold.lost


def test_lost_claim_stays_lost() -> None:
    clock = Clock()
    hold = LeaseState(7, 30, clock.now, clock)
    clock.now += 29.9
    asked_at = clock.now
    lost = [hold.lost]
    clock.now += 0.1
    lost.append(hold.lost)
    hold.renewed(asked_at)
    lost.append(hold.lost)
    assert lost == [False, True, True]


def test_a_write_is_finished_before_anything_is_interrupted() -> None:
    gate = InterruptGuard()
    done: list[object] = []

    def work() -> None:
        with gate.opened():
            done.append(gate.is_open)
            with gate.writing():
                gate.stopping = True
                done.append(gate.is_open)
            done.append("not reached")

    with pytest.raises(WorkerStopped):
        work()
    assert done == [True, False]
    assert not gate.is_open
