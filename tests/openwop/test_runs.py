"""Runs: their log, streams, replay."""

from __future__ import annotations

import pytest

from tests.openwop.host import RUNS, Host, host_of, memory, workflow
from tests.support.service import RunningService

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


async def test_a_run_whose_node_is_refused_fails(service: RunningService, host: Host) -> None:
    await host.put("team/notes", "of ada alone")
    bob = await host_of(service, "bob")
    document = workflow("write-then-read", "bobs")
    (first,) = document["nodes"]
    (second,) = workflow("write-then-read", "team/notes")["nodes"]
    document = {"nodes": [first, {**second, "id": "refused"}, {**first, "id": "later"}]}
    await host.install("two", document)
    body, key = {"workflowId": "two"}, {"Idempotency_Key": "once"}
    run_id = (await bob.do("POST", RUNS, body, 201, **key))["runId"]
    assert await bob.do("POST", RUNS, body, 201, **key) == {"runId": run_id}
    run = await bob.do("GET", f"{RUNS}/{run_id}")
    assert (run["status"], run["error"]["code"]) == ("failed", "forbidden")
    (written,) = await bob.list("bobs")
    assert run["variables"] == {"memoryReadback": written}
    events = await bob.events(run_id)
    assert [one["type"] for one in events] == [
        "run.started", "node.started", "memory.written", "node.completed", "node.started",
        "node.failed", "memory.written", "run.failed",
    ]  # fmt: skip
    assert events[5]["payload"] == {"nodeId": "refused", "error": run["error"]}
    assert events[7]["payload"] == {"error": run["error"], "failedNodeId": "refused"}
    fork = await bob.do("POST", f"{RUNS}/{run_id}:fork", {"fromSeq": 7}, 201)
    assert await bob.do("GET", f"{RUNS}/{fork['runId']}") == {**run, **fork}
    assert service.services.refusals.counts()["openwop_start_run", "ACCESS_DENIED"] == 1
    assert [one["content"] for one in await host.list("team/notes")] == ["of ada alone"]


async def test_agents_run_the_same_workflow(service: RunningService, host: Host) -> None:
    await host.run("hello", workflow())
    bob = await host_of(service, "bob")
    run_id = (await bob.do("POST", RUNS, {"workflowId": "hello"}, 201))["runId"]
    assert (await bob.do("GET", f"{RUNS}/{run_id}"))["status"] == "completed"
    (summary,) = await host.list("runs-of/bob")
    assert run_id in summary["content"]
