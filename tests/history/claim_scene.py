"""All clients of a test of claims: who they are, what they want, and how it is judged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.history.anomalies import report
from tests.history.budget import Budget
from tests.history.claimants import (
    GLOBAL,
    Claimant,
    ClaimCaller,
    Terms,
    Tokens,
    finish,
)
from tests.history.claims import check_claims, holds_of
from tests.history.entries import check_entries
from tests.history.line import Channel
from tests.history.record import (
    ClaimOperation,
    History,
    Kind,
    Operation,
    Outcome,
    Recorder,
)
from tests.history.writers import EntryCaller, Known, Spot

AGENTS = [f"agent-{number:02}" for number in range(16)]
CLIENTS = [agent for agent in AGENTS for _ in range(4)]
SPOTS = [Spot("shared", GLOBAL, f"ticket-{number}") for number in range(6)]


class ClaimScene:
    """All clients of one test.

    agents: the agent of each client
    number: of the first client; no two in a history have the same
    """

    def __init__(
        self,
        channels: Sequence[Channel],
        recorder: Recorder,
        terms: Terms,
        seed: int,
        *,
        agents: Sequence[str] = CLIENTS,
        number: int = 0,
    ) -> None:
        self._known = Known()
        self._terms = terms
        tokens = Tokens()
        self._callers = [
            (
                ClaimCaller(context, recorder, terms, agent, number),
                EntryCaller(context, recorder, self._known, agent, number),
            )
            for number, (context, agent) in enumerate(zip(channels, agents, strict=True), number)
        ]
        self._claimants = [
            Claimant(
                claims, entries, self._known, tokens, terms, seed + number, SPOTS, asyncio.sleep
            )
            for number, (claims, entries) in enumerate(self._callers)
        ]

    async def play(self, budget: Budget) -> None:
        """Lets all work until nothing is left to do."""
        async with asyncio.TaskGroup() as group:
            for claimant in self._claimants:
                group.create_task(claimant.run(budget))

    async def finish(self) -> None:
        """Has one client take every claim, and read what stands under it."""
        claims, entries = self._callers[-1]
        for spot in SPOTS:
            await finish(claims, entries, spot, self._terms, self._known)


def judge_claims(history: History, seed: int, operations: int) -> None:
    """The verdict, and proof that it means something."""
    violations = check_claims(history) + check_entries(history)
    print(f"{len(history.entries)} + {len(history.claims)} operations: {history.counts()}")
    assert not violations, f"seed {seed}: {report(violations)}"
    assert len(history.entries) + len(history.claims) >= operations
    told: list[Operation | ClaimOperation] = [*history.entries, *history.claims]
    ended = [(operation.kind, operation.reason or operation.outcome) for operation in told]
    share = operations / 10_000
    assert ended.count((Kind.ACQUIRE, Outcome.OK)) > 100 * share
    assert ended.count((Kind.ACQUIRE, "LEASE_HELD")) > 500 * share
    assert ended.count((Kind.UPDATE, Outcome.OK)) > 150 * share
    # A busy machine is slower than the terms of the claims, which end in real time.
    assert ended.count((Kind.RENEW, Outcome.OK)) > 2 * share
    renewed_late = ended.count((Kind.RENEW, "FENCED")) + ended.count((Kind.RENEW, "NOT_FOUND"))
    # Whether a claim ends before its renewal is chance, which a short history may not meet.
    assert renewed_late > 0 or share < 1
    late = [write for write in history.entries if write.token and write.reason == "FENCED"]
    assert len(late) > 30 * share
    holders = {hold.acquired.agent for holds in holds_of(history).values() for hold in holds}
    # Which agents get one is chance, most of all on a busy machine.
    assert len(holders) > 1, "no claim was handed from one agent to another"
