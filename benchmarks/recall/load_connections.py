"""The connections of a load: they fill a store, create entries and search."""

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
    """Latencies of sequential requests of one kind, in milliseconds."""

    p50: float
    p95: float
    p99: float
    requests: int


class SearchConnection:
    """Sends a number of questions, for one agent after the other, and records latencies.

    before: returns a request that is sent before each question and is not measured
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
        self.without_results = 0
        self._endpoint = endpoint
        self._agents = agents
        self._talk = talk
        self._left = requests
        self._before = before
        self._is_question = False
        self._sent_at = 0.0

    def next_request(self) -> bytes | None:
        if self._left <= 0:
            return None
        agent = (
            self._agents[int(self._left) % len(self._agents)]
            if self._left < inf
            else (self._agents[0])
        )
        self._is_question = self._before is None or not self._is_question
        if not self._is_question:
            assert self._before is not None
            return self._before(agent)
        self._left -= 1
        body = {"query": self._talk.question()}
        request = post(self._endpoint, agent, f"{_ENTRIES}/search", body)
        self._sent_at = perf_counter()
        return request

    def accept_response(self, status: int, body: bytes) -> bool:
        if not self._is_question:
            return status == 201
        self.milliseconds.append(1000 * (perf_counter() - self._sent_at))
        # A question of rare words may find nothing, but not many are.
        self.without_results += b'"results":[]' in body
        return status == 200


class CreateConnection:
    """Creates entries without end."""

    def __init__(self, endpoint: Endpoint, agent: str, talk: Talk) -> None:
        self._endpoint = endpoint
        self._agent = agent
        self._talk = talk

    def next_request(self) -> bytes | None:
        return post(self._endpoint, self._agent, _ENTRIES, self._talk.entry())

    def accept_response(self, status: int, body: bytes) -> bool:
        return status == 201


class _FillConnection:
    """Creates entries in batches, from portions that several connections share."""

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

    def next_request(self) -> bytes | None:
        portion = next(self._portions, None)
        if portion is None:
            return None
        agent, entries = portion
        self._size = len(entries)
        return post(self._endpoint, agent, f"{_ENTRIES}/batch", {"entries": entries})

    def accept_response(self, status: int, body: bytes) -> bool:
        self._progress.update(self._size)
        return status in (200, 201)


def fill(server: Running, agents: Iterable[tuple[str, int]]) -> None:
    """Creates a number of entries for each agent. Raises ApiError."""
    sizes = list(agents)

    def portions() -> Iterator[tuple[str, list[dict[str, Any]]]]:
        for number, (agent, size) in enumerate(sizes):
            talk = Talk(number)
            for start in range(0, size, BATCH):
                yield agent, [talk.entry() for _ in range(min(BATCH, size - start))]

    shared = portions()
    bar: tqdm[Never] = tqdm(
        total=sum(size for _, size in sizes), desc="filling", unit=" entries", leave=False
    )
    with bar:
        _run(
            server, [_FillConnection(server.endpoint, shared, bar) for _ in range(_FILLING_AT_ONCE)]
        )


def search(
    server: Running, agents: Sequence[str], requests: int, number: int, *, write: bool = False
) -> Latency:
    """Sends a number of questions, one after the other.

    number: the seed of the questions
    write: whether an entry is created before each question
    """
    talk = Talk(number)

    def create(agent: str) -> bytes:
        return post(
            server.endpoint, agent, _ENTRIES, {**talk.entry(), "namespace": f"new-{number}"}
        )

    searching = SearchConnection(
        server.endpoint, agents, talk, requests, before=create if write else None
    )
    _run(server, [searching])
    taken = searching.milliseconds
    if searching.without_results > len(taken) / 4:
        raise ApiError(f"{searching.without_results} of {len(taken)} questions found nothing")
    return Latency(
        p50=percentile(taken, 0.50),
        p95=percentile(taken, 0.95),
        p99=percentile(taken, 0.99),
        requests=len(taken),
    )


def search_at_once(server: Running, agent: str, clients: int, seconds: float) -> LoadResult:
    """Sends questions over several connections for a time."""
    return _run(
        server,
        [
            SearchConnection(server.endpoint, [agent], Talk(1_000 + client))
            for client in range(clients)
        ],
        seconds,
    )


def create_at_once(server: Running, clients: int, seconds: float, number: int) -> LoadResult:
    """Creates entries over several connections for a time, each for an agent of its own."""
    creating = [
        CreateConnection(server.endpoint, f"writer-{number}-{client}", Talk(number + client))
        for client in range(clients)
    ]
    return _run(server, creating, seconds)


def post(endpoint: Endpoint, agent: str, path: str, body: dict[str, Any]) -> bytes:
    """Returns a request as bytes."""
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
