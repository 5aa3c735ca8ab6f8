"""What the hooks of a coding agent take: `python -m benchmarks.hooks`.

The agent's MCP server is a process that has a directory open. A recall goes over its socket, as
every hook does; a hook is a process of its own besides.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import TypeVar

import memorywall
from memorywall.adapters.hosts.hook_socket import RelayRequest, ask_relay

_WORDS = (
    "deploy", "cluster", "build", "test", "index", "cache", "server", "client", "schema", "token",
    "session", "memory", "branch", "release", "patch", "review", "docker", "kernel", "network",
    "storage", "queue", "worker", "thread", "socket", "parser",
)  # fmt: skip
_MEMORYWALL = [sys.executable, "-m", "memorywall"]
Place = TypeVar("Place")
_PATIENCE = 60.0
_TWENTIETHS = 20


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=10_000, help="texts in memory")
    parser.add_argument("--prompts", type=int, default=300, help="recalls over the socket")
    parser.add_argument("--hooks", type=int, default=20, help="hooks as processes")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random = Random(options.seed)
    with tempfile.TemporaryDirectory() as home:
        environment = {name: text for name, text in os.environ.items() if name[:4] != "XDG_"}
        environment |= {"HOME": home}
        connect = [*_MEMORYWALL, "connect", "claude-code", "--yes"]
        subprocess.run(connect, env=environment, stdout=subprocess.DEVNULL, check=True)
        _fill(Path(home) / ".local/share/memorywall", options.entries, random)
        folder = Path(home) / ".local/state/memorywall/claude-code"
        with subprocess.Popen(
            [*_MEMORYWALL, "mcp", "--connection", "claude-code"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        ) as host:
            while ask_relay(folder, RelayRequest("")) is None:
                time.sleep(0.01)
            prompts = [_text(random, 6) for _ in range(max(options.prompts, options.hooks))]
            _report("first recall, with the index", _timed(_recall, folder, prompts[:1]))
            _report("recall over the socket", _timed(_recall, folder, prompts[: options.prompts]))
            _report("hook, a process", _timed(_hook, environment, prompts[: options.hooks]))
            host.kill()


def _fill(data: Path, entries: int, random: Random) -> None:
    """Stores texts in a directory."""
    at_once = 100
    with memorywall.open(f"{data}{os.sep}", agent="local") as client:
        for start in range(0, entries, at_once):
            client.memory.batch(
                {
                    "namespace": "notes",
                    "key": str(number),
                    "memory_type": "semantic",
                    "value": {"text": f"{_text(random, 12)} number {number}"},
                }
                for number in range(start, min(start + at_once, entries))
            )


def _text(random: Random, words: int) -> str:
    return " ".join(random.choices(_WORDS, k=words))


def _recall(folder: Path, prompt: str) -> None:
    if ask_relay(folder, RelayRequest("conversation", prompt), _PATIENCE) is None:
        raise RuntimeError("the process of the host does not answer")


def _hook(environment: dict[str, str], prompt: str) -> None:
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt}
    line = json.dumps(event).encode()
    command = [*_MEMORYWALL, "hook", "claude-code"]
    subprocess.run(command, env=environment, input=line, stdout=subprocess.DEVNULL, check=True)


def _timed(action: Callable[[Place, str], None], place: Place, prompts: list[str]) -> list[float]:
    """Returns the milliseconds that an action takes for each prompt."""
    times = []
    for prompt in prompts:
        begun = time.perf_counter()
        action(place, prompt)
        times.append(1_000 * (time.perf_counter() - begun))
    return times


def _report(name: str, times: list[float]) -> None:
    cuts = quantiles(times, n=_TWENTIETHS) if len(times) > 1 else times * _TWENTIETHS
    print(f"{name:32} p50 {cuts[len(cuts) // 2]:7.1f} ms   p95 {cuts[-1]:7.1f} ms")


if __name__ == "__main__":
    main()
