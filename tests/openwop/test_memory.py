"""The memory adapter over HTTP: order, expiry, sizes, references, tenants, secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from memorywall.records.errors import ValidationError
from memorywall.records.principal import Permission
from tests.openwop.host import FILES, RUNS, Host, host_of, memory, workflow
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

SEED = "/v1/test/memory/seed"
SECRETS = "/v1/host/sample/byok/secrets"
MALFORMED = (
    "../secret",
    "a/../b",
    "a/%2e%2e/b",
    "a\\..\\b",
    "x" * 257,
    " a",
    "a\u202eb",
    "*",
    "a\0b",
)


async def test_lists_are_newest_first_and_filtered(host: Host, service: RunningService) -> None:
    stored = []
    for number in range(3):
        service.clock.advance(1)
        stored.append(await host.put("mem://team/a b", f"n{number}", tags=["t", "", f"n:{number}"]))
    assert await host.list("mem://team/a b") == stored[::-1]
    assert await host.list("mem://team/a b", "?limit=2") == stored[:0:-1]
    assert await host.list("mem://team/a b", "?limit=0") == stored[::-1]
    assert await host.list("mem://team/a b", "?tag=n:1") == [stored[1]]
    assert stored[0]["tags"] == ["t", "n:0"]
    assert await host.list("a:fork") == []
    assert await host.do("GET", f"{memory('mem://team/a b')}/{stored[1]['id']}") == stored[1]
    await host.do("DELETE", f"{memory('mem://team/a b')}/{stored[1]['id']}", status=204)
    assert await host.list("mem://team/a b") == [stored[2], stored[0]]
    await host.do("DELETE", f"{memory('mem://team/a b')}/{stored[1]['id']}", status=404)


async def test_an_entry_is_gone_at_the_millisecond_of_its_expiry(
    host: Host, service: RunningService
) -> None:
    entry = await host.put("team", "brief", expiresAt="2026-02-02T02:40:00.100Z")
    service.clock.advance(0.099)
    assert await host.list("team") == [entry]
    service.clock.advance(0.001)
    assert await host.list("team") == []
    assert (await host.do("GET", f"{memory('team')}/{entry['id']}", status=404))["error"] == (
        "not_found"
    )


async def test_bad_entries_are_refused(host: Host) -> None:
    path = f"{memory('team')}/new"
    for body in (
        {"content": "é" * 16_001},
        {"content": "a", "expiresAt": "2026-02-02T02:40:00Z"},
        {"content": "a", "expiresAt": "tomorrow"},
        {"content": "a", "tags": ["b,c"]},
        {"content": "a", "more": 1},
        {"content": 1},
        {},
    ):
        assert (await host.do("PUT", path, body, 422))["error"] == "validation_error"
    await host.do("PUT", f"{memory('../x')}/new", {"content": "a"}, 422)
    assert await host.list("team") == []
    assert len((await host.put("team", "é" * 16_000))["content"]) == 16_000


async def test_a_malformed_reference_is_nothing(host: Host) -> None:
    for ref in MALFORMED:
        assert await host.list(ref) == []
        await host.do("GET", f"{memory(ref)}/mem_1", status=404)
        await host.do("DELETE", f"{memory(ref)}/mem_1", status=404)
        run = await host.run("probe", workflow("cross-tenant-probe", probeMemoryRef=ref))
        assert run["variables"]["crossTenantProbe"] == []


async def test_the_path_of_the_seams_is_that_of_the_extension(host: Host) -> None:
    seam = "/v1/memory/team%2Fnotes"
    entry = await host.do("PUT", f"{seam}/new", {"content": "x"}, 201)
    assert await host.do("GET", seam) == {"entries": [entry]}
    assert await host.list("team/notes") == [entry]
    assert await host.do("GET", f"{seam}/{entry['id']}") == entry
    await host.do("DELETE", f"{seam}/{entry['id']}", status=204)
    assert await host.do("GET", seam) == {"entries": []}
    await host.do("GET", f"{seam}/{entry['id']}", status=404)


async def test_entries_do_not_change_through_the_native_api(host: Host) -> None:
    entry = await host.put("team", "as it is")
    native = await host.client.get(f"/api/v1/memory/{entry['id']}")
    assert native.json()["value"] == {"content": "as it is"}
    reply = await host.client.patch(
        f"/api/v1/memory/{entry['id']}", json={"value": {"content": "b"}}, headers={"If-Match": "1"}
    )
    assert reply.status_code == ValidationError.status
    assert await host.list("team") == [entry]


async def test_a_run_sees_its_snapshot_and_its_own_writes(service: RunningService) -> None:
    """Another agent of the tenant reads a namespace that it may not write to."""
    host, other = await host_of(service), await host_of(service, "bob")
    entry = await host.put("team", "shared")
    assert await other.list("team") == [entry]
    refusal = await other.do("PUT", f"{memory('team')}/new", {"content": "x"}, 403)
    assert refusal["error"] == "forbidden"
    run = await host.run("notes", workflow("write-then-read"))
    await other.do("GET", f"{RUNS}/{run['runId']}", status=404)
    await other.do("GET", f"{RUNS}/{run['runId']}/events", status=404)
    body = {"fromSeq": 0, "mode": "replay"}
    await other.do("POST", f"{RUNS}/{run['runId']}:fork", body, 404)


async def test_secrets_are_redacted_everywhere(
    host: Host, service: RunningService, tmp_path: Path
) -> None:
    long, short = "sk-longer-canary-42", "canary-4"
    await host.do("POST", SECRETS, {"secretId": "short", "value": short}, 201)
    await host.do("POST", SECRETS, {"secretId": "long", "value": long}, 201)
    await host.do("POST", SECRETS, {"secretId": "tiny", "value": "abcdefg"}, 201)
    seeded = {"content": f"{long} {short}5 abcdefg", "tags": [f"k:{long}"]}
    body = {"memoryRef": "team/notes", "entries": [seeded]}
    (entry,) = (await host.do("POST", SEED, body, 201))["entries"]
    assert entry["content"] == "[REDACTED:long] [REDACTED:short]5 abcdefg"
    assert entry["tags"] == ["k:[REDACTED:long]"]
    await host.do("PUT", f"{FILES}/notes.md", {"content": long}, 201)
    assert (await host.do("GET", f"{FILES}/notes.md"))["content"] == "[REDACTED:long]"
    await host.install("probe", workflow("redaction-probe", byokSecretId="long"))
    asked = {
        "workflowId": "probe",
        "inputs": {"key": [long], long: 1},
        "tags": [long],
        "metadata": {"m": {"deep": f"<{long}>"}},
    }
    run_id = (await host.do("POST", RUNS, asked, 201))["runId"]
    run = await host.do("GET", f"{RUNS}/{run_id}")
    readback = run["variables"]["memoryReadback"]
    assert readback["content"] == "The secret is [REDACTED:long]."
    assert run["variables"]["key"] == ["[REDACTED:long]"]
    shown = str(run) + str(await host.events(run_id)) + str(await host.list("team/notes"))
    native = await host.client.get("/api/v1/agents/ada/events?limit=100")
    assert long not in shown + native.text
    stored = b"".join(one.read_bytes() for one in tmp_path.iterdir() if one.is_file())
    assert long.encode() not in stored
    refusal = await host.do("POST", RUNS, {long: 1, "workflowId": "probe"}, 422)
    assert "[REDACTED:long]" in refusal["message"]
    await host.do("DELETE", f"{SECRETS}/long", status=204)
    await host.do("DELETE", f"{SECRETS}/long", status=404)
    assert (await host.put("team/notes", long))["content"] == "sk-longer-[REDACTED:short]2"


async def test_a_refused_run_leaves_no_secret(host: Host, service: RunningService) -> None:
    (first,) = workflow("redaction-probe", byokSecretId="key")["nodes"]
    (second,) = workflow("write-then-read", count=0)["nodes"]
    await host.install("refused", {"nodes": [first, {**second, "id": "later"}]})
    await host.do("POST", RUNS, {"workflowId": "refused"}, 422)
    assert service.services.secrets.values == {}


async def test_search_finds_by_words_and_stays_in_the_memory(host: Host) -> None:
    entry = await host.put("team", "The refund policy allows thirty days.")
    await host.put("team", "Lunch is at noon.")
    await host.put("elsewhere", "The refund policy of others.")
    found = await host.list("team", "?query=refund policy")
    assert found[0] == entry
    assert all("others" not in one["content"] for one in found)
    assert await host.list("../x", "?query=refund") == []


async def test_a_closed_tier_refuses_what_the_protocol_cannot_let_wait(
    host: Host, service: RunningService
) -> None:
    admin = await service.agent("root", permissions=[*Permission])
    await admin.put("/api/v1/tiers/semantic", json={"admission": "promoted"})
    told = await host.do("PUT", f"{memory('team/notes')}/new", {"content": "It rains."}, 409)
    assert told["error"] == "refused_by_rule"
    told = await host.do("PUT", f"{FILES}/notes.txt", {"content": "x", "contentType": "a/b"}, 409)
    assert told["error"] == "refused_by_rule"
    proposals = await admin.get("/api/v1/memory", params={"kind": "proposal"})
    assert proposals.json()["total"] == 0
