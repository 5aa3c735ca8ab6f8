"""A host of OpenWOP in this process, and its client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from tests.support.service import RunningService

RUNS = "/v1/runs"
FILES = "/v1/host/workspace/files"
LASTING = "/v1/x-host-memorywall-memory-query"
JSON = {"Accept": "application/json"}


def workflow(action: str | None = None, ref: str = "team/notes", **config: Any) -> dict[str, Any]:
    """A workflow of one node, which writes to a memory if it has an action."""
    node: dict[str, Any] = {"id": "step", "typeId": "core.noop", "config": config}
    if action is not None:
        node["typeId"] = "core.identity"
        node["config"] = {"memoryAction": action, **config}
        node["agent"] = {"agentId": "local.tests.agent", "memoryRef": ref}
    return {"nodes": [node]}


@dataclass(frozen=True, slots=True)
class Host:
    """A client of the host."""

    client: httpx.AsyncClient

    async def do(
        self, method: str, path: str, body: Any = None, status: int = 200, **headers: str
    ) -> Any:
        """Sends a request, asserts its status, and returns the JSON of the reply."""
        options = {} if body is None else {"json": body}
        sent = {**JSON, **{name.replace("_", "-"): one for name, one in headers.items()}}
        reply = await self.client.request(method, path, headers=sent, **options)
        assert reply.status_code == status, (reply.status_code, reply.text[:500])
        if status >= 400:
            assert reply.headers["content-type"] == "application/json"
            assert {"error", "message"} <= reply.json().keys() <= {"error", "message", "details"}
        return reply.json() if reply.content else None

    async def install(self, name: str, document: dict[str, Any]) -> None:
        """Puts a workflow into the workspace."""
        import json

        body = {"content": json.dumps(document), "contentType": "application/json"}
        reply = await self.client.put(f"{FILES}/workflows/{name}.json", json=body)
        assert reply.status_code in (200, 201), reply.text

    async def run(self, name: str, document: dict[str, Any], **inputs: Any) -> dict[str, Any]:
        """Runs a workflow, and returns the run."""
        await self.install(name, document)
        body = {"workflowId": name, "inputs": inputs}
        run_id = (await self.do("POST", RUNS, body, 201))["runId"]
        run: dict[str, Any] = await self.do("GET", f"{RUNS}/{run_id}")
        return run

    async def events(self, run_id: str) -> list[dict[str, Any]]:
        """The log of a run."""
        found: list[dict[str, Any]] = (await self.do("GET", f"{RUNS}/{run_id}/events"))["events"]
        return found

    async def put(self, ref: str, content: str, **fields: Any) -> dict[str, Any]:
        """Stores an entry of a memory."""
        body = {"content": content, **fields}
        entry: dict[str, Any] = await self.do("PUT", f"{memory(ref)}/new", body, 201)
        return entry

    async def list(self, ref: str, query: str = "") -> list[dict[str, Any]]:
        """The entries of a memory."""
        found: list[dict[str, Any]] = (await self.do("GET", memory(ref) + query))["entries"]
        return found


def memory(ref: str) -> str:
    """The path of a memory."""
    return f"{LASTING}/{quote(ref, safe='')}"


async def host_of(service: RunningService, agent: str = "ada", tenant: str = "default") -> Host:
    """The host for an agent with a new key."""
    key = await service.key(agent, tenant)
    client = service.client()
    client.headers["Authorization"] = f"Bearer {key}"
    return Host(client)
