"""Everything that a host sends, each with the name of the schema that it must fit."""

from __future__ import annotations

import json
from typing import Any

from tests.openwop.host import FILES, JSON, RUNS, Host, memory, workflow

MANIFEST = {
    "agentId": "local.tests.helper",
    "persona": "Helper",
    "modelClass": "general",
    "systemPrompt": "You help.",
    "memoryShape": {"longTerm": True, "scratchpad": True},
}


async def payloads_of(host: Host, other: Host) -> list[tuple[str, Any]]:
    """Documents of a host by the name of their schema; of an event payload, by its type.

    other: the client of another agent of the tenant
    """
    await other.put("of-other", "x")
    sent = [("capabilities", await host.do("GET", "/.well-known/openwop"))]
    runs = [
        await host.run("probe", workflow("cross-tenant-probe"), a=1),
        await host.run("secret", workflow("redaction-probe", byokSecretId="k")),
        await host.run("hello", workflow()),
        await host.run("refused", workflow("write-then-read", "of-other")),
    ]
    compacted = await host.do("POST", "/v1/test/memory/compact", {"memoryRef": "team/notes"})
    sent.append(("memory.compacted", compacted["payload"]))
    for run in runs:
        sent.append(("run-snapshot", run))
        for event in await host.events(run["runId"]):
            sent += [("run-event", event), (event["type"], event["payload"])]
    await host.put("team", "x", expiresAt="2027-01-01T00:00:00Z", tags=["t"])
    sent += [("memory-entry", one) for one in await host.list("team")]
    sent.append(("workspace-file", await host.do("GET", f"{FILES}/workflows/hello.json")))
    await host.do("PUT", f"{FILES}/agents/b.json", {"content": json.dumps(MANIFEST)}, 201)
    sent.append(("agent-inventory-response", await host.do("GET", "/v1/agents")))
    for reply in (
        await host.client.get("/v1/nothing"),
        await host.client.get(f"{RUNS}/x", headers=JSON),
        await host.client.put(f"{memory('a')}/b", json={"content": 1}),
        await host.client.put(f"{FILES}/a.md", json={"content": ""}, headers={"If-Match": '"4"'}),
    ):
        assert reply.status_code >= 400
        sent.append(("error-envelope", reply.json()))
    return sent
