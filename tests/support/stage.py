"""One of everything an operation can be about, made through the API for one agent."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import httpx

from memorywall.wire.operations import Operation
from tests.support.service import draft

_numbers = itertools.count(1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """The objects by id. Their owner is `agent`, and their version is 1.

    ids: something for every path parameter of the table
    file, empty_file: an attachment with content and one without, by the parameter of its parent
    stepped_task: one with an open step and the item in `ids`
    held_task, token: a task that the agent has taken up, and the number of its lease
    other_intent: one that has nothing to do with the intent in `ids`
    """

    agent: str
    ids: dict[str, str]
    file: dict[str, str]
    empty_file: dict[str, str]
    held_task: str
    stepped_task: str
    token: int
    other_intent: str

    def path_of(self, operation: Operation) -> dict[str, str]:
        """The path parameters with which an operation has something to do."""
        ids = dict(self.ids)
        files = self.empty_file if operation.content == "bytes" else self.file
        parent = "entry_id" if "{entry_id}" in operation.path else "intent_id"
        ids["attachment_id"] = files[parent]
        if operation.path.endswith("/{task_id}/lease"):
            ids["task_id"] = self.held_task
        if "/items/{name}" in operation.path:
            ids["task_id"] = self.stepped_task
        if "/participants/" in operation.path or operation.name == "forget_agent":
            # The agent itself owns the session, and keeps the key of the requests.
            ids["agent_id"] = "guest"
        return {name: value for name, value in ids.items() if name in operation.path_parameters}


def make_stage(client: httpx.Client, agent: str) -> Stage:
    """Makes everything with a client that speaks for `agent`."""

    def post(path: str, **body: Any) -> dict[str, Any]:
        response = client.post("/api/v1" + path, json=body)
        assert response.is_success, f"POST {path}: {response.status_code} {response.text}"
        made: dict[str, Any] = response.json()
        return made

    name = f"{agent}-{next(_numbers)}"
    entry = post("/memory", **draft(name))
    newer = post("/memory", **draft(name, memory_type="semantic", namespace=name))
    case = post("/memory", **draft(f"{name}-case", memory_type="episodic"))["id"]
    promotion = post(f"/memory/{case}/promote", to="semantic", namespace=f"{name}-learned")
    dependency = post("/intents", title="dependency")["id"]
    intent = post("/intents", title="intent", depends_on=[dependency])["id"]
    held = post("/tasks", intent_id=intent, name="held", assigned_agent=agent)["id"]
    stepped = post("/tasks", intent_id=intent, name="stepped")["id"]
    post(f"/tasks/{stepped}/working/steps")
    put = client.put(f"/api/v1/tasks/{stepped}/working/items/outline", json={"content": "kept"})
    assert put.is_success, put.text
    lease = post(f"/tasks/{held}/claim", lease_seconds=600)["lease"]
    session = post("/sessions")["id"]
    post(f"/sessions/{session}/turns", turns=[{"role": "user", "content": "Where is my order?"}])
    context = post("/context", session_id=session)["id"]
    file, empty_file = {}, {}
    for parent, path in (
        ("intent_id", f"/intents/{intent}"),
        ("entry_id", f"/memory/{entry['id']}"),
    ):
        files = f"{path}/attachments"
        file[parent] = post(files, filename="full.txt", mime_type="text/plain")["id"]
        put = client.put(f"/api/v1{files}/{file[parent]}/content", content=b"content")
        assert put.is_success, put.text
        empty_file[parent] = post(files, filename="empty.txt")["id"]
    bridged = client.put(
        f"/api/v1/agents/{agent}/memory/{name}/{name}", json={"value": "kept by name"}
    )
    assert bridged.is_success, bridged.text
    coordinator = post("/coordinators", intent_id=intent, agent_id=agent)
    ids = {
        "agent_id": agent,
        "namespace": name,
        "key": name,
        "name": "outline",
        "group": "research",
        "principal_id": agent,
        "entry_id": entry["id"],
        "newer_id": newer["id"],
        "promotion_id": promotion["id"],
        "intent_id": intent,
        "dependency_id": dependency,
        "session_id": session,
        "context_id": context,
        "task_id": post("/tasks", intent_id=intent, name="ready")["id"],
        "lease_id": post(f"/intents/{intent}/leases", scope="held")["id"],
        "grant_id": post(f"/intents/{intent}/acl/entries", principal_id="guest")["id"],
        "coordinator_id": coordinator["id"],
        "claim_id": post("/claims", key=name)["id"],
        "attachment_id": file["intent_id"],
        # The body that the page of the operations offers names a namespace.
        "memory_type": "semantic",
    }
    # Only for administrators.
    key = client.post("/api/v1/keys", json={"agent_id": agent, "permissions": ["memory.read"]})
    if key.is_success:
        ids["prefix"] = key.json()["prefix"]
    return Stage(
        agent=agent,
        ids=ids,
        file=file,
        empty_file=empty_file,
        held_task=held,
        stepped_task=stepped,
        token=lease["fencing_token"],
        other_intent=post("/intents", title="other")["id"],
    )
