"""What the connections of a load say: they fill, create and search."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import Any, Never

import uvloop
from tqdm import tqdm

from benchmarks.load import Conversation, drive, percentile
from benchmarks.plan import HOST, Endpoint, LoadResult
from benchmarks.recall.directories import ApiError, Running
from benchmarks.recall.query_words import Talk

BATCH = 100
_FILLING_AT_ONCE = 4
_ENTRIES = "/api/v1/memory"
_AT_MOST_SECONDS = 3_600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Latency:
    """Of one kind of request, one after the other, in milliseconds."""

    p50: float
    p95: float
    p99: float
    requests: int


class Searching:
    """Asks so many questions, of one agent after the other, and keeps how long each reply took.

    before: what is sent before each question, and is not timed
    """

    def __init__(
        self,
        endpoint: Endpoint,
        agents: Sequence[str],
        talk: Talk,
        requests: float = inf,
        before: Callable[[str], bytes] | None = None,
    ) -> None:
        self.milliseconds = array("d")
        self.in_vain = 0
        self._endpoint = endpoint
        self._agents = agents
        self._talk = talk
        self._left = requests
        self._before = before
        self._asks = False
        self._asked_at = 0.0

    def ask(self) -> bytes | None:
        if self._left <= 0:
            return None
        agent = (
            self._agents[int(self._left) % len(self._agents)]
            if self._left < inf
            else (self._agents[0])
        )
        self._asks = self._before is None or not self._asks
        if not self._asks:
            assert self._before is not None
            return self._before(agent)
        self._left -= 1
        body = {"query": self._talk.question()}
        request = post(self._endpoint, agent, f"{_ENTRIES}/search", body)
        self._asked_at = perf_counter()
        return request

    def hear(self, status: int, body: bytes) -> bool:
        if not self._asks:
            return status == 201
        self.milliseconds.append(1000 * (perf_counter() - self._asked_at))
        # A question of rare words may find nothing, but not many are.
        self.in_vain += b'"results":[]' in body
        return status == 200


class Creating:
    """Creates entries for as long as it is asked to."""

    def __init__(self, endpoint: Endpoint, agent: str, talk: Talk) -> None:
        self._endpoint = endpoint
        self._agent = agent
        self._talk = talk

    def ask(self) -> bytes | None:
        return post(self._endpoint, self._agent, _ENTRIES, self._talk.entry())

    def hear(self, status: int, body: bytes) -> bool:
        return status == 201


class _Filling:
    """Creates entries a hundred at a time, from portions that several connections share."""

    def __init__(
        self,
        endpoint: Endpoint,
        portions: Iterator[tuple[str, list[dict[str, Any]]]],
        progress: tqdm[Never],
    ) -> None:
        self._endpoint = endpoint
        self._portions = portions
        self._progress = progress
        self._size = 0

    def ask(self) -> bytes | None:
        portion = next(self._portions, None)
        if portion is None:
            return None
        agent, entries = portion
        self._size = len(entries)
        return post(self._endpoint, agent, f"{_ENTRIES}/batch", {"entries": entries})

    def hear(self, status: int, body: bytes) -> bool:
        self._progress.update(self._size)
        return status in (200, 201)


def fill(server: Running, agents: Iterable[tuple[str, int]]) -> None:
    """Creates so many entries of each agent. Raises ApiError."""
    wanted = list(agents)

    def portions() -> Iterator[tuple[str, list[dict[str, Any]]]]:
        for number, (agent, size) in enumerate(wanted):
            talk = Talk(number)
            for start in range(0, size, BATCH):
                yield agent, [talk.entry() for _ in range(min(BATCH, size - start))]

    shared = portions()
    bar: tqdm[Never] = tqdm(
        total=sum(size for _, size in wanted), desc="filling", unit=" entries", leave=False
    )
    with bar:
        _run(server, [_Filling(server.endpoint, shared, bar) for _ in range(_FILLING_AT_ONCE)])


def search(
    server: Running, agents: Sequence[str], requests: int, number: int, *, write: bool = False
) -> Latency:
    """Asks so many questions, one after the other.

    number: another one gives other questions
    write: whether an entry is created before each question
    """
    talk = Talk(number)

    def create(agent: str) -> bytes:
        return post(
            server.endpoint, agent, _ENTRIES, {**talk.entry(), "namespace": f"new-{number}"}
        )

    searching = Searching(server.endpoint, agents, talk, requests, before=create if write else None)
    _run(server, [searching])
    taken = searching.milliseconds
    if searching.in_vain > len(taken) / 4:
        raise ApiError(f"{searching.in_vain} of {len(taken)} questions found nothing")
    return Latency(
        p50=percentile(taken, 0.50),
        p95=percentile(taken, 0.95),
        p99=percentile(taken, 0.99),
        requests=len(taken),
    )


def search_at_once(server: Running, agent: str, clients: int, seconds: float) -> LoadResult:
    """Asks over several connections for some seconds."""
    return _run(
        server,
        [Searching(server.endpoint, [agent], Talk(1_000 + client)) for client in range(clients)],
        seconds,
    )


def create_at_once(server: Running, clients: int, seconds: float, number: int) -> LoadResult:
    """Creates entries over several connections for some seconds, each those of its own agent."""
    creating = [
        Creating(server.endpoint, f"writer-{number}-{client}", Talk(number + client))
        for client in range(clients)
    ]
    return _run(server, creating, seconds)


def post(endpoint: Endpoint, agent: str, path: str, body: dict[str, Any]) -> bytes:
    """A request, ready to be sent."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nX-API-Key: {endpoint.api_key}\r\n"
        f"X-Agent-ID: {agent}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def _run(
    server: Running, conversations: Sequence[Conversation], seconds: float = inf
) -> LoadResult:
    result = uvloop.run(drive(server.endpoint.ports, conversations, seconds, _AT_MOST_SECONDS))
    if result.errors:
        raise ApiError(f"{result.errors} errors, the first: {result.first_error}")
    return result
