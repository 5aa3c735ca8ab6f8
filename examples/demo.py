"""An agent dies in the middle of its task; another one finishes it. Nothing is lost, nothing twice.

    python examples/demo.py [FOLDER]

FOLDER is any folder of text files; without it, Python's own standard library is read. This is the
resumption flow of RFC-0015 section 8 with real processes: a server, a worker that is killed with
SIGKILL, a second worker of another agent, and this script as the coordinator of both. The memory
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
from typing import Any

from reading_agent import PROGRESS, files_of, next_digest
from tabulate import tabulate

from memorywall import Client

COORDINATOR, FIRST, SECOND = "librarian", "reader-1", "reader-2"
DATA = Path("memorywall-demo")
KILL_AFTER = 1 / 3
LEAST_SECONDS = 3.0
"""How long reading takes at least, so that few files are not all read before the kill."""
LEASE_SECONDS = 2
BROWSER_PORT = 7378
"""Not the default port, which a server may have."""
LONGEST_RUN = 300.0
_HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(description="One agent is killed, another one goes on.")
    parser.add_argument("folder", nargs="?", type=Path, default=None)
    folder, pattern = parser.parse_args().folder, "*"
    if folder is None:
        folder, pattern = Path(sysconfig.get_path("stdlib")), "*.py"
    names = files_of(folder, pattern)
    if not names:
        fault = "contains no text files" if folder.is_dir() else "does not exist"
        print(f"the folder {folder} {fault}")
        return 2
    shutil.rmtree(DATA, ignore_errors=True)
    with running_server() as url, Client(url, make_key(COORDINATOR)) as client:
        intent = client.intents.create("Know the library")
        client.coordinators.create(intent.id, COORDINATOR, heartbeat_interval_seconds=600)
        task = client.tasks.create(
            intent.id,
            "read every file",
            assigned_agent=FIRST,
            capabilities_required=["reading"],
            input={
                "folder": str(folder.resolve()),
                "pattern": pattern,
                "pause_seconds": LEAST_SECONDS / len(names),
            },
        )
        say(f"{FIRST} is given the task to read {len(names):,} files of {folder}")
        run_and_kill(client, task.id, worker(url, FIRST), len(names))
        if client.tasks.get(task.id).status != "completed":
            so_far = completed(client, task.id)
            read = f"{so_far:,} of {len(names):,} files"
            say(f"It is killed with SIGKILL after {read}; its lease runs out")
        # What it had sent at the last moment may have arrived after it was gone.
        if wait_until_over(client, task.id) == "completed":
            killed_at = len(names)
            say(f"{FIRST} has read every file before it was killed: give the demo more files")
        else:
            killed_at = completed(client, task.id)
            client.tasks.assign(task.id, SECOND)
            say(f"{COORDINATOR} gives the task to {SECOND}, which reads what {FIRST} remembered:")
            with worker(url, SECOND) as process:
                process.wait(LONGEST_RUN)
        show_task(client, task.id)
        events = show_log(client, intent.id)
        sound = check(client, task.id, names, events, killed_at)
    show_commands(intent.id, task.id)
    return 0 if sound else 1


def show_commands(intent_id: str, task_id: str) -> None:
    command = os.path.relpath(Path(sys.executable).parent / "memorywall")
    place = f"--data {DATA} --agent {COORDINATOR}"
    say(f"Look closer, as {COORDINATOR}, the agent that owns the intent:")
    print(f"    {command} intents show {intent_id} {place}")
    print(f"    {command} intents log {intent_id} {place}")
    print(f"    {command} tasks show {task_id} {place}")
    say("In the browser, with the key that the first command prints:")
    print(f"    {command} keys create {place}")
    print(f"    {command} serve --data {DATA} --port {BROWSER_PORT}")


def say(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


@contextmanager
def running_server() -> Iterator[str]:
    """A server on an embedded database, on any free port; stopped at the end."""
    command = [
        sys.executable,
        "-m",
        "memorywall",
        "serve",
        "--no-access-log",
        "--data",
        str(DATA),
        "--port",
        "0",
    ]
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


def make_key(agent: str) -> str:
    """A key for an agent, made beside the running server."""
    command = [sys.executable, "-m", "memorywall", "keys", "create", "--data", str(DATA)]
    made = subprocess.run(
        [*command, "--agent", agent, "--json"], check=True, capture_output=True, text=True
    )
    key: str = json.loads(made.stdout)["key"]
    return key


def worker(url: str, agent: str) -> subprocess.Popen[bytes]:
    """Starts a worker of an agent, in a process of its own."""
    command = [sys.executable, str(_HERE / "reading_agent.py")]
    environment = {**os.environ, "MEMORYWALL_URL": url, "MEMORYWALL_API_KEY": make_key(agent)}
    return subprocess.Popen([*command, "--lease-seconds", str(LEASE_SECONDS)], env=environment)


def run_and_kill(client: Client, task_id: str, agent: subprocess.Popen[bytes], total: int) -> None:
    """Kills the worker part-way, as seen from its working memory. With few files it may have ended
    before."""
    with agent:
        deadline = time.monotonic() + LONGEST_RUN
        while agent.poll() is None and time.monotonic() < deadline:
            if completed(client, task_id) >= max(1, int(total * KILL_AFTER)):
                break
            time.sleep(0.01)
        agent.kill()
    print()


def completed(client: Client, task_id: str) -> int:
    """How many files the task's newest checkpoint counts."""
    namespace, key = PROGRESS
    checkpoints = client.memory.query(
        task_id=task_id, namespace=namespace, key=key, memory_type="working"
    )
    return max((one["completed"] for one in checkpoints), default=0)


def wait_until_over(client: Client, task_id: str) -> str:
    """Waits for the lease of the dead worker to run out, or for the task to be completed; returns
    the status of the task."""
    deadline = time.monotonic() + LONGEST_RUN
    while (status := client.tasks.get(task_id).status) not in ("ready", "completed"):
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return status


def show_task(client: Client, task_id: str) -> None:
    task = client.tasks.get(task_id)
    say(f"The task is {task.status}. Who had it:")
    rows = [
        [one.agent_id, one.assigned_by, one.accepted_at, one.ended_at or ""]
        for one in task.assignments
    ]
    print(tabulate(rows, headers=["agent", "assigned by", "taken up", "taken away"]))


def show_log(client: Client, intent_id: str) -> list[Any]:
    """Prints what is worth seeing of the intent's log, and returns all of it."""
    events: list[Any] = []
    while page := client.intents.events(
        intent_id, after=events[-1].seq if events else 0, limit=1000
    ):
        events.extend(page)
    say(f"The log of the intent: {len(events):,} events; seq numbers all events of the tenant")
    rows, skipped = [], 0
    for event in events:
        if event.type == "memory.updated":
            skipped += 1
            continue
        if skipped:
            rows.append(["…", "", f"checkpoints: {skipped:,}", ""])
            skipped = 0
        rows.append([event.seq, event.timestamp, event.type, event.actor])
    print(tabulate(rows, headers=["seq", "when", "event", "by"]))
    return events


def check(
    client: Client, task_id: str, names: list[str], events: list[Any], killed_at: int
) -> bool:
    """Compares the task's output and the log with a count of its own: no file twice, none
    skipped, every checkpoint written by who had the task."""
    digest = ""
    for name in names:
        digest = next_digest(digest, name)
    output = client.tasks.get(task_id).output or {}
    writers = Counter(
        event.actor
        for event in events
        if event.type in ("memory.created", "memory.updated")
        and event.task_id == task_id
        and (event.data.namespace, event.data.key) == PROGRESS
    )
    archived = [event for event in events if event.type == "memory.archived"]
    sound = (
        output == {"files": len(names), "digest": digest}
        and writers == Counter({FIRST: killed_at, SECOND: len(names) - killed_at})
        and len(archived) == 1
    )
    say(
        f"{len(names):,} files read, each exactly once: {writers[FIRST]:,} by {FIRST},"
        f" {writers[SECOND]:,} by {SECOND}; the working memory of both is archived in the log"
        if sound
        else "The output does not agree with the folder: a file was read twice or skipped"
    )
    return sound


if __name__ == "__main__":
    sys.exit(main())
