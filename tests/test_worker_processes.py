"""Workers as processes: killed, paused, told to end, and two at once (RFC-0015 section 8)."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memorywall.records.task import TaskStatus
from memorywall.wire.tasks import TaskResponse
from tests.support.programs import start_python
from tests.support.workers import Shop, eventually, shop
from tests.test_sdk_support import fresh, server

__all__ = ["server", "shop"]

INVOICES = 30

# Each invoice is written to a file when it is done; doing one twice would be seen there.
BATCH = f"""
import signal, sys, time
from memorywall import Worker

# Whoever starts the tests in the background makes their processes deaf to it.
signal.signal(signal.SIGINT, signal.default_int_handler)
file, dies_after = sys.argv[1], int(sys.argv[2])

@Worker(capabilities=["billing"])
def process_invoices(ctx):
    progress = ctx.memory.get("invoices", "progress")
    resumed = {{"resumed_from": progress.id}} if progress else {{}}
    for n in range(progress["last"] if progress else 0, {INVOICES}):
        with open(file, "a") as done:
            print(ctx.agent_id, n, file=done)
        ctx.memory.set("invoices", "progress", {{"last": n + 1, **resumed}}, tags=["batch"])
        if n + 1 == dies_after:
            print("paused", flush=True)
            time.sleep(3_600)
    return {{"resumed": ctx.resumed, "from": resumed}}

process_invoices.run(agent=sys.argv[3], lease_seconds=int(sys.argv[4]), until_idle=dies_after == 0)
print("ended", flush=True)
"""

LATE = """
import sys
from memorywall import Worker
from memorywall.records.errors import FencedError

@Worker()
def work(ctx):
    if ctx.input.get("short"):
        return {"short": True}
    ctx.memory.set("invoices", "progress", {"n": 1})
    print("paused", flush=True)
    sys.stdin.readline()
    try:
        ctx.memory.set("invoices", "progress", {"n": 2})
    except FencedError:
        print("fenced", ctx.lost, flush=True)
    return {"late": True}

work.run(agent=sys.argv[1], lease_seconds=2, max_tasks=2, poll_interval=0.1)
print("ended", flush=True)
"""

MANY = """
import sys
from memorywall import Worker

@Worker(capabilities=["count"])
def work(ctx):
    ctx.memory.set("counting", "now", {"n": ctx.input["n"]})
    with open(sys.argv[1], "a") as done:
        print(ctx.agent_id, ctx.input["n"], file=done)
    assert ctx.memory.get("counting", "now")["n"] == ctx.input["n"]

print("begun", flush=True)
sys.stdin.readline()
work.run(agent=sys.argv[2], until_idle=True)
print("ended", flush=True)
"""


@contextmanager
def worker(
    shop: Shop, program: str, *arguments: object, stderr: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A worker as a process of its own, killed at the end if it still runs."""
    environment = {
        **os.environ,
        "MEMORYWALL_URL": shop.server.url,
        "MEMORYWALL_API_KEY": shop.server.dev_key,
    }
    process = start_python(
        "-W",
        "error",
        "-c",
        program,
        *map(str, arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=environment,
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def is_ready(shop: Shop, task: TaskResponse) -> Callable[[], bool]:
    def look() -> bool:
        return shop.look(task).status is TaskStatus.READY

    return look


def done_by(file: Path) -> list[tuple[str, int]]:
    words = [one.split() for one in file.read_text().splitlines()]
    return [(agent, int(number)) for agent, number in words]


def test_successor_resumes_the_task_of_a_killed_worker(shop: Shop, tmp_path: Path) -> None:
    first, second = fresh("agent_billing"), fresh("agent_billing")
    task = shop.task(first, capabilities_required=["billing"])
    file = tmp_path / "done"
    with worker(shop, BATCH, file, 12, first, 1) as process:
        assert line(process) == "paused"
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
    eventually(is_ready(shop, task))
    shop.boss.tasks.assign(shop.look(task), second)
    with worker(shop, BATCH, file, 0, second, 30) as process:
        assert line(process) == "ended"
        assert process.wait(30) == 0

    assert [n for _, n in done_by(file)] == list(range(INVOICES))
    assert {agent for agent, n in done_by(file) if n < 12} == {first}
    assert {agent for agent, n in done_by(file) if n >= 12} == {second}
    ended = shop.look(task)
    entries = {one["agent_id"]: one for one in shop.archived(task)}
    assert entries[first]["value"] == {"last": 12}
    assert entries[second]["value"]["last"] == INVOICES
    resumed_from = entries[second]["value"]["resumed_from"]
    assert ended.output == {"resumed": True, "from": {"resumed_from": resumed_from}}
    assert [one.agent_id for one in ended.assignments] == [first, second]
    check_log(shop, task, [(first, 12), (second, INVOICES - 12)], resumed_from)


def check_log(
    shop: Shop, task: TaskResponse, writes: list[tuple[str, int]], resumed_from: str
) -> None:
    """The intent's log says who wrote what, and why the task changed hands."""
    log = [
        one for one in shop.boss.intents.events(shop.intent, limit=1_000) if one.task_id == task.id
    ]
    for agent, count in writes:
        kinds = ("memory.created", "memory.updated")
        assert len([1 for one in log if one.type in kinds and one.agent_id == agent]) == count
    (created, _) = [one for one in log if one.type == "memory.created"]
    assert created.data.entry_id == resumed_from
    released = [one.data for one in log if one.type == "lease_released"]
    assert [one["reason"] for one in released if "reason" in one] == ["expired"]
    (given_away,) = [one.data for one in log if one.type == "task.delegated"]
    assert given_away["previous_agent"] == writes[0][0]


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_stopped_worker_releases_its_task(shop: Shop, tmp_path: Path, sign: signal.Signals) -> None:
    agent = fresh("agent_billing")
    task = shop.task(agent, capabilities_required=["billing"])
    file = tmp_path / "done"
    with worker(shop, BATCH, file, 3, agent, 3_600, stderr=subprocess.PIPE) as process:
        assert line(process) == "paused"
        process.send_signal(sign)
        printed, errors = process.communicate(timeout=30)
    assert (process.returncode, printed) == (0, "ended\n")
    reason = "terminated" if sign is signal.SIGTERM else "interrupted"
    assert errors == f"worker stopped after 1 task: {reason}\n"
    assert shop.look(task).status is TaskStatus.READY
    with worker(shop, BATCH, file, 0, agent, 30) as process:
        assert line(process) == "ended"
    assert [n for _, n in done_by(file)] == list(range(INVOICES))
    assert shop.look(task).status is TaskStatus.COMPLETED


WAITING = """
import signal, sys
from memorywall import Worker

signal.signal(signal.SIGINT, signal.default_int_handler)
prefix = "async " if sys.argv[2] == "async" else ""
names = {"Worker": Worker}
exec(f"@Worker()\\n{prefix}def work(ctx): pass", names)
names["work"].run(agent=sys.argv[1], poll_interval=30)
print("ended", flush=True)
"""


@pytest.mark.parametrize("form", ["sync", "async"])
def test_interrupted_worker_says_so(shop: Shop, form: str) -> None:
    agent = fresh("idle")
    task = shop.task(agent)

    def is_done() -> bool:
        return shop.look(task).status is TaskStatus.COMPLETED

    with worker(shop, WAITING, agent, form, stderr=subprocess.PIPE) as process:
        eventually(is_done)
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=30)
    assert (process.returncode, printed) == (0, "ended\n")
    assert errors == "worker stopped after 1 task: interrupted\n"


def test_a_worker_that_was_paused_too_long_writes_nothing(shop: Shop) -> None:
    first, second = fresh("a"), fresh("b")
    task = shop.task(first)
    with worker(shop, LATE, first) as process:
        assert line(process) == "paused"
        process.send_signal(signal.SIGSTOP)
        try:
            eventually(is_ready(shop, task))
            shop.boss.tasks.assign(shop.look(task), second)
            with shop.client(second) as client:
                taken = client.tasks.claim(task.id, lease_seconds=600)
                scoped = client.scoped(task_id=task.id, fencing_token=taken.lease.fencing_token)
                scoped.memory.set("invoices", "progress", {"n": 10})
        finally:
            process.send_signal(signal.SIGCONT)
        go_on(process)
        assert line(process) == "fenced True"
        short = shop.task(first, input={"short": True})
        assert line(process) == "ended"
    assert shop.look(short).output == {"short": True}
    now = shop.look(task)
    assert (now.assigned_agent, now.status, now.output) == (second, "claimed", None)
    with shop.client(second) as client:
        found = client.memory.query(task_id=task.id)
    assert {entry.agent_id: entry["n"] for entry in found} == {first: 1, second: 10}


def test_two_workers_do_every_task_once(shop: Shop, tmp_path: Path) -> None:
    agents = [fresh("w"), fresh("w")]
    file = tmp_path / "done"
    for agent in agents:
        shop.boss.intents.grant(shop.intent, agent, "write")
    tasks = [shop.task(input={"n": n}, capabilities_required=["count"]) for n in range(50)]
    with (
        worker(shop, MANY, file, agents[0]) as one,
        worker(shop, MANY, file, agents[1]) as two,
    ):
        for process in (one, two):
            assert line(process) == "begun"
        for process in (one, two):
            go_on(process)
        for process in (one, two):
            assert line(process) == "ended"
    done = done_by(file)
    assert sorted(n for _, n in done) == list(range(50))
    assert {agent for agent, _ in done} == set(agents)
    by = {n: agent for agent, n in done}
    for n, task in enumerate(tasks):
        ended = shop.look(task)
        assert (ended.status, ended.assigned_agent) == ("completed", by[n])
        (entry,) = shop.archived(task)
        assert (entry["agent_id"], entry["value"]) == (by[n], {"n": n})


def test_a_lease_is_kept_for_as_long_as_the_work_takes(shop: Shop, tmp_path: Path) -> None:
    agent = fresh("agent_billing")
    task = shop.task(agent, capabilities_required=["billing"])
    seen: set[str] = set()
    begun = time.monotonic()

    def has_held_long() -> bool:
        seen.add(shop.look(task).status)
        with shop.client(agent) as client:
            assert client.tasks.next(["billing"]) is None
        return time.monotonic() - begun > 4

    with worker(shop, BATCH, tmp_path / "done", 1, agent, 1) as process:
        assert line(process) == "paused"
        eventually(has_held_long)
    assert seen == {"running"}
