"""The watchdog of the event loop: what it logs and counts."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest
import uvloop

from memorywall.records.principal import Principal, PrincipalKind
from memorywall.server.loop_watchdog import LONGEST, watch_loop
from memorywall.service.requests.operation_context import OperationCall
from memorywall.service.requests.request_statistics import LoopStatistics
from memorywall.wire.operations import OPERATIONS
from tests.support.service import RunningService

DEADLINE = 10.0
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


async def _hold(call: OperationCall) -> str:
    """Uses the processor for longer than a callback may."""
    until = time.thread_time() + 0.06
    while time.thread_time() < until:
        sum(range(1_000))
    return call.operation.name


@pytest.mark.parametrize("loop", LOOPS)
def test_a_long_callback_is_logged_with_its_operation(
    caplog: pytest.LogCaptureFixture, loop: str
) -> None:
    operation = next(one for one in OPERATIONS if one.name == "query_entries")
    principal = Principal(
        tenant="default", id="ada", kind=PrincipalKind.AGENT, permissions=frozenset()
    )
    statistics = LoopStatistics()

    async def main() -> None:
        with caplog.at_level(logging.WARNING, "memorywall.server"), watch_loop(statistics):
            # On a busy machine the watchdog's thread may not run during the first callbacks.
            async with asyncio.timeout(DEADLINE):
                while not statistics.held:
                    await asyncio.create_task(_hold(OperationCall(operation, principal)))
                    await asyncio.sleep(0.001)

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(main())
    (record,) = caplog.records
    assert vars(record)["operation"] == "query_entries"
    assert vars(record)["ms"] >= LONGEST * 1000
    assert statistics.held == 1
    assert LONGEST < statistics.longest < 1


def test_waiting_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A callback that waits, as on a busy machine, uses no processor time."""
    statistics = LoopStatistics()

    async def main() -> None:
        with caplog.at_level(logging.WARNING, "memorywall.server"), watch_loop(statistics):
            time.sleep(0.1)
            await asyncio.sleep(0.03)

    asyncio.run(main())
    assert not caplog.records
    assert statistics.held == 0


@pytest.mark.anyio
async def test_metrics_tell_the_longest_callback(service: RunningService) -> None:
    service.services.loop.observe(0.5, LONGEST)
    service.services.loop.observe(0.01, LONGEST)
    text = (await service.client().get("/metrics")).text
    assert "memorywall_loop_longest_callback_seconds 0.5" in text
    assert "memorywall_loop_held_total 1.0" in text
