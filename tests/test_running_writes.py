"""Searches give way to the short writes that run beside them."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memorywall.service.requests import running_writes
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.running_writes import RunningWrites
from memorywall.service.runner.operation_runner import run_write
from tests.recall.recall_service import agent, open_recall

pytestmark = pytest.mark.anyio

ADA = agent("ada")


class _Clock:
    """A clock that a test sets, in seconds."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_step_waits_until_no_write_is_running(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_writes, "_LONGEST_WAIT", 60.0)
    writes = RunningWrites()
    waiting = threading.Thread(target=writes.giving_way(), daemon=True)
    with writes:
        with writes:
            waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
    waiting.join(30)
    assert not waiting.is_alive()


def test_a_step_waits_for_a_limited_time_in_all_its_calls() -> None:
    clock, asked = _Clock(), 0

    def passing() -> float:
        nonlocal asked
        asked += 1
        clock.now += 0.004
        return clock.now

    writes = RunningWrites(passing)
    with writes:
        give_way = writes.giving_way()
        for _ in range(20):
            give_way()
    # Each call that waits asks the clock twice, and the end of the write once.
    assert asked == 2 * 3 + 1


def test_a_write_is_expected_while_one_runs_and_shortly_after() -> None:
    clock = _Clock()
    writes = RunningWrites(clock)
    assert not writes.are_expected
    with writes:
        clock.now += 10
        assert writes.are_expected
    clock.now += 0.9
    assert writes.are_expected
    clock.now += 0.2
    assert not writes.are_expected


@pytest.mark.parametrize("long", [False, True])
async def test_short_writes_count_while_they_run(tmp_path: Path, long: bool) -> None:
    async with open_recall(tmp_path) as recall:
        clock = _Clock()
        services = dataclasses.replace(recall.services, writes=RunningWrites(clock))
        counts = not long and services.settings.database_url is None

        async def look(context: OperationContext) -> bool:
            context.decide_by_row()
            return services.writes.are_expected

        async def fail(context: OperationContext) -> None:
            raise LookupError

        assert await run_write(services, ADA, look, long=long) is counts
        with pytest.raises(LookupError):
            await run_write(services, ADA, fail, long=long)
        clock.now += 2
        assert not services.writes.are_expected


async def test_steps_of_searches_run_in_a_thread_beside_writes(tmp_path: Path) -> None:
    async with open_recall(tmp_path) as recall:
        clock, here = _Clock(), threading.get_ident()
        services = dataclasses.replace(recall.services, writes=RunningWrites(clock))
        recall.index.services = services
        ran: list[tuple[int, bool]] = []

        def step(give_way: Callable[[], None]) -> None:
            give_way()
            ran.append((threading.get_ident(), services.writes.are_expected))

        await recall.index.in_turn(step, is_long=False)
        with services.writes:
            pass
        await recall.index.in_turn(step, is_long=False)
        clock.now += 2
        await recall.index.in_turn(step, is_long=False)
        await recall.index.in_turn(step, is_long=True)
    assert [thread == here for thread, _ in ran] == [True, False, True, False]
