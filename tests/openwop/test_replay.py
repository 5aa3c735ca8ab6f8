"""Replay: a fork repeats the log, writes nothing, and reads what the run has read."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memorywall.jobs.expire_entries import EXPIRE_JOB
from memorywall.jobs.job_runner import run_everywhere
from tests.openwop.host import RUNS, Host, host_of, memory, workflow
from tests.support.service import RunningService, open_service

pytestmark = pytest.mark.anyio

FORGET = "/v1/host/sample/memory/forget"
UNAVAILABLE = "replay_memory_snapshot_unavailable"


async def _fork(host: Host, run_id: str, sequence: Any = 0, status: int = 201) -> Any:
    body = {"fromSeq": sequence, "mode": "replay"}
    return await host.do("POST", f"{RUNS}/{run_id}:fork", body, status)


async def _replayed(host: Host, run: dict[str, Any]) -> dict[str, Any]:
    """Forks a run and asserts that the fork repeats it; returns the fork."""
    before = await host.events(run["runId"])
    fork_id = (await _fork(host, run["runId"]))["runId"]
    fork: dict[str, Any] = await host.do("GET", f"{RUNS}/{fork_id}")
    assert fork == {**run, "runId": fork_id}
    after = await host.events(fork_id)
    own = ("runId", "eventId")
    assert [{k: v for k, v in one.items() if k not in own} for one in after] == [
        {k: v for k, v in one.items() if k not in own} for one in before
    ]
    assert {one["eventId"] for one in after}.isdisjoint(one["eventId"] for one in before)
    return fork


async def test_a_fork_repeats_the_run_after_its_entries_are_gone(
    host: Host, service: RunningService
) -> None:
    lasting = await host.put("team/notes", "before", tags=["subject:eve"])
    brief = await host.put("team/notes", "brief", expiresAt="2026-02-02T02:41:00Z")
    run = await host.run("probe", workflow("cross-tenant-probe", probeMemoryRef="team/other"))
    listed = run["variables"]["ownerProbe"]
    own = run["variables"]["ownerEntryId"]
    assert [one["id"] for one in listed] == [own, brief["id"], lasting["id"]]
    entries = await host.list("team/notes")
    await _replayed(host, run)
    assert await host.list("team/notes") == entries

    await host.do("DELETE", f"{memory('team/notes')}/{lasting['id']}", status=204)
    service.clock.advance(61)
    assert [one["id"] for one in await host.list("team/notes")] == [own]
    await _replayed(host, run)
    await run_everywhere(service.services, EXPIRE_JOB)
    fork = await _replayed(host, run)
    await host.do("POST", "/v1/test/memory/compact", {"memoryRef": "team/notes"})
    await _replayed(host, run)
    await _replayed(host, fork)


@pytest.mark.parametrize("way", ["subject", "native"])
async def test_what_is_erased_is_replayed_no_more(
    host: Host, service: RunningService, way: str
) -> None:
    canary = "the-canary-of-eve"
    entry = await host.put("team/notes", canary, tags=["subject:eve"])
    body = workflow("cross-tenant-probe")
    run = await host.run("probe", body)
    assert canary in str(run)
    fork = await _replayed(host, run)
    if way == "subject":
        await host.do("DELETE", f"{memory('team/notes')}/{entry['id']}", status=204)
        forgotten = await host.do("POST", FORGET, {"subject": "eve"})
        assert forgotten["forgotten"] >= 1
    else:
        await host.do("DELETE", f"/api/v1/memory/{entry['id']}", status=204)
    for one in (run, fork):
        refusal = await _fork(host, one["runId"], 1, 422)
        assert refusal["error"] == UNAVAILABLE
        assert refusal["details"] == {
            "fromSeq": 1,
            "sourceRunId": one["runId"],
            "reason": "event_log_unavailable",
        }
        shown = await host.do("GET", f"{RUNS}/{one['runId']}")
        assert canary not in str(shown) + str(await host.events(one["runId"]))


async def test_what_openwop_forgets_stays_for_replays(host: Host) -> None:
    entry = await host.put("team/notes", "before")
    run = await host.run("probe", workflow("cross-tenant-probe"))
    named = {"memoryRef": "team/notes", "memoryId": entry["id"]}
    for wrong in ({}, {"memoryRef": "team/notes"}, {**named, "subject": "eve"}):
        await host.do("POST", FORGET, wrong, 422)
    assert await host.do("POST", FORGET, named) == {"forgotten": 1}
    await host.do("POST", FORGET, named, 404)
    assert entry not in await host.list("team/notes")
    fork = await _replayed(host, run)
    assert entry in fork["variables"]["ownerProbe"]


async def test_a_run_that_wrote_about_a_forgotten_person_is_not_replayed(host: Host) -> None:
    await host.do(
        "POST",
        "/v1/test/memory/seed",
        {"memoryRef": "team/notes", "entries": [{"content": "x", "tags": ["subject:eve"]}]},
        201,
    )
    run = await host.run("notes", workflow("write-then-read"))
    await host.do("POST", FORGET, {"subject": "eve"})
    assert (await _fork(host, run["runId"], 0, 422))["error"] == UNAVAILABLE


async def test_bounds_come_before_retention(tmp_path: Path) -> None:
    retention = timedelta(days=1)
    async with open_service(
        tmp_path, openwop_test_seams=True, openwop_retention=retention
    ) as service:
        host = await host_of(service)
        run = await host.run("notes", workflow("write-then-read"))
        last = (await host.events(run["runId"]))[-1]["sequence"]
        service.clock.advance(86_399)
        assert await _replayed(host, run)
        service.clock.advance(1)
        for sequence in (-1, last + 1, 2**70):
            refusal = await _fork(host, run["runId"], sequence, 422)
            assert refusal["error"] == (
                "invalid_from_seq" if sequence < 2**63 else refusal["error"]
            )
        refusal = await _fork(host, run["runId"], last, 422)
        assert refusal["error"] == UNAVAILABLE
        assert refusal["details"]["reason"] == "retention_expired"


async def test_no_copy_stays_without_a_run(host: Host, service: RunningService) -> None:
    entry = await host.put("team/lonely", "nobody ran")
    await host.do("DELETE", f"{memory('team/lonely')}/{entry['id']}", status=204)
    found = await host.do("GET", "/api/v1/memory?kind=kept_memory")
    assert found["entries"] == []


async def test_a_thousand_writes_are_attributed_once_each(host: Host) -> None:
    run = await host.run("many", workflow("write-then-read", count=1_000))
    events = await host.events(run["runId"])
    written = [one for one in events if one["type"] == "memory.written"]
    assert len({one["payload"]["memoryId"] for one in written}) == len(written) == 1_001
    assert [one["sequence"] for one in events] == list(range(len(events)))
    assert "remembers" not in str(events)
    listed = {one["id"] for one in await host.list("team/notes")}
    assert listed == {
        one["payload"]["memoryId"] for one in written if one["payload"]["memoryRef"] == "team/notes"
    }
    await _replayed(host, run)
    page = await host.do("GET", f"{RUNS}/{run['runId']}/events/poll?lastSequence=1000")
    assert page["isComplete"]
    assert page["events"] == events[1_001:]
    page = await host.do("GET", f"{RUNS}/{run['runId']}/events/poll?lastSequence={2**53}")
    assert page == {"events": [], "isComplete": True}
