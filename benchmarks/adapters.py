"""The adapters beside the frameworks' own stores: `python -m benchmarks.adapters`.

Three figures, each by turns in one run: what the import of an adapter takes above that of its
framework, a get of LangGraph's store in this process, and a put of LangGraph's checkpointer over
HTTP. LangGraph's stores for SQLite and PostgreSQL are installed once, below `.integrations`. The
servers and PostgreSQL are processes of this machine, and every commit waits for the disk.
"""

from __future__ import annotations

import argparse
import http.client
import importlib
import importlib.util
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

import memorywall
from benchmarks.database import Database
from benchmarks.environments import ROOT, install_beside
from benchmarks.plan import HOST, Endpoint
from benchmarks.recipes import memorywall as server_recipe
from benchmarks.servers import Servers
from memorywall.adapters.langgraph import MemorywallSaver, MemorywallStore

_FOLDER = ROOT / ".integrations" / "langgraph-benchmark"
_PACKAGES = (
    "aiosqlite", "langgraph-checkpoint-postgres", "langgraph-checkpoint-sqlite", "psycopg",
    "psycopg-binary", "psycopg-pool", "sqlite-vec",
)  # fmt: skip
_IMPORTS = {
    "langgraph": "langgraph.checkpoint.base, langgraph.store.base",
    "mcp": "mcp",
    "agents": "agents",
    "anthropic": "anthropic",
}
_ADAPTERS = {
    "langgraph": "langgraph",
    "mcp": "mcp",
    "agents": "openai_agents",
    "anthropic": "anthropic_tool",
}
_ITEMS = 100
_AT_A_TIME = 10
_NAMESPACE = ("users", "ann")
_VALUE = {"text": "x" * 60, "n": 1}
_MESSAGES = ["It rains in the mountains, and the train is late again."] * 6
Step = Callable[[], object]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60, help="turns of gets and puts")
    parser.add_argument("--imports", type=int, default=12, help="turns of imports")
    parser.add_argument("--directory", type=Path, help="where the files of SQLite are made")
    options = parser.parse_args()
    install_beside(_FOLDER, _PACKAGES)
    sys.path.append(str(_FOLDER))
    measure_imports(options.imports)
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        measure_gets(Path(directory), options.rounds)
        measure_puts(Path(directory), options.rounds)


def measure_imports(turns: int) -> None:
    """Prints the processor time of imports in new interpreters, in milliseconds."""
    print("import, ms: adapter above its framework (asked: 100)")
    for framework, modules in _IMPORTS.items():
        if importlib.util.find_spec(framework) is None:
            print(f"  {framework:12} is not installed")
            continue
        both = f"{modules}, memorywall.adapters.{_ADAPTERS[framework]}"
        pairs = [(_import_seconds(modules), _import_seconds(both)) for _ in range(turns)]
        alone, above = (
            1_000 * median(alone for alone, _ in pairs),
            1_000 * median(both - alone for alone, both in pairs),
        )
        print(f"  {framework:12} {above:6.0f} above {alone:.0f}")


def measure_gets(directory: Path, rounds: int) -> None:
    """Prints the durations of gets in this process, in microseconds."""
    sqlite: Any = importlib.import_module("langgraph.store.sqlite")
    with (
        memorywall.open(directory / "memory.db", agent="benchmark") as client,
        sqlite.SqliteStore.from_conn_string(str(directory / "langgraph.db")) as theirs,
    ):
        theirs.setup()
        ours, kept = MemorywallStore(client), MemorywallStore(client, max_age=3_600)
        for number in range(_ITEMS):
            ours.put(_NAMESPACE, str(number), _VALUE)
            theirs.put(_NAMESPACE, str(number), _VALUE)
        turn = itertools.cycle(map(str, range(_ITEMS)))

        def get(store: Any) -> Step:
            return lambda: store.get(_NAMESPACE, next(turn))

        def get_after_put(store: Any) -> tuple[Step, Step]:
            return get(store), lambda: store.put(("others",), "a", _VALUE)

        unchanged = _timed(
            {
                "LangGraph's SQLite store": (get(theirs), None),
                "memorywall": (get(ours), None),
                "memorywall with max_age": (get(kept), None),
            },
            rounds * 10,
        )
        changed = _timed(
            {
                "LangGraph's SQLite store": get_after_put(theirs),
                "memorywall": get_after_put(ours),
            },
            rounds,
        )
    print("get in process, us (asked: less than LangGraph's)")
    _report(unchanged, 1e6)
    print("get in process after a put, us")
    _report(changed, 1e6)


def measure_puts(directory: Path, rounds: int) -> None:
    """Prints the durations of puts over HTTP, and of plain creates of the same size, in
    milliseconds."""
    postgres: Any = importlib.import_module("langgraph.checkpoint.postgres")
    with ExitStack() as stack:
        database = stack.enter_context(Database())
        servers = stack.enter_context(Servers(directory))
        theirs = stack.enter_context(postgres.PostgresSaver.from_conn_string(database.create()))
        theirs.setup()
        steps: dict[str, Step] = {"LangGraph's PostgreSQL saver": _putting(theirs)}
        url = database.create()
        for name, recipe in {
            "SQLite": server_recipe(),
            "PostgreSQL": server_recipe(lambda: url),
        }.items():
            endpoint = servers.start(recipe).endpoint()
            address = f"http://{HOST}:{endpoint.port}"
            client = stack.enter_context(
                memorywall.Client(address, endpoint.api_key, agent="benchmark")
            )
            steps[f"memorywall on {name}"] = _putting(MemorywallSaver(client))
            steps[f"create on {name}, SDK"] = _setting(client)
            steps[f"create on {name}, bare HTTP"] = _creating(endpoint)
        took = _timed({name: (step, None) for name, step in steps.items()}, rounds)
    print("put over HTTP, ms (asked: 1.3 times LangGraph's)")
    _report(took, 1e3)


def _putting(saver: Any) -> Step:
    """Puts the next checkpoint of a thread."""
    numbers = itertools.count()
    config: dict[str, Any] = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}

    def put() -> None:
        nonlocal config
        number = next(numbers)
        checkpoint = empty_checkpoint()
        checkpoint["id"] = str(uuid6(clock_seq=number))
        checkpoint["channel_values"] = {"messages": _MESSAGES, "number": number}
        versions: Any = dict.fromkeys(checkpoint["channel_values"], f"{number:032}.0")
        checkpoint["channel_versions"] = versions
        metadata = {"source": "loop", "step": number, "parents": {}}
        config = saver.put(config, checkpoint, metadata, versions)

    return put


def _setting(client: memorywall.Client) -> Step:
    numbers = itertools.count()
    value = {"messages": _MESSAGES}
    return lambda: client.memory.set("plain", str(next(numbers)), value)


def _creating(endpoint: Endpoint) -> Step:
    numbers = itertools.count()
    connection = http.client.HTTPConnection(HOST, endpoint.port)
    headers = {"X-API-Key": endpoint.api_key, "X-Agent-ID": "benchmark"}

    def create() -> None:
        draft = {"namespace": "bare", "memory_type": "working", "value": {"messages": _MESSAGES}}
        body = json.dumps({**draft, "key": str(next(numbers))})
        sent = {**headers, "Content-Type": "application/json"}
        connection.request("POST", "/api/v1/memory", body, sent)
        reply = connection.getresponse()
        if reply.status != 201:
            raise SystemExit(reply.read().decode())
        reply.read()

    return create


def _import_seconds(modules: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", f"import {modules}"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _timed(
    steps: Mapping[str, tuple[Step, Step | None]], rounds: int
) -> dict[str, list[list[float]]]:
    """Returns the durations of each step in each round, in seconds.

    steps: each with what is done before it, which is not measured
    """
    took: dict[str, list[list[float]]] = {name: [] for name in steps}
    for number in range(rounds + 1):
        for name, (step, prepare) in steps.items():
            times = []
            for _ in range(_AT_A_TIME):
                if prepare is not None:
                    prepare()
                begun = time.perf_counter()
                step()
                times.append(time.perf_counter() - begun)
            # The first round opens connections and fills caches.
            if number:
                took[name].append(times)
    return took


def _report(took: Mapping[str, list[list[float]]], unit: float) -> None:
    """Prints the medians, the fastest tenths, and the median of the ratios to the first step within
    the rounds."""
    first = [median(times) for times in next(iter(took.values()))]
    for name, rounds in took.items():
        every = sorted(itertools.chain(*rounds))
        half, tenth = (unit * every[len(every) // part] for part in (2, 10))
        ratio = median(median(one) / other for one, other in zip(rounds, first, strict=True))
        print(f"  {name:32} median {half:7.2f}  tenth {tenth:7.2f}  ratio {ratio:5.2f}")


if __name__ == "__main__":
    main()
