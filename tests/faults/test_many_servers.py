"""Several servers on one PostgreSQL database: what each of them must know of the others."""

from __future__ import annotations

import base64
import json
import re
import secrets
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.settings import KEY_ENVIRONMENT, STORE_ENVIRONMENT
from tests.faults.raw import RawConnection
from tests.faults.support import WRITING, spawn, wait_until
from tests.history.arena import free_port
from tests.history.writers import MEMORY
from tests.support.backend import own_database
from tests.support.extent import extent
from tests.support.postgres import shared_server
from tests.support.process import ServerProcess, open_client, run_cli
from tests.support.service import draft

_LIMIT = 60.0
_SERVERS = extent(2, long=4)
_EVENTS = "/api/v1/agents/agent/events"
_WHOAMI = "/api/v1/agents/me"
_FRAME = re.compile(rb"id: (\d+)\nevent: ([^\n]+)\ndata: ([^\n]+)\n\n")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database of its own, named in the environment as an operator would."""
    with own_database() as url:
        monkeypatch.setenv(STORE_ENVIRONMENT, url)
        yield url


@contextmanager
def _servers(data: Path, count: int, *arguments: str) -> Iterator[list[ServerProcess]]:
    """So many servers of the database of this test, started at the same time."""

    def start() -> ServerProcess:
        return ServerProcess(data, "--port", str(free_port()), *arguments, dev=False)

    with ExitStack() as stack, ThreadPoolExecutor(count) as threads:
        started = [threads.submit(start) for _ in range(count)]
        yield [stack.enter_context(one.result()) for one in started]


# Events


def test_a_stream_of_one_server_shows_what_others_write_once_and_in_order(
    tmp_path: Path, store: str
) -> None:
    writers, each = extent((3, 20), long=(6, 60))
    with _servers(tmp_path, _SERVERS) as servers:
        key = servers[0].create_key("agent", *WRITING)
        with RawConnection(servers[0].url, key, _LIMIT) as early:
            early.send(early.request_bytes("GET", _EVENTS, None, "accept: text/event-stream"))
            with ThreadPoolExecutor(writers) as threads:
                made = [
                    threads.submit(
                        _write_and_change, servers[1 + number % (_SERVERS - 1)], key, number, each
                    )
                    for number in range(writers)
                ]
                # Others begin to follow in the midst of it, on every server.
                late = [
                    threads.submit(_follow, server.url, key, 2 * writers * each)
                    for server in servers
                ]
                shown = [_read_stream(early, 2 * writers * each), *(one.result() for one in late)]
            entries = {entry for one in made for entry in one.result()}
        with servers[1].client(key) as client:
            page = client.get(_EVENTS, params={"limit": 1_000}).json()["events"]
    logged = [(event["seq"], event["type"], event["data"]["entry_id"]) for event in page]
    assert [seq for seq, _, _ in logged] == sorted({seq for seq, _, _ in logged})
    assert Counter((kind, entry) for _, kind, entry in logged) == Counter(
        (kind, entry) for entry in entries for kind in ("memory.created", "memory.updated")
    )
    for stream in shown:
        assert stream == logged


def _write_and_change(server: ServerProcess, key: str, writer: int, count: int) -> list[str]:
    """Creates entries and changes each; returns their ids."""
    made = []
    with server.client(key) as client:
        for number in range(count):
            entry = client.post(MEMORY, json=draft(f"{writer}-{number}"))
            assert entry.status_code == 201, entry.text
            changed = client.patch(
                entry.headers["location"], json={"value": {"n": 2}}, headers={"If-Match": "1"}
            )
            assert changed.status_code == 200, changed.text
            made.append(entry.json()["id"])
    return made


def _follow(url: str, key: str, count: int) -> list[tuple[int, str, str]]:
    with RawConnection(url, key, _LIMIT) as connection:
        connection.send(connection.request_bytes("GET", _EVENTS, None, "accept: text/event-stream"))
        return _read_stream(connection, count)


def _read_stream(connection: RawConnection, count: int) -> list[tuple[int, str, str]]:
    """The next events of a stream: the number, the type, and the entry of each."""
    shown: list[tuple[int, str, str]] = []
    # Pieces of the body have their length before them and nothing of a frame crosses their ends.
    while len(shown) < count:
        for number, kind, data in _FRAME.findall(connection.read_until(b"\n\n\r\n")):
            event = json.loads(data)
            assert (event["seq"], event["type"]) == (int(number), kind.decode())
            shown.append((event["seq"], event["type"], event["data"]["entry_id"]))
    return shown


# Keys


def test_a_revoked_key_is_refused_by_every_server_at_once(tmp_path: Path, store: str) -> None:
    with _servers(tmp_path, _SERVERS) as servers:
        for _ in range(extent(1, long=3)):
            _revoke_under_load(tmp_path, servers)


def _revoke_under_load(data: Path, servers: list[ServerProcess]) -> None:
    key = servers[0].create_key("agent", *WRITING)
    hanging = servers[-1]
    told: list[list[int]] = [[] for _ in servers]
    with _asked_without_pause(servers, key, told):
        wait_until(lambda: all(told), _LIMIT, "every server has been asked")
        # One hangs meanwhile, in the midst of whatever it does.
        hanging.process.send_signal(signal.SIGSTOP)
        try:
            run_cli("keys", "revoke", "--data", str(data), key.partition(".")[0])
            answers = [_ask(server, key) for server in servers[:-1]]
            connection = RawConnection(hanging.url, key)
            connection.send(connection.request_bytes("GET", _WHOAMI))
        finally:
            hanging.process.send_signal(signal.SIGCONT)
        answers.append(connection.read_reply().status)
        connection.close()
    assert answers == [401] * len(servers)
    for statuses in told:
        assert statuses[0] == 200
        assert statuses == sorted(statuses), "a refused key was taken again"


@contextmanager
def _asked_without_pause(
    servers: Sequence[ServerProcess], key: str, told: Sequence[list[int]]
) -> Iterator[None]:
    """Every server has the key in mind, and keeps being asked; the statuses go into `told`."""
    stop = threading.Event()

    def ask(server: ServerProcess, statuses: list[int]) -> None:
        with server.client(key) as client:
            while not stop.is_set():
                statuses.append(client.get(_WHOAMI).status_code)

    with ThreadPoolExecutor(len(servers)) as threads:
        asking = [threads.submit(ask, *pair) for pair in zip(servers, told, strict=True)]
        try:
            yield
        finally:
            stop.set()
        for one in asking:
            one.result()


def _ask(server: ServerProcess, key: str) -> int:
    with server.client(key) as client:
        return client.get(_WHOAMI).status_code


# Background work


def test_sweepers_of_several_servers_expire_each_entry_once(tmp_path: Path, store: str) -> None:
    count = extent(45, long=150)
    with _servers(tmp_path, _SERVERS, "--sweep-interval", "0.5") as servers:
        key = servers[0].create_key("agent", *WRITING)
        made: set[str] = set()
        with servers[1].client(key) as client:
            for number in range(count):
                ttl = f"duration:PT{1 + number % 3}S"
                entry = client.post(MEMORY, json=draft(f"short-{number}", ttl=ttl))
                assert entry.status_code == 201, entry.text
                made.add(entry.json()["id"])
            kept = client.post(MEMORY, json=draft("kept")).json()["id"]

            def expired() -> list[str]:
                page = client.get(_EVENTS, params={"limit": 1_000}).json()["events"]
                return [
                    event["data"]["entry_id"] for event in page if event["type"] == "memory.expired"
                ]

            wait_until(lambda: len(expired()) >= count, _LIMIT, "every entry has expired")
            # Whoever came second has had time to come.
            time.sleep(1.5)
            assert Counter(expired()) == Counter(made)
            left = client.get(MEMORY, params={"namespace": "invoices"}).json()["entries"]
            assert [entry["id"] for entry in left] == [kept]
        assert not any(server.read_errors() for server in servers)
    _assert_verified(tmp_path)


# Starting


@pytest.mark.parametrize("count", extent([2], long=[2, 4]))
def test_servers_started_together_on_an_empty_database_all_come_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    postgres = shared_server()
    url = postgres.create_database()
    monkeypatch.setenv(STORE_ENVIRONMENT, url)
    try:
        with _servers(tmp_path, count) as servers:
            key = servers[0].create_key("agent", *WRITING)
            for number, server in enumerate(servers):
                with server.client(key) as client:
                    body = draft(f"of-{number}", sensitivity="confidential")
                    assert client.post(MEMORY, json=body).status_code == 201
            for server in servers:
                with server.client(key) as client:
                    page = client.get(MEMORY, params={"namespace": "invoices"}).json()
                assert {entry["key"] for entry in page["entries"]} == {
                    f"of-{number}" for number in range(count)
                }
                assert all(entry["value"] == {"completed": 23} for entry in page["entries"])
                assert not server.read_errors()
        _assert_verified(tmp_path)
    finally:
        postgres.drop_database(url)


@pytest.mark.parametrize("seals", extent([True], long=[True, False]))
def test_a_server_with_another_key_refuses_to_start(
    tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch, seals: bool
) -> None:
    with _servers(tmp_path / "first", 1) as [first]:
        if seals:
            key = first.create_key("agent", *WRITING)
            with first.client(key) as client:
                body = draft(sensitivity="confidential")
                assert client.post(MEMORY, json=body).status_code == 201
        # Another data directory, which has no key yet, and is to make none.
        message = _refusal(tmp_path / "second")
        assert "key-encryption key" in message
        assert not list((tmp_path / "second").glob("*.key"))
        monkeypatch.setenv(KEY_ENVIRONMENT, base64.b64encode(secrets.token_bytes(32)).decode())
        assert "not the one this database was sealed with" in _refusal(tmp_path / "third")
        right = (tmp_path / "first" / "memory.db.key").read_text().strip()
        monkeypatch.setenv(KEY_ENVIRONMENT, right)
        with _servers(tmp_path / "fourth", 1) as [fourth]:
            assert fourth.get("/ready").status_code == 200
        assert first.get("/ready").status_code == 200


def _refusal(data: Path) -> str:
    """What a server says that does not start, in one line."""
    process: subprocess.Popen[str] = spawn(data)
    try:
        printed, errors = process.communicate(timeout=_LIMIT)
    finally:
        process.kill()
    assert process.returncode == 1
    assert printed == ""
    assert len(errors.splitlines()) == 1, errors
    assert errors.startswith("memorywall: ")
    return errors


# Restarting


@dataclass
class Caller:
    """A client behind no balancer: it goes to the next server when one does not take it.

    unanswered: how often a connection ended without a reply
    """

    ports: Sequence[str]
    key: str
    name: str
    made: dict[str, str] = field(default_factory=dict)
    refused: int = 0
    unanswered: int = 0

    def run(self, stop: threading.Event) -> None:
        """Creates, changes and reads entries, until told to stop."""
        number = 0
        with ExitStack() as stack:
            clients = [
                stack.enter_context(open_client(url, {"X-API-Key": self.key}, timeout=30))
                for url in self.ports
            ]
            while not stop.is_set():
                name = f"{self.name}-{number}"
                once = {"Idempotency-Key": name}
                reply = self._send(clients, "POST", MEMORY, json=draft(name), headers=once)
                assert reply.status_code == 201, reply.text
                self.made[name] = reply.json()["id"]
                path = reply.headers["location"]
                assert self._send(clients, "GET", path).status_code == 200
                number += 1

    def _send(
        self, clients: list[httpx.Client], method: str, path: str, **options: Any
    ) -> httpx.Response:
        deadline = time.monotonic() + _LIMIT
        while time.monotonic() < deadline:
            try:
                return clients[0].request(method, path, **options)
            except httpx.ConnectError:
                self.refused += 1
            except httpx.TransportError:
                self.unanswered += 1
            clients.append(clients.pop(0))
            time.sleep(0.02)
        raise AssertionError("no server took the request")


@pytest.mark.sampled(0)
def test_a_rolling_restart_refuses_connections_and_nothing_else(tmp_path: Path, store: str) -> None:
    count, stop = extent(2, long=3), threading.Event()
    with _servers(tmp_path, count) as servers, ExitStack() as stack:
        key = servers[0].create_key("agent", *WRITING)
        ports = [server.url for server in servers]
        callers = [
            Caller([*ports[at % count :], *ports[: at % count]], key, f"caller-{at}")
            for at in range(extent(4, long=9))
        ]
        with ThreadPoolExecutor(len(callers)) as threads:
            running = [threads.submit(caller.run, stop) for caller in callers]
            try:
                for server in servers:
                    time.sleep(1.0)
                    assert server.terminate() == 0, server.read_errors()
                    assert not server.read_errors()
                    port = server.url.rpartition(":")[2]
                    again = ServerProcess(tmp_path, "--port", port, dev=False)
                    stack.enter_context(again)
                time.sleep(1.0)
            finally:
                stop.set()
            for one in running:
                one.result()
        with open_client(ports[0], {"X-API-Key": key}, timeout=30) as client:
            total = client.get(MEMORY, params={"namespace": "invoices", "limit": 1}).json()["total"]
    made = {entry for caller in callers for entry in caller.made.values()}
    refused = sum(caller.refused for caller in callers)
    unanswered = sum(caller.unanswered for caller in callers)
    print(f"{len(made)} creates, {refused} refused connections, {unanswered} without a reply")
    assert total == len(made) == sum(len(caller.made) for caller in callers)
    assert len(made) > 30
    assert refused > 0
    _assert_verified(tmp_path)


def _assert_verified(data: Path) -> None:
    printed = run_cli("verify", "--data", str(data), check=False)
    assert printed.returncode == 0, printed.stdout + printed.stderr
