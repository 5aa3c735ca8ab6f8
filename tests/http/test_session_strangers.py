"""An agent that takes no part in a session learns on no route of memory that its parts exist."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import httpx
import pytest

from memorywall.records.principal import Permission
from tests.http.checks import MEMORY, assert_problem, everything
from tests.http.test_sessions import Talk, begin
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

ABSENT = "mem_0199f3a16c2e7d559b8e3f2a1c4d5e6f"
FILE = {"filename": "a", "mime_type": "text/plain", "size": 1}
ROUTES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "get": ("GET", "", {}),
    "get of a version": ("GET", "?version=1", {}),
    "get of an instant": ("GET", "?as_of=2026-02-02T02:40:00Z", {}),
    "history": ("GET", "/history", {}),
    "update": ("PATCH", "", {"value": {}}),
    "delete": ("DELETE", "", {}),
    "list files": ("GET", "/attachments", {}),
    "add a file": ("POST", "/attachments", FILE),
    "get a file": ("GET", "/attachments/att_1", {}),
    "content of a file": ("GET", "/attachments/att_1/content", {}),
    "delete a file": ("DELETE", "/attachments/att_1", {}),
}
READ_ONLY = (Permission.READ,)
WRITE_ONLY = (Permission.WRITE,)
EVERYTHING = (Permission.READ, Permission.WRITE, Permission.TENANT_ADMIN)


async def parts_of(service: RunningService, talk: Talk) -> dict[str, str]:
    """The id of an entry of each governed kind in a session with all of them, by kind."""
    await talk.add("I moved to Lyon", "What is new there?")
    await talk.do("POST", "/checkpoints", trigger="user_request", state={})
    data = b64encode(bytes(10)).decode()
    await talk.do("PUT", "/saved-states/1", data=data)
    compiled = await talk.client.post(
        "/api/v1/context", json={"session_id": talk.id, "window": 4000}
    )
    assert compiled.status_code in (200, 201), compiled.text
    stored = (await everything(service)).entries
    return {one.kind: one.id for one in stored if one.kind is not None}


async def answers(client: httpx.AsyncClient, entry_id: str) -> dict[str, tuple[int, str]]:
    """The status and the problem of each route for an entry."""
    found = {}
    for name, (method, rest, body) in ROUTES.items():
        headers = {"If-Match": "1"} if method == "PATCH" else None
        path = f"{MEMORY}/{entry_id}{rest}"
        reply = await client.request(method, path, json=body or None, headers=headers)
        found[name] = (reply.status_code, reply.text.replace(entry_id, ABSENT))
    asked = {"jsonrpc": "2.0", "id": 1, "method": "get_entry", "params": {"entry_id": entry_id}}
    reply = await client.post("/rpc", json=asked)
    found["JSON-RPC"] = (reply.status_code, reply.text.replace(entry_id, ABSENT))
    return found


async def test_strangers_get_what_they_get_for_a_missing_entry(service: RunningService) -> None:
    talk = await begin(await service.agent("ada"), participants=[{"agent_id": "cal"}])
    parts = await parts_of(service, talk)
    assert parts.keys() >= {"session", "turn", "checkpoint", "saved_state", "context"}
    for permissions in (READ_ONLY, WRITE_ONLY, EVERYTHING):
        stranger = await service.agent("eve", permissions=permissions)
        missing = await answers(stranger, ABSENT)
        assert {status for status, _ in missing.values()} <= {200, 404}
        for kind, entry_id in parts.items():
            assert await answers(stranger, entry_id) == missing, (kind, permissions)


async def test_participants_and_other_agents_memory_are_refused_as_before(
    service: RunningService,
) -> None:
    ada, cal = await service.agent("ada"), await service.agent("cal")
    talk = await begin(ada, participants=[{"agent_id": "cal"}])
    parts = await parts_of(service, talk)
    for entry_id in parts.values():
        assert_problem(await cal.get(f"{MEMORY}/{entry_id}"), 403)
    assert (await ada.delete(f"{talk.path}/participants/cal")).status_code == 204
    for entry_id in parts.values():
        assert_problem(await cal.get(f"{MEMORY}/{entry_id}"), 404)
    plain = await ada.post(
        MEMORY, json={"namespace": "n", "key": "k", "value": {}, "memory_type": "session"}
    )
    assert_problem(await cal.get(f"{MEMORY}/{plain.json()['id']}"), 403)
