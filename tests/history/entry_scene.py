"""All clients of a test of entries: who they are, what they write, and how it ends."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

import httpx

from tests.history.budget import Budget
from tests.history.line import Channel
from tests.history.record import History, Kind, Outcome, Recorder
from tests.history.writers import EntryCaller, Known, Spot, Writer

CROWD, CROWD_SIZE = "crowd", 16
AGENTS = [f"agent-{number:02}" for number in range(12)]
CLIENTS_PER_AGENT = 4
SHARED = "history"
CLIENTS = [CROWD] * CROWD_SIZE + [agent for agent in AGENTS for _ in range(CLIENTS_PER_AGENT)]


class EntryScene:
    """All clients of one test, each with its own way to the server.

    agents: the agent of each client
    """

    def __init__(
        self,
        channels: Sequence[Channel],
        recorder: Recorder,
        seed: int,
        agents: Sequence[str] = CLIENTS,
    ) -> None:
        self._known = Known()
        callers = [
            EntryCaller(context, recorder, self._known, agent, number)
            for number, (context, agent) in enumerate(zip(channels, agents, strict=True))
        ]
        self._caller_of = dict(zip(agents, callers, strict=True))
        self._writers = [
            Writer(caller, self._known, seed + number, _hot(agent), _spread(agent))
            for number, (caller, agent) in enumerate(zip(callers, agents, strict=True))
        ]

    async def play(self, budget: Budget) -> None:
        """Lets all work until nothing is left to do."""
        async with asyncio.TaskGroup() as group:
            for writer in self._writers:
                group.create_task(writer.run(budget))

    async def finish(self) -> None:
        """Reads every name by itself, and its entry by id."""
        for agent, caller in self._caller_of.items():
            spots = _hot(agent) + _spread(agent)
            for spot in dict.fromkeys(itertools.chain(spots)):
                await caller.find(spot)
                if spot in self._known.places:
                    await caller.read(spot, self._known.places[spot][0])


def open_namespace(port: int, key: str) -> None:
    """Lets everybody write the entries that all share."""
    changed = httpx.patch(
        f"http://127.0.0.1:{port}/api/v1/memory/namespaces/{SHARED}",
        json={"permissions": {"default": "write"}},
        headers={"X-API-Key": key},
    )
    assert changed.status_code == 200, changed.text


def assert_eventful(
    history: History,
    operations: int,
    unanswered: Sequence[Kind] = (Kind.CREATE, Kind.READ, Kind.UPDATE, Kind.DELETE),
) -> None:
    """A history in which nothing collided would prove nothing.

    unanswered: kinds of which one at least was cut off, whichever that is
    """
    ended = [
        (operation.kind, operation.reason or operation.outcome) for operation in history.entries
    ]
    share = len(ended) / 100_000
    assert len(ended) >= operations
    for kind in (Kind.CREATE, Kind.READ, Kind.UPDATE, Kind.DELETE):
        assert ended.count((kind, Outcome.OK)) > 100 * share, kind
    # Which request a kill cuts off is chance.
    assert any((kind, Outcome.UNKNOWN) in ended for kind in unanswered), unanswered
    assert ended.count((Kind.UPDATE, "VERSION_MISMATCH")) > 200 * share
    assert ended.count((Kind.CREATE, "ENTRY_EXISTS")) > 20 * share


def _hot(agent: str) -> list[Spot]:
    """Two names all clients want, and two that all clients of the crowd want."""
    hot = [Spot("semantic", SHARED, f"hot-{number}") for number in range(2)]
    if agent == CROWD:
        hot += [Spot("working", "hot", f"hot-{number}", CROWD) for number in range(2)]
    return hot


def _spread(agent: str) -> list[Spot]:
    """Names that clients meet on now and then: everybody's, and those of the agent's clients."""
    shared = [Spot("semantic", SHARED, f"key-{number}") for number in range(120)]
    own = [
        Spot(tier, "spread", f"key-{number}", agent)
        for tier in ("working", "session")
        for number in range(12)
    ]
    return shared[::6] + own + shared
