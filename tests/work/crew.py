"""A crew with work in one service: a coordinator, two agents, an outsider, and their operations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.http.checks import MEMORY
from tests.support.service import RunningService, draft

INTENTS = "/api/v1/intents"
TASKS = "/api/v1/tasks"
COORDINATORS = "/api/v1/coordinators"
CLAIMS = "/api/v1/claims"
LIMIT = 20.0
"""Seconds after which something that should have come is held to be missing."""


def ok(response: httpx.Response, status: int = 200) -> Any:
    """The JSON of a reply that must have this status; None for an empty one."""
    assert response.status_code == status, (response.status_code, response.text[:500])
    return response.json() if response.content else None


def at(version: int, token: int | None = None) -> dict[str, str]:
    """The headers of a change at a version, under a lease where there is one."""
    return {"If-Match": str(version)} | under(token)


def under(token: int | None) -> dict[str, str]:
    """The header that names the lease a write is made under."""
    return {} if token is None else {"Fencing-Token": str(token)}


@dataclass(frozen=True, slots=True)
class Taken:
    """A task taken up, and the lease it is held by."""

    task: dict[str, Any]
    lease: dict[str, Any]

    @property
    def token(self) -> int:
        number: int = self.lease["fencing_token"]
        return number


@dataclass(slots=True)
class Crew:
    """Who takes part, each with a client of its own. `chief` made the intent."""

    service: RunningService
    chief: httpx.AsyncClient
    a: httpx.AsyncClient
    b: httpx.AsyncClient
    outsider: httpx.AsyncClient
    intent: dict[str, Any]

    @property
    def intent_path(self) -> str:
        return f"{INTENTS}/{self.intent['id']}"

    async def coordinate(
        self, guardrails: dict[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Puts the chief in authority over the intent."""
        body = {"agent_id": "chief", "intent_id": self.intent["id"], **fields}
        if guardrails is not None:
            body["guardrails"] = guardrails
        made: dict[str, Any] = ok(await self.chief.post(COORDINATORS, json=body), 201)
        return made

    async def task(self, name: str = "pay", **fields: Any) -> dict[str, Any]:
        """A task of the intent, made by the chief."""
        body = {"intent_id": self.intent["id"], "name": name, **fields}
        made: dict[str, Any] = ok(await self.chief.post(TASKS, json=body), 201)
        return made

    async def now(self, task_id: str) -> dict[str, Any]:
        """The task as it is now."""
        found: dict[str, Any] = ok(await self.chief.get(f"{TASKS}/{task_id}"))
        return found

    async def change(
        self,
        client: httpx.AsyncClient,
        task_id: str,
        token: int | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Changes a task at its present version."""
        changed: dict[str, Any] = ok(await self.try_change(client, task_id, token, **fields))
        return changed

    async def try_change(
        self, client: httpx.AsyncClient, task_id: str, token: int | None = None, **fields: Any
    ) -> httpx.Response:
        """Asks for a change of a task at its present version."""
        version = (await self.now(task_id))["version"]
        return await client.patch(f"{TASKS}/{task_id}", json=fields, headers=at(version, token))

    async def take(self, client: httpx.AsyncClient, task_id: str, seconds: int = 30) -> Taken:
        """Takes a task up under a lease."""
        response = await client.post(f"{TASKS}/{task_id}/claim", json={"lease_seconds": seconds})
        taken = ok(response)
        return Taken(taken["task"], taken["lease"])

    async def working(
        self, agent: str = "a", seconds: int = 600, **fields: Any
    ) -> tuple[dict[str, Any], Taken]:
        """A task that an agent has taken up and is running."""
        client = self.a if agent == "a" else self.b
        task = await self.task(assigned_agent=agent, **fields)
        taken = await self.take(client, task["id"], seconds)
        running = await self.change(client, task["id"], token=taken.token, status="running")
        return running, taken

    async def log(self, **query: Any) -> list[dict[str, Any]]:
        """The whole log of the intent, or what of it the query asks for."""
        events: list[dict[str, Any]] = []
        after = 0
        while True:
            page = ok(
                await self.chief.get(
                    f"{self.intent_path}/events", params={"limit": 1_000, "after": after, **query}
                )
            )
            if not page["events"]:
                return events
            events.extend(page["events"])
            after = page["next"]

    async def told(self, task_id: str) -> list[str]:
        """What kinds of things the log says of a task, in order."""
        return [one["type"] for one in await self.log() if one.get("task_id") == task_id]


async def crew_of(service: RunningService) -> Crew:
    """A crew with an intent, closed to everybody but its maker."""
    chief = await service.agent("chief")
    intent = ok(await chief.post(INTENTS, json={"title": "Pay the bills"}), 201)
    return Crew(
        service=service,
        chief=chief,
        a=await service.agent("a"),
        b=await service.agent("b"),
        outsider=await service.agent("outsider"),
        intent=intent,
    )


def note(task_id: str, key: str = "progress", **fields: Any) -> dict[str, Any]:
    """The body of a create of working memory of a task."""
    return draft(key, **{"scope": {"task_id": task_id}, **fields})


async def remember(
    client: httpx.AsyncClient,
    task_id: str,
    key: str = "progress",
    token: int | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Creates working memory of a task."""
    response = await client.post(MEMORY, json=note(task_id, key, **fields), headers=under(token))
    entry: dict[str, Any] = ok(response, 201)
    return entry


async def recall(client: httpx.AsyncClient, task_id: str) -> list[tuple[str, str]]:
    """Owner and key of the working memory of a task that the client can find, sorted; having
    checked that it can get each of them as well."""
    page = ok(
        await client.get(
            MEMORY, params={"scope.task_id": task_id, "memory_type": "working", "limit": 1_000}
        )
    )
    assert page["total"] == len(page["entries"])
    for entry in page["entries"][:5]:
        assert ok(await client.get(f"{MEMORY}/{entry['id']}")) == entry
    return sorted((entry["agent_id"], entry["key"]) for entry in page["entries"])


class Follower:
    """Reads the Server-Sent Events of an endless reply."""

    def __init__(self, messages: asyncio.Queue[dict[str, Any]]) -> None:
        self._messages = messages
        self._text = ""
        self.status = 0
        self.headers: dict[bytes, bytes] = {}

    async def start(self) -> None:
        """Waits for the head of the reply."""
        begun = await self._next()
        self.status, self.headers = begun["status"], dict(begun["headers"])

    async def take(self, count: int) -> list[dict[str, Any]]:
        """The next `count` events, each checked against its frame."""
        events: list[dict[str, Any]] = []
        while len(events) < count:
            frame, parted, rest = self._text.partition("\n\n")
            if not parted:
                self._text += (await self._next())["body"].decode()
                continue
            self._text = rest
            if frame.startswith(":"):
                continue
            lines = dict(line.split(": ", 1) for line in frame.split("\n"))
            event = json.loads(lines["data"])
            assert lines["id"] == str(event["seq"])
            assert lines["event"] == event["type"] == event["event_type"]
            events.append(event)
        return events

    async def end(self) -> None:
        """Waits until the server has ended the reply."""
        while (await self._next()).get("more_body", False):
            pass

    async def _next(self) -> dict[str, Any]:
        return await asyncio.wait_for(self._messages.get(), LIMIT)


@asynccontextmanager
async def following(
    client: httpx.AsyncClient,
    service: RunningService,
    path: str,
    query: str = "",
    headers: Mapping[str, str] | None = None,
) -> AsyncIterator[Follower]:
    """An endless reply, which the client itself would wait for to its end; hangs up afterwards."""
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    gone = asyncio.Event()
    sent = {"x-api-key": client.headers["x-api-key"], **(headers or {})}

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        messages.put_nowait(dict(message))

    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), text.encode()) for name, text in sent.items()],
        "server": ("memorywall.test", 80),
        "client": ("127.0.0.1", 1),
    }
    serving = asyncio.ensure_future(service.app(scope, receive, send))
    follower = Follower(messages)
    try:
        await follower.start()
        yield follower
    finally:
        gone.set()
        await asyncio.wait_for(serving, LIMIT)
