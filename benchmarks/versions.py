"""Two versions by turns: `python -m benchmarks.versions DIRECTORY [--store postgres]`.

DIRECTORY has the source of the other version: `git archive COMMIT | tar -x -C DIRECTORY`. Each
version is served by a process of its own, on a store of its own, and answers one request at a time.
They take short turns, so that whatever else the machine does falls on both alike. The figures are
processor time of the server and of the PostgreSQL processes that work for it, and the time until
the reply: the median of all rounds, and the median of the ratios of both versions in each round.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.database import Database
from benchmarks.environments import ROOT
from benchmarks.plan import HOST
from benchmarks.recipes import memorywall
from benchmarks.servers import Server, Servers

_ENTRIES = 100
_MEMORY = "/api/v1/memory"
_COUNTS = {"get by id": 60, "create": 20, "PATCH with If-Match": 20, "page of 100": 10}
"""The requests of a round."""


class Cost(NamedTuple):
    """What a request takes, in seconds."""

    server: float
    database: float
    reply: float


class Version:
    """A version that is served.

    name: for the report
    processes: gives the ids of the database processes that work for it
    """

    def __init__(self, name: str, server: Server, processes: Callable[[], list[int]]) -> None:
        endpoint = server.endpoint()
        self.name = name
        self._server = server.process.pid
        self._processes = processes
        self._connection = http.client.HTTPConnection(HOST, endpoint.port)
        self._headers = {"X-API-Key": endpoint.api_key, "Content-Type": "application/json"}
        self._numbers = itertools.count()
        self._ids = [self._create() for _ in range(_ENTRIES)]
        self._versions = dict.fromkeys(self._ids, 1)

    def measure(self, operation: str) -> Cost:
        """Sends the requests of a round and returns what one of them takes."""
        # The server has closed a connection that was idle for as long as the turn of the other.
        self._connection.close()
        count, send = _COUNTS[operation], self._requests(operation)
        next(send)
        before = self._processor_time()
        begun = time.perf_counter()
        for _ in range(count):
            next(send)
        reply = time.perf_counter() - begun
        server, database = (
            (now - then) / count for now, then in zip(self._processor_time(), before, strict=True)
        )
        return Cost(server, database, reply / count)

    def _processor_time(self) -> tuple[float, float]:
        return _seconds([self._server]), _seconds(self._processes())

    def _requests(self, operation: str) -> Iterator[None]:
        for number in itertools.count():
            entry = self._ids[number % _ENTRIES]
            if operation == "get by id":
                self._send("GET", f"{_MEMORY}/{entry}")
            elif operation == "create":
                self._create()
            elif operation == "page of 100":
                self._send("GET", f"{_MEMORY}?namespace=invoices&agent_id=agent&limit=100")
            else:
                change = {"value": {"completed": number, "note": "y" * 60}}
                self._send("PATCH", f"{_MEMORY}/{entry}", change, self._versions[entry])
                self._versions[entry] += 1
            yield

    def _create(self) -> str:
        number = next(self._numbers)
        namespace = "invoices" if number < _ENTRIES else "others"
        draft = {
            "namespace": namespace,
            "key": f"k{number}",
            "memory_type": "episodic",
            "value": {"completed": number, "note": "x" * 60},
            "tags": ["a", "b"],
        }
        made: str = json.loads(self._send("POST", _MEMORY, draft))["id"]
        return made

    def _send(self, method: str, path: str, body: object = None, version: int = 0) -> bytes:
        headers = {**self._headers, "X-Agent-ID": "agent"}
        if version:
            headers["If-Match"] = str(version)
        content = None if body is None else json.dumps(body).encode()
        self._connection.request(method, path, content, headers)
        reply = self._connection.getresponse()
        read = reply.read()
        if reply.status >= 300:
            raise RuntimeError(f"{self.name}: {method} {path} was answered with {reply.status}")
        return read


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="the source of the other version")
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--rounds", type=int, default=80)
    options = parser.parse_args()
    sources = {"other": options.directory.resolve(), "this": ROOT}
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = None
        if options.store == "postgres":
            database = stack.enter_context(Database())
        servers = stack.enter_context(Servers(directory))
        versions = [serve(name, source, servers, database) for name, source in sources.items()]
        costs = defaultdict[tuple[str, str], list[Cost]](list)
        for number in range(options.rounds):
            for operation in _COUNTS:
                for version in versions[:: 1 if number % 2 else -1]:
                    costs[version.name, operation].append(version.measure(operation))
    report(costs)


def serve(name: str, source: Path, servers: Servers, database: Database | None) -> Version:
    """Starts a version from its source, in a store of its own."""
    url = None if database is None else database.create()
    recipe = memorywall(None if url is None else lambda: url)
    command = recipe.arguments

    def arguments(directory: Path, port: int) -> list[str]:
        return ["env", f"PYTHONPATH={source / 'src'}", *command(directory, port)]

    def processes() -> list[int]:
        return [] if database is None or url is None else database.processes(url)

    return Version(name, servers.start(replace(recipe, arguments=arguments)), processes)


def report(costs: dict[tuple[str, str], list[Cost]]) -> None:
    """Prints the medians, in microseconds a request, and the ratio of the rates."""
    print("| operation | figure | other | this | ratio |\n|---|---|---:|---:|---:|")
    for operation in _COUNTS:
        for field in Cost._fields:
            other, this = (
                [getattr(cost, field) * 1e6 for cost in costs[name, operation]]
                for name in ("other", "this")
            )
            if all(this):
                ratio = median(then / now for then, now in zip(other, this, strict=True))
                figures = f"{median(other):.0f} | {median(this):.0f} | {ratio:.2f}"
                print(f"| {operation} | {field} | {figures} |")


def _seconds(processes: list[int]) -> float:
    """Returns the processor time of all threads of processes."""
    total = 0
    for process in processes:
        for thread in Path(f"/proc/{process}/task").iterdir():
            total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


if __name__ == "__main__":
    main()
