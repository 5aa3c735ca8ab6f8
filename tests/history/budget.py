"""How much is to be done, shared by all clients, and who wants to know how far it has come."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable


class Budget:
    """A number of operations."""

    def __init__(self, operations: int) -> None:
        self.operations = operations
        self.begun = 0
        self._marks: list[tuple[int, asyncio.Event]] = []

    def take(self) -> bool:
        """Whether there is one more operation to do."""
        if self.begun >= self.operations:
            return False
        self.begun += 1
        while self._marks and self._marks[0][0] <= self.begun:
            self._marks.pop(0)[1].set()
        return True

    def end(self) -> None:
        """Nothing is left to do."""
        self.operations = self.begun

    async def reached(self, count: int) -> None:
        """Comes back when so many operations have been begun."""
        if count > self.begun:
            event = asyncio.Event()
            self._marks.append((count, event))
            self._marks.sort(key=lambda mark: mark[0])
            await event.wait()

    def moments(self, count: int, chance: random.Random) -> list[int]:
        """So many moments in it, one in each of as many equal parts."""
        part = self.operations / count
        return [int((number + chance.uniform(0.1, 0.9)) * part) for number in range(count)]


async def disturb(budget: Budget, moments: list[int], act: Callable[[], Awaitable[None]]) -> None:
    """Does something at each of these moments."""
    for moment in moments:
        await budget.reached(moment)
        await act()
