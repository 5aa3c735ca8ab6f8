"""Runs that go on over several transactions, as those of a host that executes nodes itself."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import httpx
import pytest

from memorywall.openwop.adapter import MemoryAdapter
from memorywall.openwop.runs import Run, resume, start
from memorywall.openwop.workspace import delete_file, put_file
from memorywall.records.errors import ResourceConflictError
from memorywall.records.feature_errors import SecretsUnavailableError
from memorywall.service.access.api_keys import ApiKeyAuthenticator
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.run_secrets import redact_secrets
from memorywall.service.runner.operation_runner import run_write
from memorywall.wire.openwop import StartRunRequest
from tests.openwop.host import FILES, JSON, RUNS, Host, host_of, memory, workflow
from tests.support.extent import chosen_seed
from tests.support.process import ServerProcess
from tests.support.service import RunningService, open_service

pytestmark = pytest.mark.anyio

Result = TypeVar("Result")
REF = "team/notes"
Step = Callable[[Run, MemoryAdapter], Awaitable[Result]]


class Steps:
    """Executes the steps of one run, each in a transaction of its own."""

    def __init__(self, service: RunningService) -> None:
        self.services = service.services
        self.run_id = ""

    async def begin(self) -> None:
        async def script(context: OperationContext) -> str:
            asked = StartRunRequest(workflow_id="own")
            return (await start(context, "own", asked, None, [REF])).id

        self.run_id = await self._write(script)

    async def step(self, step: Step[Result]) -> Result:
        async def script(context: OperationContext) -> Result:
            run = await resume(context, self.run_id)
            return await step(run, MemoryAdapter(context, run))

        return await self._write(script)

    async def _write(self, script: Callable[[OperationContext], Awaitable[Result]]) -> Result:
        key = self.key
        principal = await ApiKeyAuthenticator(self.services).authenticate(key, None)
        return await run_write(self.services, principal, script)

    key = ""


@pytest.fixture
async def steps(service: RunningService) -> Steps:
    made = Steps(service)
    made.key = await service.key("ada")
    return made


async def _put(run: Run, memory: MemoryAdapter, text: str = "mine") -> str:
    return (await memory.put(REF, text)).id


async def _list(run: Run, memory: MemoryAdapter) -> list[str]:
    return [one.content for one in await memory.list(REF)]


async def _end(run: Run, memory: MemoryAdapter) -> None:
    await run.end({}, {})


async def test_a_run_reads_its_snapshot_and_its_own_writes(host: Host, steps: Steps) -> None:
    before = await host.put(REF, "before")
    brief = await host.put(REF, "brief", expiresAt="2026-02-02T02:41:00Z")
    await steps.begin()
    later = await host.put(REF, "by another")
    own = await steps.step(_put)
    assert await steps.step(_list) == ["mine", "brief", "before"]
    assert len(await host.list(REF)) == 4

    async def get(run: Run, memory: MemoryAdapter) -> list[bool]:
        ids = (before["id"], brief["id"], own, later["id"], "mem_none")
        return [await memory.get(REF, one) is not None for one in ids]

    assert await steps.step(get) == [True, True, True, False, False]

    async def delete(run: Run, memory: MemoryAdapter) -> None:
        await memory.delete(REF, before["id"])

    await steps.step(delete)
    assert "before" not in str(await host.list(REF))
    assert await steps.step(_list) == ["mine", "brief", "before"]
    await host.do("POST", "/v1/test/memory/compact", {"memoryRef": REF})
    assert await steps.step(get) == [True, True, False, False, False]
    host_clock = steps.services.clock
    host_clock.not_before(host_clock.now() + 61_000)
    assert "brief" not in await steps.step(_list)
    await steps.step(_end)
    with pytest.raises(ResourceConflictError):
        await steps.step(_put)


async def test_the_view_of_a_run_is_read_over_http(
    host: Host, steps: Steps, service: RunningService
) -> None:
    before = await host.put(REF, "before")
    await steps.begin()
    later = await host.put(REF, "by another")
    own = await steps.step(_put)
    await host.do("DELETE", f"{memory(REF)}/{before['id']}", status=204)
    view = f"?runId={steps.run_id}"
    assert [one["id"] for one in await host.list(REF, view)] == [own, before["id"]]
    assert await host.do("GET", f"{memory(REF)}/{before['id']}{view}") == before
    await host.do("GET", f"{memory(REF)}/{later['id']}{view}", status=404)
    await host.do("GET", f"{memory(REF)}{view}&query=before", status=400)
    for tenant in ("default", "acme"):
        stranger = await host_of(service, "eve", tenant)
        missing = await stranger.do("GET", f"{memory(REF)}?runId=nothing", status=404)
        assert await stranger.do("GET", f"{memory(REF)}{view}", status=404) == missing


async def test_a_run_reads_the_workspace_as_it_was_at_its_start(
    host: Host, steps: Steps, service: RunningService
) -> None:
    for name in ("changed.md", "deleted.md", "same.md"):
        await host.do("PUT", f"{FILES}/{name}", {"content": "before"}, 201)
    service.clock.advance(1)
    await steps.begin()
    view = f"?runId={steps.run_id}"
    service.clock.advance(1)
    await host.do("PUT", f"{FILES}/changed.md", {"content": "after"})
    await host.do("PUT", f"{FILES}/new.md", {"content": "after"}, 201)
    await host.do("DELETE", f"{FILES}/deleted.md", status=204)
    await steps.step(_end)
    fork = await host.do("POST", f"{RUNS}/{steps.run_id}:fork", {"fromSeq": 0}, 201)
    for one in (view, f"?runId={fork['runId']}"):
        files = (await host.do("GET", f"{FILES}{one}"))["files"]
        assert [(f["path"], f["version"]) for f in files] == [("changed.md", 1), ("same.md", 1)]
        assert (await host.do("GET", f"{FILES}/changed.md{one}"))["content"] == "before"
        await host.do("GET", f"{FILES}/new.md{one}", status=404)
        await host.do("GET", f"{FILES}/changed.md{one}&version=1", status=400)
    assert (await host.do("GET", f"{FILES}/changed.md"))["content"] == "after"
    await host.do("GET", f"{FILES}?runId=nothing", status=404)


async def test_what_a_run_changes_in_the_workspace_is_in_its_log(host: Host, steps: Steps) -> None:
    await steps.begin()

    async def change(run: Run, memory: MemoryAdapter) -> None:
        for content in ("the canary", "the canary, again"):
            await put_file(run.context, "a/b.md", content, "text/plain", run=run)
        await delete_file(run.context, "a/b.md", run=run)

    await steps.step(change)
    # Nobody's run has made this one.
    await host.do("PUT", f"{FILES}/a/b.md", {"content": "by a client"}, 201)
    await steps.step(_end)
    fork = await host.do("POST", f"{RUNS}/{steps.run_id}:fork", {"fromSeq": 0}, 201)
    for run_id in (steps.run_id, fork["runId"]):
        events = await host.events(run_id)
        updates = [one["payload"] for one in events if one["type"] == "workspace.updated"]
        assert updates == [{"path": "a/b.md", "version": number} for number in (1, 2, 3)]
        assert "canary" not in str(events)
    assert (await host.do("GET", f"{FILES}/a/b.md"))["version"] == 1


async def test_a_run_writes_only_where_its_secrets_are(host: Host, steps: Steps) -> None:
    canary = "canary-value-1"
    await steps.begin()

    async def resolve(run: Run, memory: MemoryAdapter) -> None:
        await run.secret("key", canary)
        await memory.put(REF, f"The key is {canary}.")

    await steps.step(resolve)
    # Another process has no secrets.
    secrets, tenant = steps.services.secrets, "default"
    assert secrets.forget(tenant, steps.run_id)
    before = await host.events(steps.run_id)
    with pytest.raises(SecretsUnavailableError):
        await steps.step(_put)
    assert await host.events(steps.run_id) == before
    body = {"fromSeq": 0, "mode": "replay"}
    await host.do("POST", f"{RUNS}/{steps.run_id}:fork", body, 409)
    secrets.register(tenant, steps.run_id, "key", canary)

    async def put(run: Run, memory: MemoryAdapter) -> None:
        await memory.put(REF, canary)
        await run.end({"key": canary}, {}, {"code": "failed", "message": f"no {canary}"})

    await steps.step(put)
    run = await host.do("GET", f"{RUNS}/{steps.run_id}")
    assert (run["status"], run["error"]["message"]) == ("failed", "no [REDACTED:key]")
    assert canary not in str(run) + str(await host.events(steps.run_id))
    (newest, *_) = await host.list(REF)
    assert newest["content"] == "[REDACTED:key]"
    assert secrets.find(tenant, steps.run_id, "key") is None


async def test_secrets_are_redacted_without_the_seams(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        host, steps = await host_of(service), Steps(service)
        steps.key = await service.key("ada")
        await steps.begin()

        async def resolve(run: Run, memory: MemoryAdapter) -> None:
            await run.secret("key", "canary-value-2")
            await memory.put(REF, "The key is canary-value-2.", ["is:canary-value-2"])

        await steps.step(resolve)
        (entry,) = await host.list(REF)
        assert entry["content"] == "The key is [REDACTED:key]."
        assert entry["tags"] == ["is:[REDACTED:key]"]
        assert "canary" not in str(await host.events(steps.run_id))


async def test_a_stream_follows_a_run_to_its_end(host: Host, steps: Steps) -> None:
    await steps.begin()
    path = f"{RUNS}/{steps.run_id}/events"
    following = asyncio.ensure_future(host.client.get(path))
    await steps.step(_put)
    poll = await host.do("GET", f"{path}/poll?lastSequence=0")
    assert [one["type"] for one in poll["events"]] == ["memory.written"]
    assert poll["isComplete"] is False
    assert (await host.do("GET", f"{RUNS}/{steps.run_id}"))["status"] == "running"
    await steps.step(_end)
    text = (await asyncio.wait_for(following, 30)).text
    kinds = [line.removeprefix("event: ") for line in text.splitlines() if "event: " in line]
    assert kinds == ["run.started", "memory.written", "run.completed"]


async def test_runs_at_once_have_logs_of_their_own(service: RunningService) -> None:
    hosts = [await host_of(service, "ada", tenant) for tenant in ("default", "acme")]
    runs = await asyncio.gather(
        *(one.run(f"w{n}", workflow("write-then-read")) for n in range(10) for one in hosts)
    )
    for place, run in enumerate(runs):
        host, other = hosts[place % 2], hosts[1 - place % 2]
        events = await host.events(run["runId"])
        assert [one["sequence"] for one in events] == list(range(6))
        assert {one["runId"] for one in events} == {run["runId"]}
        missing = await other.do("GET", f"{RUNS}/nothing", status=404)
        assert await other.do("GET", f"{RUNS}/{run['runId']}", status=404) == missing


def test_secrets_are_replaced_longest_first() -> None:
    from memorywall.service.requests.run_secrets import RunSecrets

    secrets = RunSecrets()
    for name, value in {"a": "12345678", "b": "1234567890", "c": "(.*)+$[x", "d": "short"}.items():
        secrets.register("t", "r", name, value)
    found = secrets.of("t", "r")
    assert redact_secrets(found, "12345678 1234567890 (.*)+$[x short") == (
        "[REDACTED:a] [REDACTED:b] [REDACTED:c] short"
    )
    assert redact_secrets(found, {"12345678": ["1234567890", 12345678, None]}) == {
        "[REDACTED:a]": ["[REDACTED:b]", 12345678, None]
    }
    assert secrets.of("t", "other") == secrets.of("u", "r") == []


@pytest.mark.sqlite("what a commit means is the same on both stores, and other tests kill servers")
def test_a_killed_server_leaves_whole_runs(tmp_path: Path) -> None:
    chance = random.Random(chosen_seed())
    body = {"workflowId": "conformance-agent-memory-roundtrip"}
    many = json.dumps(workflow("write-then-read", count=1_000))
    acknowledged: list[str] = []
    took: list[float] = []
    with ServerProcess(tmp_path, "--openwop-test-seams") as server:
        enough = threading.Event()
        with server.client() as client, ThreadPoolExecutor(1) as pool:

            def run_on() -> None:
                with suppress(httpx.HTTPError):
                    for _ in range(4):
                        acknowledged.append(client.post(RUNS, json=body).json()["runId"])
                    file = {"content": many, "contentType": "application/json"}
                    client.put(f"{FILES}/workflows/many.json", json=file)
                    while True:
                        begun = time.monotonic()
                        ran = client.post(RUNS, json={"workflowId": "many"}).json()
                        acknowledged.append(ran["runId"])
                        took.append(time.monotonic() - begun)
                        enough.set()

            running = pool.submit(run_on)
            assert enough.wait(60)
            # Whatever the moment, which is mostly in the middle of a run with many writes.
            time.sleep(chance.random() * took[0])
            server.kill()
            running.result()
    with ServerProcess(tmp_path, "--openwop-test-seams") as server, server.client() as client:
        found = client.get("/api/v1/sessions?limit=100").json()["sessions"]
        assert {one["id"] for one in found} >= set(acknowledged)
        assert len(found) <= len(acknowledged) + 1
        for one in found:
            events = client.get(f"{RUNS}/{one['id']}/events", headers=JSON).json()["events"]
            kinds = [event["type"] for event in events]
            written = kinds.count("memory.written")
            assert written in (2, 1_001)
            assert (kinds[0], kinds[-1], len(kinds)) == (
                "run.started",
                "run.completed",
                written + 4,
            )
            assert [event["sequence"] for event in events] == list(range(len(events)))
