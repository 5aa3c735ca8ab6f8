"""Many clients of several servers while the database behind them changes: what each was told and
how long it took."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from tests.history.anomalies import report
from tests.history.arena import Arena
from tests.history.budget import Budget
from tests.history.claim_scene import ClaimScene
from tests.history.claims import check_claims
from tests.history.cluster import Roamer
from tests.history.entries import check_entries
from tests.history.entry_scene import EntryScene
from tests.history.line import Reply, Request, Unanswered
from tests.history.record import Recorder
from tests.history.terms import RealTerms
from tests.history.writers import MEMORY

ONCE = "once"
WRITERS = ["crowd"] * 12 + [f"agent-{number:02}" for number in range(3) for _ in range(4)]
CLAIMANTS = [f"claimant-{number}" for number in range(8)]
CREATORS = [f"creator-{number}" for number in range(8)]
AGENTS = WRITERS + CLAIMANTS + CREATORS
_PATIENCE = 0.05
_LONGEST = 60.0
"""Seconds after which a create that is repeated again and again is given up."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its reply, in seconds of the machine's monotonic clock."""

    server: int
    is_read: bool
    begun: float
    ended: float
    status: int

    @property
    def took(self) -> float:
        return self.ended - self.begun


class TimedChannel(Roamer):
    """A way to the servers that takes the time. 503 is no answer: perhaps it was stored, perhaps
    not."""

    def __init__(
        self,
        arenas: Sequence[Arena],
        key: str,
        number: int,
        seed: int,
        moves: float,
        exchanges: list[Exchange],
    ) -> None:
        super().__init__(arenas, key, number, seed, moves)
        self._exchanges = exchanges

    async def exchange(self, request: Request) -> Reply:
        begun = time.monotonic()
        try:
            reply = await super().exchange(request)
        except Unanswered:
            raise AssertionError("a server closed a connection without a reply") from None
        self._exchanges.append(
            Exchange(self.server, request.method == "GET", begun, time.monotonic(), reply.status)
        )
        if reply.status >= 500:
            assert reply.status == 503, reply.body[:500]
            await asyncio.sleep(_PATIENCE)
            raise Unanswered
        return reply


class Creator:
    """Creates entries of ever new names, each with a key under which it is repeated until there is
    an answer."""

    def __init__(self, context: TimedChannel, agent: str) -> None:
        self._context = context
        self._agent = agent
        self.made: dict[str, str] = {}
        self.repeated = 0

    async def run(self, budget: Budget) -> None:
        """Works until nothing is left to do; the last is finished."""
        for number in itertools.count():
            if not budget.take():
                return
            name = f"{self._agent}-{number}"
            body = {
                "namespace": ONCE,
                "key": name,
                "memory_type": "working",
                "value": {"number": number},
            }
            self.made[name] = await self._create(
                Request("POST", MEMORY, body, idempotency_key=name)
            )

    async def _create(self, request: Request) -> str:
        deadline = time.monotonic() + _LONGEST
        while time.monotonic() < deadline:
            await self._context.ready()
            try:
                reply = await self._context.exchange(request)
            except Unanswered:
                self.repeated += 1
                continue
            # Another status would mean that it was done before and that this was forgotten.
            assert reply.status == 201, reply.body[:500]
            entry: str = msgspec.json.decode(reply.body)["id"]
            return entry
        raise AssertionError(f"no server came back in {_LONGEST:g} s")


class FailoverLoad:
    """All clients at once, and afterwards the verdict on what they were told.

    moves: how often a client goes to another server
    """

    def __init__(
        self, arenas: Sequence[Arena], keys: Sequence[str], seed: int, *, moves: float = 0.1
    ) -> None:
        self.exchanges: list[Exchange] = []
        self._recorder = Recorder()
        self._budget = Budget(10**9)
        self._channels = [
            TimedChannel(arenas, key, number, seed, moves, self.exchanges)
            for number, key in enumerate(keys)
        ]
        claiming, creating = len(WRITERS), len(WRITERS) + len(CLAIMANTS)
        self._entries = EntryScene(self._channels[:claiming], self._recorder, seed, WRITERS)
        self._claims = ClaimScene(
            self._channels[claiming:creating],
            self._recorder,
            RealTerms(),
            seed,
            agents=CLAIMANTS,
            number=claiming,
        )
        self.creators = [
            Creator(context, agent)
            for context, agent in zip(self._channels[creating:], CREATORS, strict=True)
        ]

    async def play(self) -> None:
        """Until `end` is called."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._entries.play(self._budget))
            group.create_task(self._claims.play(self._budget))
            for creator in self.creators:
                group.create_task(creator.run(self._budget))

    def end(self) -> None:
        self._budget.end()

    async def finish(self) -> None:
        """Looks at everything once more."""
        await self._entries.finish()
        await self._claims.finish()
        for context in self._channels:
            context.close()

    def judge(self, seed: int) -> str:
        """Holds the servers to what they said; the counts, for people."""
        history = self._recorder.history
        violations = check_entries(history) + check_claims(history)
        assert not violations, f"seed {seed}: {report(violations)}"
        return history.counts()
