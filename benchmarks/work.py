"""The cost of work: contended claims, the end of tasks with a hundred entries, resumption.

These run against a server of their own, after everything else has been measured. Nothing of the
kind is served by the raw application or the reference server, so the figures stand alone.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from statistics import median

from tqdm import tqdm

from benchmarks.load import drive, percentile
from benchmarks.plan import CONNECTIONS, HOST, Endpoint
from benchmarks.servers import Recipe, Servers
from memorywall import Client

CONTENDERS = 16
CONTENDED_KEYS = 8
CLAIM_SECONDS = 3.0
TASKS = 60
ENTRIES_PER_TASK = 100
RESUMPTIONS = 40
_CLAIMS = b"/api/v1/claims"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkFigures:
    """The results. Times are in milliseconds.

    claims, refusals: per second, on the keys all want and on keys of one's own
    completion: of the request that completes a task and archives its hundred entries
    resumption: from the coordinator's reassignment to the second agent's first durable checkpoint
    """

    claims: float
    refusals: float
    free_claims: float
    claim_p99: float
    completion_p50: float
    completion_p99: float
    resumption_p50: float
    resumption_p99: float
    errors: int
    first_error: str


def measure_work(servers: Servers, recipe: Recipe) -> WorkFigures:
    """Measures all of it."""
    server = servers.start(recipe)
    endpoint = server.endpoint()
    with tqdm(total=4, unit=" parts", desc="work") as progress:
        contended = _Tally()
        asyncio.run(_claim(endpoint, contended, lambda turn: turn.chance.randrange(CONTENDED_KEYS)))
        progress.update()
        free = _Tally()
        asyncio.run(_claim(endpoint, free, lambda turn: turn.place))
        progress.update()
        completions = _complete_tasks(endpoint)
        progress.update()
        resumptions = _resume(endpoint)
        progress.update()
    servers.stop(server)
    return WorkFigures(
        claims=contended.won / CLAIM_SECONDS,
        refusals=contended.refused / CLAIM_SECONDS,
        free_claims=free.won / CLAIM_SECONDS,
        claim_p99=contended.p99,
        completion_p50=median(completions),
        completion_p99=percentile(completions, 0.99),
        resumption_p50=median(resumptions),
        resumption_p99=percentile(resumptions, 0.99),
        errors=contended.errors + free.errors,
        first_error=contended.first_error or free.first_error,
    )


@dataclass(slots=True)
class _Tally:
    """The counts of all claimants together."""

    won: int = 0
    refused: int = 0
    errors: int = 0
    first_error: str = ""
    p99: float = 0.0


class _Claimant:
    """Claims a key, gives it back at once, and claims again."""

    def __init__(
        self, endpoint: Endpoint, place: int, tally: _Tally, key: Callable[[_Claimant], int]
    ) -> None:
        self.place = place
        self.chance = Random(place)
        self._tally = tally
        self._key = key
        self._held: bytes | None = None
        self._head = b"Host: 127.0.0.1\r\nX-API-Key: %s\r\nX-Agent-ID: claimant-%d\r\n" % (
            endpoint.api_key.encode(),
            place % CONTENDERS,
        )

    def next_request(self) -> bytes | None:
        """The next request."""
        if self._held is not None:
            return b"DELETE %s/%s HTTP/1.1\r\n%s\r\n" % (_CLAIMS, self._held, self._head)
        body = b'{"key":"item-%d","ttl_seconds":30}' % self._key(self)
        return (
            b"POST %s HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (_CLAIMS, self._head, len(body), body)
        )

    def accept_response(self, status: int, body: bytes) -> bool:
        """Notes a claim won, refused or given back."""
        if self._held is not None:
            self._held = None
            return status == 204
        if status == 201:
            self._held = json.loads(body)["id"].encode()
            self._tally.won += 1
            return True
        self._tally.refused += status == 409
        return status == 409


async def _claim(endpoint: Endpoint, tally: _Tally, key: Callable[[_Claimant], int]) -> None:
    claimants = [_Claimant(endpoint, place, tally, key) for place in range(CONNECTIONS)]
    result = await drive(endpoint.ports, claimants, CLAIM_SECONDS)
    tally.errors, tally.first_error, tally.p99 = result.errors, result.first_error, result.p99


def _clients(stack: ExitStack, endpoint: Endpoint, *agents: str) -> list[Client]:
    url = f"http://{HOST}:{endpoint.port}"
    return [stack.enter_context(Client(url, endpoint.api_key, agent=agent)) for agent in agents]


def _complete_tasks(endpoint: Endpoint) -> list[float]:
    """Milliseconds that completing a task with a hundred entries took, for each of some tasks."""
    times = []
    with ExitStack() as stack:
        (worker,) = _clients(stack, endpoint, "completer")
        intent = worker.intents.create("Complete tasks")
        for number in range(TASKS):
            task = worker.tasks.create(intent.id, f"task {number}", assigned_agent="completer")
            taken = worker.tasks.claim(task.id)
            token = taken.lease.fencing_token
            scoped = worker.scoped(task_id=task.id, fencing_token=token)
            scoped.memory.batch(
                {
                    "namespace": f"work-{number}",
                    "key": f"entry-{place}",
                    "value": {"place": place, "text": "x" * 80},
                    "memory_type": "working",
                    "tags": ["work"],
                    "scope": {"task_id": task.id},
                }
                for place in range(ENTRIES_PER_TASK)
            )
            begun = time.perf_counter()
            scoped.tasks.update(taken.task, status="completed", fencing_token=token)
            times.append((time.perf_counter() - begun) * 1000)
    return times


def _resume(endpoint: Endpoint) -> list[float]:
    """Milliseconds from a reassignment to the first checkpoint of the agent that goes on: it asks
    for the task, reads what the first one left, and writes."""
    times = []
    with ExitStack() as stack:
        coordinator, first, second = _clients(stack, endpoint, "coordinator", "first", "second")
        intent = coordinator.intents.create("Resume tasks")
        for number in range(RESUMPTIONS):
            task = coordinator.tasks.create(intent.id, f"task {number}", assigned_agent="first")
            taken = first.tasks.claim(task.id)
            scoped = first.scoped(task_id=task.id, fencing_token=taken.lease.fencing_token)
            name = (f"resume-{number}", "progress")
            scoped.memory.set(*name, {"completed": 23}, memory_type="working")
            begun = time.perf_counter()
            coordinator.tasks.assign(task.id, "second")
            resumed = second.tasks.next(intent_id=intent.id)
            assert resumed is not None
            scoped = second.scoped(task_id=task.id, fencing_token=resumed.lease.fencing_token)
            found = scoped.memory.query(task_id=task.id, memory_type="working")
            scoped.memory.set(
                *name, {"completed": found[0]["completed"] + 1}, memory_type="working"
            )
            times.append((time.perf_counter() - begun) * 1000)
            second.tasks.release(task.id, resumed.lease.fencing_token)
            coordinator.tasks.cancel(task.id)
    return times
