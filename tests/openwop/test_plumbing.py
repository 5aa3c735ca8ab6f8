"""Discovery, errors, authentication, streams, files, agents, families, seams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from memorywall.openwop.families import FAMILIES, FIXTURES
from memorywall.openwop.table import FUNCTIONS
from memorywall.records.errors import ConfigurationError
from memorywall.wire.openwop import OPENWOP_BY_NAME
from tests.openwop.host import FILES, RUNS, Host, host_of, memory, workflow
from tests.openwop.payloads import MANIFEST, payloads_of
from tests.openwop.schemas import SCHEMAS
from tests.support.service import RunningService, open_service

pytestmark = pytest.mark.anyio

DISCOVERY = "/.well-known/openwop"
BUILT = [one.name for one in FAMILIES if not one.missing]


def _flags(document: Any, path: str = "") -> dict[str, Any]:
    if isinstance(document, dict):
        found: dict[str, Any] = {}
        for name, one in document.items():
            found |= _flags(one, f"{path}.{name}")
        return found
    return {path: document}


async def test_discovery_needs_no_key_and_has_only_true_flags(service: RunningService) -> None:
    document = (await service.client().get(DISCOVERY)).json()
    assert document["protocolVersion"] == "1.0"
    assert document["memory"] == document["capabilities"]["memory"]
    assert document["agents"] == {"memoryBackends": ["long-term"]}
    assert not [name for name, one in _flags(document).items() if one is False]
    assert document["fixtures"] == sorted(FIXTURES)


@pytest.mark.parametrize("family", BUILT)
async def test_a_family_that_is_off_loses_its_flag_and_its_routes(
    tmp_path: Path, family: str
) -> None:
    row = next(one for one in FAMILIES if one.name == family)
    async with open_service(tmp_path, openwop_off=(family,), openwop_test_seams=True) as service:
        host = await host_of(service)
        shown = _flags(await host.do("GET", DISCOVERY))
        assert shown.keys().isdisjoint(_flags(row.flag))
        for name in row.routes:
            one = OPENWOP_BY_NAME[name]
            path = one.path.replace("{path:path}", "a.md").format(
                memory_ref="a", memory_id="b", run_id="c"
            )
            body = {"content": "x"} if one.method == "PUT" else None
            body = {"fromSeq": 0} if name == "openwop_fork_run" else body
            body = {"memoryRef": "a"} if name == "openwop_compact_memory" else body
            refusal = await host.do(one.method, path, body, 501)
            assert refusal["error"] == "capability_not_provided"
        if family == "memory.search":
            await host.do("GET", f"{memory('a')}?query=tea", status=501)
            assert await host.list("a") == []
        if family == "memory.attribution":
            run_id = (await host.do("POST", RUNS, {"workflowId": "conformance-noop"}, 201))["runId"]
            assert "memory.written" not in str(await host.events(run_id))


async def test_an_unknown_family_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"memory\.compaction"):
        async with open_service(tmp_path, openwop_off=("memory.dreams",)):
            pass


async def test_every_operation_has_a_function() -> None:
    assert OPENWOP_BY_NAME.keys() <= FUNCTIONS.keys()
    named = {name for one in FAMILIES for name in one.routes} | {one.seam for one in FAMILIES}
    assert named - {""} <= OPENWOP_BY_NAME.keys()


async def test_seams_are_not_there_while_they_are_off(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        host = await host_of(service)
        assert "fixtures" not in await host.do("GET", DISCOVERY)
        body = {"memoryRef": "a", "entries": [{"content": "x"}]}
        await host.do("POST", "/v1/test/memory/seed", body, 404)
        await host.do("GET", "/v1/memory/a", status=404)
        await host.do("PUT", "/v1/memory/a/b", {"content": "x"}, 404)
        await host.do("DELETE", "/v1/memory/a/b", status=404)
        assert await host.list("a") == []
        await host.do("POST", RUNS, {"workflowId": "conformance-noop"}, 404)
        await host.install("probe", workflow("write-then-read"))
        await host.do("POST", RUNS, {"workflowId": "probe"}, 422)
        assert (await host.run("hello", workflow()))["status"] == "completed"


async def test_the_workflows_of_the_protocols_tests_complete(host: Host) -> None:
    found = {}
    for name in FIXTURES:
        body = {"workflowId": name, "inputs": {"payload": {"a": 1}}}
        run_id = (await host.do("POST", RUNS, body, 201))["runId"]
        run = await host.do("GET", f"{RUNS}/{run_id}")
        assert run["status"] == "completed"
        found[name.removeprefix("conformance-")] = run
    readback = found["agent-memory-redaction"]["variables"]["memoryReadback"]
    assert "[REDACTED:conformance-test-secret]" in readback["content"]
    ttl = found["agent-memory-ttl"]["variables"]
    assert [one["id"] for one in ttl["memoryList"]] == [ttl["freshId"]]
    probe = found["agent-memory-cross-tenant"]["variables"]
    assert probe["crossTenantProbe"] == []
    assert [one["id"] for one in probe["ownerProbe"]] == [probe["ownerEntryId"]]
    events = await host.events(found["identity"]["runId"])
    outputs = [one["payload"]["outputs"] for one in events if "outputs" in one["payload"]]
    assert outputs == [{"payload": {"a": 1}}]


async def test_errors_are_flat_everywhere(host: Host, service: RunningService) -> None:
    anonymous = Host(service.client())
    for path in (f"{RUNS}/x", "/v1/agents", "/v1/memory/a", FILES):
        assert (await anonymous.do("GET", path, status=401))["error"] == "unauthenticated"
    assert (await host.do("GET", "/v1/nothing", status=404))["error"] == "not_found"
    await host.do("GET", "/v1", status=404)
    assert (await host.do("DELETE", RUNS, status=405))["error"] == "method_not_allowed"
    for content, status in (
        (b"[" * 200 + b"]" * 200, 400),
        (b'{"workflowId": "\\ud800"}', 400),
        (b"not json", 400),
        (b"", 400),
        (b'{"workflowId": "a", "workflowId": "b"}', 400),
        (b'{"workflowId": "a", "unknown": 1}', 422),
        (b'{"workflowId": "nobody knows"}', 404),
        (b'{"workflowId": "../../x"}', 404),
        (b'{"inputs": {}}', 422),
    ):
        headers = {"Content-Type": "application/json"}
        reply = await host.client.post(RUNS, content=content, headers=headers)
        assert reply.status_code == status, (content[:40], reply.text)
        assert {"error", "message"} <= reply.json().keys() <= {"error", "message", "details"}
    headers = {"Content-Type": "text/plain"}
    reply = await host.client.post(RUNS, content=b"{}", headers=headers)
    assert (reply.status_code, reply.json()["error"]) == (415, "unsupported_media_type")
    await host.do("GET", f"{RUNS}/x/events/poll?lastSequence=many", status=400)
    await host.do("GET", f"{RUNS}/x/events/poll?lastSequence={2**60}", status=400)
    await host.do("GET", f"{memory('a')}?limit=-1", status=400)


async def test_workflows_that_cannot_run_are_refused(host: Host) -> None:
    for document in (
        {"nodes": []},
        {"nodes": 1},
        workflow([]),  # type: ignore[arg-type]
        workflow("dream"),
        workflow("write-then-read", ""),
        workflow("write-then-read", "../x"),
        workflow("write-then-read", count=0),
        {"nodes": [{"id": "a", "typeId": "core.llm"}]},
        {**workflow(), "variables": [{"name": "needed", "required": True}]},
    ):
        await host.install("bad", document)
        await host.do("POST", RUNS, {"workflowId": "bad"}, 422)
    sessions = await host.do("GET", "/api/v1/sessions")
    assert sessions["sessions"] == []


async def test_a_repeated_request_starts_one_run(host: Host) -> None:
    body, key = {"workflowId": "conformance-noop"}, {"Idempotency_Key": "once"}
    first = await host.do("POST", RUNS, body, 201, **key)
    assert await host.do("POST", RUNS, body, 201, **key) == first
    await host.do("POST", RUNS, {**body, "tags": ["other"]}, 422, **key)
    assert len(await host.list("runs/conformance-noop")) == 1


async def test_a_stream_resumes_and_ends(host: Host) -> None:
    run = await host.run("hello", workflow())
    path = f"{RUNS}/{run['runId']}/events"
    whole = (await host.client.get(path)).text
    ids = [line for line in whole.splitlines() if line.startswith("id: ")]
    assert ids == [f"id: {number}" for number in range(5)]
    assert "event: run.completed" in whole
    later = (await host.client.get(path, headers={"Last-Event-ID": "2"})).text
    assert whole.endswith(later)
    assert later.startswith("id: 3\n")
    assert (await host.client.get(path, headers={"Last-Event-ID": "99"})).text.strip() in (
        "", ": alive"
    )  # fmt: skip
    await host.do("GET", path, status=400, Last_Event_ID="x")


async def test_files_have_versions_and_preconditions(host: Host) -> None:
    path = f"{FILES}/notes/today.md"
    first = await host.do("PUT", path, {"content": "one"}, 201)
    assert first["version"] == 1
    second = await host.do("PUT", path, {"content": "two"}, If_Match=first["etag"])
    assert second["version"] == 2
    refusal = await host.do("PUT", path, {"content": "three"}, 409, If_Match=first["etag"])
    assert (refusal["error"], refusal["details"]) == ("workspace_conflict", {"currentVersion": 2})
    assert (await host.do("GET", path))["content"] == "two"
    assert (await host.do("GET", f"{path}?version=1"))["content"] == "one"
    await host.do("GET", f"{path}?version=9", status=404)
    (entry,) = (await host.do("GET", "/api/v1/memory?kind=workspace_file"))["entries"]
    patch = {"sensitivity": "restricted"}
    second = await host.do("PATCH", f"/api/v1/memory/{entry['id']}", patch, If_Match="2")
    second = await host.do("GET", path)
    assert (second["version"], second["content"]) == (3, "two")
    await host.do("PUT", path, {"content": "two"}, If_Match="3")
    second = await host.do("GET", path)
    (listed,) = (await host.do("GET", FILES))["files"]
    assert listed == {name: one for name, one in second.items() if name != "content"}
    await host.do("DELETE", path, status=409, If_Match='"1"')
    await host.do("PUT", path, {"content": "x"}, 409, If_Match='"of another host"')
    await host.do("DELETE", path, status=204, If_Match='"4"')
    await host.do("GET", path, status=404)
    await host.do("PUT", f"{FILES}/a/../b", {"content": ""}, 422)
    await host.do("PUT", f"{FILES}/a%2F..%2Fb", {"content": ""}, 422)
    refusal = await host.do("PUT", path, {"content": "x" * 32_001}, 413)
    assert refusal["error"] == "workspace_too_large"


@pytest.mark.parametrize("off", [(), ("memory",)])
async def test_the_inventory_names_what_an_agent_lacks(
    tmp_path: Path, off: tuple[str, ...]
) -> None:
    async with open_service(tmp_path, openwop_off=off) as service:
        host = await host_of(service)
        await host.do("PUT", f"{FILES}/agents/helper.json", {"content": json.dumps(MANIFEST)}, 201)
        await host.do("PUT", f"{FILES}/agents/broken.json", {"content": "{"}, 201)
        found = await host.do("GET", "/v1/agents")
        assert found["total"] == 1
        (agent,) = found["agents"]
        assert "You help" not in str(agent)
        assert agent["label"] == "Helper"
        assert agent.get("memoryDegraded", False) is bool(off)
        lacking = ["long-term-durability", "read", "write"] if off else None
        assert agent.get("degradedMemoryDimensions") == lacking
        assert await host.do("GET", "/v1/agents/local.tests.helper") == agent
        await host.do("GET", "/v1/agents/nobody", status=404)


async def test_compaction_replaces_entries_and_no_run_sees_it(host: Host) -> None:
    for text in ("Ada likes tea.", "The key is [BYOK:k1] and <REDACTED:k2>.", "Bob has a dog."):
        await host.put("team/notes", text)
    run = await host.run("probe", workflow("cross-tenant-probe"))
    body = {"memoryRef": "team/notes"}
    compacted = await host.do("POST", "/v1/test/memory/compact", body)
    payload = compacted["payload"]
    assert payload["sourceCount"] == len(payload["sourceIds"]) == 4
    (output,) = await host.list("team/notes")
    assert output["id"] == payload["outputId"]
    assert output["content"] == compacted["outputContent"]
    assert payload["byteSize"] == len(output["content"].encode())
    assert "[REDACTED:k1]" in output["content"]
    assert "BYOK" not in output["content"]
    run_id = output["tags"][0].removeprefix("compacted-from:")
    events = await host.events(run_id)
    assert payload in [one["payload"] for one in events if one["type"] == "memory.compacted"]
    shown = await host.do("GET", f"{RUNS}/{run['runId']}")
    assert shown == run
    await host.do("POST", "/v1/test/memory/compact", {"memoryRef": "nothing"}, 422)
    await host.do("POST", "/v1/test/memory/compact", {"memoryRef": "../x"}, 422)


async def test_what_is_sent_fits_the_schemas(host: Host, service: RunningService) -> None:
    sent = await payloads_of(host, await host_of(service, "bob"))
    assert {name for name, _ in sent} == SCHEMAS.keys()
    for name, document in sent:
        check = jsonschema_rs.Draft202012Validator(SCHEMAS[name])
        wrong = [(one.instance_path, one.message) for one in check.iter_errors(document)]
        assert not wrong, (name, wrong)
