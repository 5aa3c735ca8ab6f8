"""Server-Sent Events and logs of a real server: what an in-process transport cannot show."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.assembly import open_memory
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.service.administration.tenants import create_key, revoke_key
from tests.http.checks import MARKER, MEMORY, assert_problem
from tests.support.process import ServerProcess
from tests.support.service import draft, settings_of

LIMIT = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all tests here; each of them uses an agent of its own."""
    with ServerProcess(tmp_path_factory.mktemp("stream") / "data") as started:
        yield started


class Stream:
    """Reads an agent's stream until it has seen enough, then hangs up."""

    def __init__(self, client: httpx.Client, agent: str, last_event_id: int | None = None) -> None:
        self._client = client
        self._path = f"/api/v1/agents/{agent}/events"
        self._headers = {"Accept": "text/event-stream"}
        if last_event_id is not None:
            self._headers["Last-Event-ID"] = str(last_event_id)

    def take(self, count: int) -> list[dict[str, Any]]:
        """The next `count` events, each checked against its SSE frame."""
        deadline = time.monotonic() + LIMIT
        events: list[dict[str, Any]] = []
        frame: dict[str, str] = {}
        with self._client.stream("GET", self._path, headers=self._headers) as response:
            assert response.status_code == 200
            assert response.headers["content-type"] == "text/event-stream"
            for line in response.iter_lines():
                assert time.monotonic() < deadline, f"{len(events)} of {count} events came"
                if line.startswith(":"):
                    continue
                if line:
                    name, _, content = line.partition(": ")
                    assert name in ("id", "event", "data")
                    frame[name] = content
                elif frame:
                    event = json.loads(frame["data"])
                    assert frame["id"] == str(event["seq"])
                    assert frame["event"] == event["type"] == event["event_type"]
                    events.append(event)
                    frame = {}
                    if len(events) == count:
                        break
        return events


def _write(client: httpx.Client, names: list[str]) -> None:
    for name in names:
        response = client.post(MEMORY, json=draft(name, value={"text": MARKER}))
        assert response.status_code == 201, response.text


def _page(client: httpx.Client, agent: str) -> list[dict[str, Any]]:
    response = client.get(f"/api/v1/agents/{agent}/events", params={"limit": 1_000})
    events: list[dict[str, Any]] = response.json()["events"]
    return events


def test_the_stream_tells_what_the_page_tells(server: ServerProcess) -> None:
    with server.client(agent="same") as client:
        _write(client, ["a", "b", "c"])
        streamed = Stream(client, "same").take(3)
        assert streamed == _page(client, "same")
        assert MARKER not in json.dumps(streamed)


def test_an_event_arrives_while_the_stream_is_open(server: ServerProcess) -> None:
    with server.client(agent="live") as reader, server.client(agent="live") as writer:
        _write(writer, ["before"])
        late = threading.Timer(0.2, _write, (writer, ["after"]))
        late.start()
        begun = time.monotonic()
        keys = [event["data"]["key"] for event in Stream(reader, "live").take(2)]
        assert keys == ["before", "after"]
        # Told by the commit and not by the sign of life that comes after fifteen seconds.
        assert time.monotonic() - begun < 10
        late.join()


def test_resuming_leaves_no_gap_and_repeats_nothing_under_writes(server: ServerProcess) -> None:
    total = 300
    with server.client(agent="resume") as reader:
        clients = [server.client(agent="resume") for _ in range(3)]
        writers = [
            threading.Thread(
                target=_write,
                args=(client, [f"w{number}-{count}" for count in range(total // 3)]),
            )
            for number, client in enumerate(clients)
        ]
        for writer in writers:
            writer.start()
        seen: list[dict[str, Any]] = []
        sizes = [1, 7, 2, 40, 13, 1, 90]
        while len(seen) < total:
            size = min(sizes[len(seen) % len(sizes)], total - len(seen))
            last = seen[-1]["seq"] if seen else None
            seen.extend(Stream(reader, "resume", last).take(size))
        for writer in writers:
            writer.join()
        for client in clients:
            client.close()
        assert seen == _page(reader, "resume")
        assert len({event["data"]["entry_id"] for event in seen}) == total


def test_a_query_parameter_starts_the_stream_too(server: ServerProcess) -> None:
    with server.client(agent="after") as client:
        _write(client, ["a", "b", "c"])
        first = _page(client, "after")[0]["seq"]
        path = f"/api/v1/agents/after/events?after={first}"
        with client.stream("GET", path, headers={"Accept": "text/event-stream"}) as response:
            for line in response.iter_lines():
                if line.startswith("data: "):
                    assert json.loads(line[6:])["data"]["key"] == "b"
                    break


def test_a_refusal_of_a_stream_is_a_problem(server: ServerProcess) -> None:
    headers = {"Accept": "text/event-stream"}
    response = httpx.get(f"{server.url}/api/v1/agents/ada/events", headers=headers)
    assert_problem(response, 401, "UNAUTHENTICATED")
    with server.client() as client:
        response = client.get("/api/v1/agents/ada/events", headers=headers)
        assert_problem(response, 403, "ACCESS_DENIED")


async def _make_key(server: ServerProcess, agent: str) -> str:
    async with open_memory(settings_of(server.data), exclusive=False) as services:
        permissions = [Permission.READ, Permission.WRITE]
        key, _ = await create_key(services, "default", agent, PrincipalKind.AGENT, permissions)
        return key


async def _revoke(server: ServerProcess, key: str) -> None:
    async with open_memory(settings_of(server.data), exclusive=False) as services:
        assert await revoke_key(services, key.partition(".")[0])


def test_stream_ends_when_its_key_is_revoked(server: ServerProcess) -> None:
    key = asyncio.run(_make_key(server, "leaver"))
    path, headers = "/api/v1/agents/leaver/events", {"Accept": "text/event-stream"}
    told: list[str] = []
    with server.client(key) as reader, server.client(agent="leaver") as writer:
        _write(writer, ["before"])
        with reader.stream("GET", path, headers=headers) as response:
            for line in response.iter_lines():
                if line.startswith("data: "):
                    told.append(json.loads(line[6:])["data"]["key"])
                    if told == ["before"]:
                        asyncio.run(_revoke(server, key))
                        _write(writer, ["after"])
        # Only because the server ended the stream does the loop come to its end.
        assert told == ["before"]
        assert_problem(reader.get(path, headers=headers), 401, "UNAUTHENTICATED")


def test_values_and_keys_stand_in_no_log(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "--log-level", "debug") as server:
        key = server.dev_key
        with server.client(agent="ada") as client:
            _write(client, ["a"])
            client.post(MEMORY, content=f'{{"value": "{MARKER}'.encode())
            client.post(MEMORY, json=draft("a", value={"text": MARKER}, colour=MARKER))
            client.post(MEMORY, json=draft("b", sensitivity="restricted", value={"m": MARKER}))
            client.get(MEMORY, params={"namespace": MARKER, "limit": MARKER})
            client.get(MEMORY, headers={"X-API-Key": f"{key}{MARKER}"})
        server.process.send_signal(signal.SIGTERM)
        printed, _ = server.process.communicate(timeout=30)
        logged = server.read_errors()
        assert server.process.returncode == 0
        for text in (printed, logged):
            assert MARKER not in text
            assert key not in text
        for line in logged.splitlines():
            assert json.loads(line)["level"]
