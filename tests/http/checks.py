"""What many of these tests look at: problem documents, everything stored, bytes on disk."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import httpx

from memorywall.assembly import open_inspection
from memorywall.records.entry import Entry
from memorywall.records.event import Event
from memorywall.records.namespace import Namespace
from memorywall.records.principal import Permission
from memorywall.storage.port import REGISTRY, Transaction
from tests.support.service import RunningService, draft

MEMORY = "/api/v1/memory"
BATCH = "/api/v1/memory/batch"
NAMESPACES = "/api/v1/memory/namespaces"
MARKER = "marker-7f3a-must-not-come-back"
EVERY_PERMISSION = tuple(Permission)
ADMINISTRATOR = (Permission.READ, Permission.WRITE, Permission.ADMIN)
_PROBLEM_FIELDS = {"type", "title", "status", "detail", "error", "message"}


def assert_problem(
    response: httpx.Response, status: int, error: str | None = None
) -> dict[str, Any]:
    """Asserts that the reply is a whole problem document with this status, and returns it."""
    assert response.status_code == status, (response.status_code, response.text[:500])
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document.keys() >= _PROBLEM_FIELDS, document
    assert document["status"] == status
    for name in _PROBLEM_FIELDS - {"status"}:
        assert isinstance(document[name], str), (name, document)
        assert document[name], (name, document)
    assert document["message"] == document["detail"]
    if error is not None:
        assert document["error"] == error, document
    return document


@dataclass(frozen=True, slots=True)
class Everything:
    """All that is stored of all tenants."""

    entries: tuple[Entry, ...]
    events: tuple[Event, ...]
    namespaces: tuple[Namespace, ...]


async def everything(service: RunningService) -> Everything:
    """A snapshot past every access rule, for comparing before with after."""

    async def all_namespaces(transaction: Transaction, tenant: str) -> list[Namespace]:
        found: list[Namespace] = []
        for brief in await transaction.namespaces.list_for(""):
            whole = await transaction.namespaces.get(brief.name)
            assert whole is not None
            found.append(whole)
        return found

    store = service.services.store
    namespaces: list[Namespace] = []
    for name in await store.read(REGISTRY, lambda to: to.identities.tenants()):
        namespaces += await store.read(name, functools.partial(all_namespaces, tenant=name))
    inspection = open_inspection(service.services.settings)
    try:
        tenants = inspection.tenants()
        assert list(inspection.index_problems()) == []
        return Everything(
            tuple(entry for tenant in tenants for entry in inspection.entries(tenant)),
            tuple(event for tenant in tenants for event in inspection.events(tenant)),
            tuple(namespaces),
        )
    finally:
        inspection.close()


async def raw_request(
    service: RunningService,
    method: str,
    path: str,
    *,
    query: bytes = b"",
    headers: Iterable[tuple[bytes, bytes]] = (),
    pieces: Sequence[bytes] = (b"",),
) -> httpx.Response:
    """A request with exactly these bytes, which an HTTP client might put right on the way."""
    waiting = list(pieces)
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        piece = waiting.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(waiting)}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query,
        "headers": list(headers),
        "server": ("memorywall.test", 80),
        "client": ("127.0.0.1", 1),
    }
    await service.app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return httpx.Response(sent[0]["status"], headers=sent[0]["headers"], content=body)


async def make(client: httpx.AsyncClient, key: str = "progress", **fields: Any) -> dict[str, Any]:
    """Creates an entry and returns it."""
    response = await client.post(MEMORY, json=draft(key, **fields))
    assert response.status_code == 201, response.text
    entry: dict[str, Any] = response.json()
    return entry


async def keys_of(client: httpx.AsyncClient, **query: Any) -> list[str]:
    """The keys of what a query finds, in its order, having checked the total against the page."""
    response = await client.get(MEMORY, params=query)
    assert response.status_code == 200, response.text
    page = response.json()
    if "limit" not in query and "offset" not in query:
        assert page["total"] == len(page["entries"])
    return [entry["key"] for entry in page["entries"]]


async def events_of(client: httpx.AsyncClient, agent: str) -> list[dict[str, Any]]:
    """An agent's whole stream, page by page."""
    events: list[dict[str, Any]] = []
    after = 0
    while True:
        response = await client.get(
            f"/api/v1/agents/{agent}/events", params={"limit": 1_000, "after": after}
        )
        assert response.status_code == 200, response.text
        page = response.json()
        if not page["events"]:
            return events
        events.extend(page["events"])
        after = page["next"]


def brief(events: Iterable[dict[str, Any]]) -> list[tuple[str, str, int]]:
    """What happened to which key at which version."""
    return [(one["type"], one["data"]["key"], one["data"]["version"]) for one in events]


async def until_erased(service: RunningService, seconds: float = 30.0) -> None:
    """Waits until the store has let go of what was removed."""
    deadline = time.monotonic() + seconds
    while not service.services.store.is_erasure_complete():
        assert time.monotonic() < deadline, "what was removed is still there"
        await anyio.sleep(0.02)


def value_of_size(size: int) -> dict[str, str]:
    """A value whose compact JSON text has exactly this many bytes."""
    empty = len(json.dumps({"text": ""}, separators=(",", ":")))
    return {"text": "x" * (size - empty)}
