"""Runs an agent, kills it part-way, starts it again, and shows that it goes on where it was.

    python examples/demo.py [FOLDER]

FOLDER is any folder of text files; without it, Python's own standard library is read. The memory
is kept in ./memorywall-demo and can be looked at afterwards with the command shown at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reading_agent import PROGRESS, files_of, next_digest
from tabulate import tabulate

from memorywall import Client
from memorywall.wire.agents import EventView

AGENT = "reader"
TASK = "task_read_the_library"
DATA = Path("memorywall-demo")
KILL_AFTER = 0.4
LONGEST_RUN = 300.0
_HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(description="An agent that is killed and goes on.")
    parser.add_argument("folder", nargs="?", type=Path, default=None)
    folder, pattern = parser.parse_args().folder, "*"
    if folder is None:
        folder, pattern = Path(sysconfig.get_path("stdlib")), "*.py"
    names = files_of(folder, pattern)
    if not names:
        print(f"{folder} holds no text files to read")
        return 2
    shutil.rmtree(DATA, ignore_errors=True)
    with running_server() as url:
        key = make_key()
        agent = [sys.executable, str(_HERE / "reading_agent.py"), str(folder)]
        agent += ["--task", TASK, "--pattern", pattern]
        environment = {**os.environ, "MEMORYWALL_URL": url, "MEMORYWALL_API_KEY": key}
        with Client(url, key, task_id=TASK) as client:
            say(f"An agent starts to read {len(names):,} files of {folder}")
            killed_at = run_and_kill(client, agent, environment, len(names))
            if killed_at < len(names):
                say(f"It is killed with SIGKILL after {killed_at:,} files. A new process goes on:")
            else:
                say(
                    "It had read all there is before it could be killed; a new process looks again:"
                )
            subprocess.run(agent, env=environment, check=True, timeout=LONGEST_RUN)
            show_memory(client)
            events = show_events(client)
            sound = check(client, names, events, killed_at)
    say("Look closer: every entry, event and operation in the browser, with the key it prints")
    command = os.path.relpath(Path(sys.executable).parent / "memorywall")
    print(f"    {command} serve --data {DATA} --dev")
    return 0 if sound else 1


def say(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


@contextmanager
def running_server() -> Iterator[str]:
    """A server on an embedded database, on any free port; stopped at the end."""
    command = [sys.executable, "-m", "memorywall", "serve", "--data", str(DATA), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            if " at http://" not in line:
                raise SystemExit("the server did not start")
            print(line.strip())
            yield line.split(" at ")[1].strip().removesuffix("/docs")
        finally:
            server.terminate()


def make_key() -> str:
    """A key for the agent, made beside the running server."""
    command = [sys.executable, "-m", "memorywall", "keys", "create", "--data", str(DATA)]
    made = subprocess.run(
        [*command, "--agent", AGENT, "--json"], check=True, capture_output=True, text=True
    )
    key: str = json.loads(made.stdout)["key"]
    return key


def run_and_kill(
    client: Client, command: list[str], environment: dict[str, str], total: int
) -> int:
    """Starts the agent, kills it part-way, returns how many files its checkpoint counts."""
    with subprocess.Popen(command, env=environment) as agent:
        deadline = time.monotonic() + LONGEST_RUN
        while agent.poll() is None and time.monotonic() < deadline:
            checkpoint = client.memory.get(*PROGRESS)
            if checkpoint and checkpoint["completed"] >= total * KILL_AFTER:
                break
            time.sleep(0.01)
        agent.kill()
    print()
    checkpoint = client.memory.get(*PROGRESS)
    return int(checkpoint["completed"]) if checkpoint else 0


def show_memory(client: Client) -> None:
    say("What is remembered")
    entries = client.memory.query(limit=1000)
    rows = []
    for entry in entries:
        text = json.dumps({name: entry[name] for name in entry if name != "digest"})
        text = text if len(text) <= 62 else text[:61] + "…"
        rows.append([entry.memory_type, entry.namespace, entry.key[-34:], entry.version, text])
    print(tabulate(rows, headers=["tier", "namespace", "key", "version", "value"]))


def show_events(client: Client) -> list[EventView]:
    """Prints the beginning and the end of the event log, and returns all of it."""
    events: list[EventView] = []
    while page := client.events.list(after=events[-1].seq if events else 0, limit=1000):
        events.extend(page)
    say(f"The event log: {len(events):,} events")
    rows = [_row(event) for event in events]
    if len(rows) > 10:
        rows = [*rows[:3], ["…", "", "", "", ""], *rows[-6:]]
    print(tabulate(rows, headers=["seq", "when", "event", "entry", "version"]))
    counts = Counter(event.type for event in events)
    print(", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items())))
    return events


def _row(event: EventView) -> list[object]:
    data = event.data
    entry = f"{data.memory_type} {data.namespace}/{data.key}"
    return [event.seq, event.timestamp, event.type, entry[-56:], data.version]


def check(client: Client, names: list[str], events: list[EventView], killed_at: int) -> bool:
    """Compares the checkpoint with a count of its own: no file twice, none skipped."""
    digest = ""
    for name in names:
        digest = next_digest(digest, name)
    progress = client.memory.get(*PROGRESS)
    assert progress is not None
    checkpoints = [event for event in events if event.data.entry_id == progress.id]
    sound = (
        progress["digest"] == digest
        and progress["completed"] == len(names)
        and [event.data.version for event in checkpoints] == list(range(1, len(names) + 1))
    )
    say(
        f"{len(names):,} files read, each exactly once: {killed_at:,} before the kill,"
        f" {len(names) - killed_at:,} after it; {len(checkpoints):,} checkpoints in the log"
        if sound
        else "The checkpoint does not agree with the folder: a file was read twice or skipped"
    )
    return sound


if __name__ == "__main__":
    sys.exit(main())
