"""When a claim ends, told in the time of the history.

A server process has the same clock as its clients, so a claim that was taken between two moments
ends its term after those two. Where the test sets the clock, it may end earlier, at the setting
that goes past its end.
"""

from __future__ import annotations

import asyncio
import itertools
import time

from memorywall.records.clock import SystemClock, instant_to_milliseconds
from tests.history.claimants import TTL, ClaimReply
from tests.history.record import NEVER, ClaimOperation

_TERM = TTL * 1_000_000_000
# The server's instants are cut to milliseconds, and it may be a little ahead after a restart.
_EARLY = 2_000_000
_LATE = 100_000_000


class RealTerms:
    """For a server on this machine."""

    def begun(self, operation: ClaimOperation) -> None:
        operation.held_until = operation.invoked + _TERM - _EARLY

    def answered(self, operation: ClaimOperation, claim: ClaimReply) -> None:
        operation.lapsed_by = operation.returned + _TERM + _LATE
        end, begin = map(instant_to_milliseconds, (claim.expires_at, claim.renewed_at))
        assert end - begin == TTL * 1_000, f"a claim for {end - begin} ms instead of {TTL} s"

    async def outlast(self, claim: ClaimReply | None) -> None:
        # There is no other way to see a term end than to let it.
        await asyncio.sleep(TTL + 0.12)


class Machine:
    """A machine whose clock people set forward and back, and the clock of a server on it.

    Time passes on the server's clock as it does in the history, and leaps whenever the machine's
    clock is set further forward than it has ever been.
    """

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()
        self.ahead = self._offset
        self.settings = [(0, 0, self.ahead)]
        self.settings_back = 0
        self.clock = SystemClock(self._wall, time.monotonic_ns)

    def _wall(self) -> int:
        return time.monotonic_ns() + self._offset

    def set_forward(self, milliseconds: int) -> None:
        """Past the furthest setting so far."""
        before = time.monotonic_ns()
        self._offset = self.ahead = self.ahead + milliseconds * 1_000_000
        # Read once, so that it is noticed even if it is set back at once.
        self.clock.now()
        self.settings.append((before, time.monotonic_ns(), self.ahead))

    def set_back(self, milliseconds: int) -> None:
        """The server's clock does not follow."""
        self._offset -= milliseconds * 1_000_000
        self.settings_back += 1

    def moment_of(self, instant: int) -> tuple[int, int]:
        """Between which moments of the history the server's clock reached an instant."""
        for (before, after, ahead), following in itertools.pairwise(
            [*self.settings, (NEVER, NEVER, self.ahead)]
        ):
            moment = instant * 1_000_000 - ahead
            if moment < following[0]:
                return max(moment, before), max(moment, after) + _LATE
        return NEVER, NEVER


class SetTerms:
    """For a server in this process, on a machine whose clock is set."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._given: list[tuple[ClaimOperation, int]] = []

    def begun(self, operation: ClaimOperation) -> None:
        # Every operation is answered, and `settle` knows the rest.
        operation.held_until = NEVER

    def answered(self, operation: ClaimOperation, claim: ClaimReply) -> None:
        self._given.append((operation, instant_to_milliseconds(claim.expires_at)))

    async def outlast(self, claim: ClaimReply | None) -> None:
        if claim is None:
            self._machine.set_forward(TTL * 1_000 + 1)
            return
        end = instant_to_milliseconds(claim.expires_at)
        async with asyncio.timeout(60):
            while self._machine.clock.now() < end:
                await asyncio.sleep(0.005)

    def settle(self) -> None:
        """Once all is over: when each claim ended."""
        for operation, end in self._given:
            operation.held_until, operation.lapsed_by = self._machine.moment_of(end)
