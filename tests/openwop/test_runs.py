"""Runs: their log, streams, replay."""

from __future__ import annotations

import pytest

from tests.openwop.host import Host, memory, workflow

pytestmark = pytest.mark.anyio


async def test_a_noop_run_completes_and_writes_its_summary(host: Host) -> None:
    run = await host.run("hello", workflow(), greeting="hi")
    assert run["status"] == "completed"
    assert run["workflowId"] == "hello"
    assert run["variables"] == {"greeting": "hi"}
    events = await host.events(run["runId"])
    assert [one["sequence"] for one in events] == list(range(len(events)))
    kinds = ["run.started", "node.started", "node.completed", "memory.written", "run.completed"]
    assert [one["type"] for one in events] == kinds
    written = events[3]["payload"]
    assert written["memoryRef"] == "runs/hello"
    summary = await host.do("GET", f"{memory('runs/hello')}/{written['memoryId']}")
    assert summary["content"].startswith(f"Run {run['runId']}")
    assert summary["content"] not in str(events)


async def test_a_run_reads_back_what_it_writes(host: Host) -> None:
    run = await host.run("notes", workflow("write-then-read"))
    entry = run["variables"]["memoryReadback"]
    assert entry in await host.list("team/notes")
    assert run["agent"]["memoryRef"] == "team/notes"
