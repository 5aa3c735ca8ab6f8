"""The PostgreSQL that the tests start: what the tests of the store rely on it for."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.support.postgres import (
    PostgresError,
    PostgresServer,
    database_of,
    fresh_database,
    replica_of,
    shared_server,
    wait_until,
)
from tests.support.postgres_databases import in_own_thread
from tests.support.postgres_programs import Workspace, copy_installation, find_installation

REPOSITORY = Path(__file__).parents[1]
WITHIN = 30.0


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server that a test may do anything to."""
    with PostgresServer() as started:
        yield started


def run(url: str, statement: str) -> list[asyncpg.Record]:
    """Runs a statement on a connection of its own."""

    async def work() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(url, timeout=WITHIN, command_timeout=WITHIN)
        try:
            rows: list[asyncpg.Record] = await connection.fetch(statement)
            return rows
        finally:
            await connection.close(timeout=WITHIN)

    return in_own_thread(lambda: asyncio.run(work()))


def prepare_notes(url: str) -> None:
    run(url, "CREATE TABLE notes (body text PRIMARY KEY)")
    run(url, "INSERT INTO notes VALUES ('prepared')")


def processes_naming(text: str) -> list[str]:
    """The command lines on this machine that hold the text."""
    found = []
    for command_line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            words = command_line.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if text in words:
                found.append(words)
    return found


# One server


def test_a_server_takes_a_query_over_tcp_and_over_its_socket() -> None:
    server = shared_server()
    assert "PostgreSQL" in server.value("SELECT version()")
    assert run(server.url(), "SELECT 1 + 1 AS two")[0]["two"] == 2
    if isinstance(server, PostgresServer):
        over_socket = run(server.url(via="socket"), "SELECT inet_server_addr() AS address")
        assert over_socket[0]["address"] is None


def test_the_shared_server_is_one() -> None:
    assert shared_server() is shared_server()


def test_listens_on_loopback_only(server: PostgresServer) -> None:
    assert server.value("SHOW listen_addresses") == "127.0.0.1"
    assert urlsplit(server.url()).hostname == "127.0.0.1"


def test_durable_turns_fsync_on_and_settings_come_first(server: PostgresServer) -> None:
    assert server.value("SHOW fsync") == "off"
    with PostgresServer(durable=True, settings={"max_connections": "40"}) as durable:
        assert durable.value("SHOW fsync") == "on"
        assert durable.value("SHOW full_page_writes") == "on"
        assert durable.value("SHOW max_connections") == "40"


def test_vectors_can_be_compared() -> None:
    with fresh_database() as url:
        run(url, "CREATE EXTENSION vector")
        assert run(url, "SELECT '[1,0]'::vector <-> '[1,2]'::vector AS distance")[0][0] == 2.0


def test_a_server_with_passwords_asks_for_them() -> None:
    with PostgresServer(password=True) as server:
        server.execute("CREATE ROLE reader LOGIN PASSWORD 'p@ss/word: é'")
        right = server.url(user="reader", password="p@ss/word: é")
        assert run(right, "SELECT current_user")[0][0] == "reader"
        assert run(server.url(), "SELECT current_user")[0][0] == "postgres"
        for wrong in (
            server.url(user="reader", password="password"),
            server.url(user="postgres", password="password"),
        ):
            with pytest.raises(asyncpg.InvalidPasswordError):
                run(wrong, "SELECT 1")


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(PostgresError, match="shared_buffers"):
        PostgresServer(settings={"shared_buffers": "plenty"})


# Databases


def test_databases_from_one_template_are_separate() -> None:
    called = []

    def prepare(url: str) -> None:
        called.append(url)
        prepare_notes(url)

    with fresh_database(prepare) as first, fresh_database(prepare) as second:
        assert first != second
        run(first, "INSERT INTO notes VALUES ('first')")
        run(second, "DELETE FROM notes")
        with fresh_database(prepare) as third:
            read = "SELECT body FROM notes ORDER BY body"
            assert [row["body"] for row in run(first, read)] == ["first", "prepared"]
            assert run(second, read) == []
            assert [row["body"] for row in run(third, read)] == ["prepared"]
    assert len(called) == 1
    assert called[0] not in {first, second, third}


def test_a_database_is_dropped_even_with_a_connection_open() -> None:
    server = shared_server()

    async def leave_open() -> str:
        with server.fresh_database() as url:
            connection = await asyncpg.connect(url)
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
            await connection.fetch("SELECT 1")
        connection.terminate()
        return database_of(url)

    name = in_own_thread(lambda: asyncio.run(leave_open()))
    assert server.rows("SELECT 1 FROM pg_database WHERE datname = $1", name) == []


def test_a_failed_preparation_leaves_no_database_and_is_tried_again(
    server: PostgresServer,
) -> None:
    count = "SELECT count(*) FROM pg_database"
    before = server.value(count)
    failures = [ValueError("not yet")]

    def prepare(url: str) -> None:
        prepare_notes(url)
        if failures:
            raise failures.pop()

    with pytest.raises(ValueError, match="not yet"), server.fresh_database(prepare):
        pass
    assert server.value(count) == before
    with server.fresh_database(prepare) as url:
        assert len(run(url, "SELECT body FROM notes")) == 1


@pytest.mark.anyio
async def test_databases_can_be_made_where_an_event_loop_runs() -> None:
    with fresh_database(prepare_notes) as url:
        connection = await asyncpg.connect(url)
        try:
            assert await connection.fetchval("SELECT body FROM notes") == "prepared"
        finally:
            await connection.close()


# Stopping


@pytest.mark.parametrize("mode", ["fast", "immediate", "kill"])
def test_a_restart_keeps_port_and_data(server: PostgresServer, mode: str) -> None:
    server.execute("CREATE TABLE kept (number integer)")
    server.execute("INSERT INTO kept VALUES (1)")
    address = server.address
    if mode == "fast":
        server.stop()
    elif mode == "immediate":
        server.stop("immediate")
    else:
        server.kill()
    assert not server.is_running()
    assert processes_naming(str(server.directory)) == []
    with pytest.raises(ConnectionRefusedError):
        run(address, "SELECT 1")
    server.start()
    assert server.is_running()
    assert server.address == address
    assert [row["number"] for row in run(address, "SELECT number FROM kept")] == [1]


def test_a_kill_ends_a_busy_connection_at_once(server: PostgresServer) -> None:
    ended = []

    def keep_busy() -> None:
        try:
            run(server.url(), "SELECT count(*) FROM generate_series(1, 100000000000)")
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            ended.append(error)

    busy = threading.Thread(target=keep_busy)
    busy.start()
    active = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT count(*) FROM gen%'"
    wait_until(lambda: server.value(active) == 1, "the connection is busy")
    server.kill()
    busy.join(WITHIN)
    assert not busy.is_alive()
    assert len(ended) == 1
    assert processes_naming(str(server.directory)) == []


def test_closing_leaves_no_files() -> None:
    with PostgresServer() as server:
        directory = server.directory
        assert directory.is_dir()
    assert not directory.exists()
    assert not server.is_running()


# A replica


def test_replica_follows_and_refuses_writes(server: PostgresServer) -> None:
    server.execute("CREATE TABLE rows (number integer)")
    with replica_of(server) as replica:
        server.execute("INSERT INTO rows SELECT generate_series(1, 1000)")
        replica.wait_until_caught_up()
        assert replica.value("SELECT sum(number) FROM rows") == 500_500
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            replica.execute("INSERT INTO rows VALUES (0)")


def test_a_commit_waits_for_a_synchronous_replica(server: PostgresServer) -> None:
    server.execute("CREATE TABLE rows (number integer)")
    with replica_of(server) as replica:
        replica.make_synchronous()
        replica.stop()
        writer = threading.Thread(target=run, args=(server.url(), "INSERT INTO rows VALUES (1)"))
        writer.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        wait_until(lambda: server.value(waiting) == 1, "the commit waits for the replica")
        assert server.value("SELECT count(*) FROM rows") == 0
        assert writer.is_alive()
        replica.start()
        writer.join(WITHIN)
        assert not writer.is_alive()
        assert replica.value("SELECT count(*) FROM pg_stat_wal_receiver") == 1
        replica.wait_until_caught_up()
        assert replica.value("SELECT number FROM rows") == 1


@pytest.mark.parametrize("how", ["immediate", "kill"])
def test_a_promoted_replica_has_every_acknowledged_row(server: PostgresServer, how: str) -> None:
    server.execute("CREATE TABLE rows (writer integer, number integer)")
    acknowledged: list[tuple[int, int]] = []

    async def write(writer: int) -> None:
        with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            connection = await asyncpg.connect(server.url())
            try:
                for number in range(1_000_000):
                    await connection.execute("INSERT INTO rows VALUES ($1, $2)", writer, number)
                    acknowledged.append((writer, number))
            finally:
                connection.terminate()

    async def write_all() -> None:
        await asyncio.gather(*(write(writer) for writer in range(8)))

    with replica_of(server) as replica:
        replica.make_synchronous()
        load = threading.Thread(target=lambda: asyncio.run(write_all()))
        load.start()
        wait_until(lambda: len(acknowledged) > 200, "the load runs")
        if how == "kill":
            server.kill()
        else:
            server.stop("immediate")
        load.join(WITHIN)
        assert not load.is_alive()
        replica.promote()
        present = {(row[0], row[1]) for row in replica.rows("SELECT writer, number FROM rows")}
        assert set(acknowledged) - present == set()
        # It neither waits for the replica it was nor refuses to write.
        replica.execute("INSERT INTO rows VALUES (-1, -1)")
        assert replica.value("SELECT count(*) FROM rows WHERE writer = -1") == 1
        with replica_of(replica, name="second") as second:
            second.wait_until_caught_up()
            assert second.value("SELECT count(*) FROM rows WHERE writer = -1") == 1


# The end of the process that started it

STARTS_SERVERS = """
import json, sys, time
from tests.support.postgres import PostgresServer, replica_of, shared_server
shared, own = shared_server(), PostgresServer(durable=True)
replica = replica_of(own)
places = [str(server.directory.parent) for server in (shared, own, replica)]
print(json.dumps(places), flush=True)
sys.stdin.read()
"""


def start_owner(script: str, **environment: str) -> subprocess.Popen[str]:
    # Without the server that this run may have been given: these tests are about our own.
    inherited = {
        name: value for name, value in os.environ.items() if name != "MEMORYWALL_TEST_POSTGRES"
    }
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script],
        cwd=REPOSITORY,
        env={**inherited, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None])
def test_servers_end_with_the_process_that_started_them(end: signal.Signals | None) -> None:
    with start_owner(STARTS_SERVERS) as owner:
        assert owner.stdout is not None
        printed = owner.stdout.readline()
        assert printed, owner.communicate()[1]
        places: list[str] = json.loads(printed)
        assert all(processes_naming(place) for place in places)
        if end is not None:
            owner.send_signal(end)
        _, errors = owner.communicate(timeout=WITHIN)
        assert errors == ""
    assert owner.returncode == (0 if end is None else -end)
    running = "no process names one of the directories"
    wait_until(lambda: not any(processes_naming(place) for place in places), running)
    wait_until(lambda: not any(Path(place).exists() for place in places), "they are removed")


def test_a_server_ends_when_its_keeper_is_killed(server: PostgresServer) -> None:
    directory = str(server.directory)
    process = int((server.data / "postmaster.pid").read_text().split()[0])
    parent = re.search(r"^PPid:\s+(\d+)$", Path(f"/proc/{process}/status").read_text(), re.M)
    assert parent is not None
    os.kill(int(parent[1]), signal.SIGKILL)
    wait_until(lambda: not processes_naming(directory), "the server has ended")
    server.start()
    assert server.value("SELECT 1") == 1


def test_another_server_is_used_when_one_is_named() -> None:
    script = """
from tests.support.postgres import fresh_database, shared_server
def prepare(url):
    pass
with fresh_database(prepare) as url:
    print(url)
    print(shared_server().value("SELECT count(*) FROM pg_database WHERE datname LIKE 'test%'"))
"""
    with PostgresServer(password=True) as named:
        with start_owner(script, MEMORYWALL_TEST_POSTGRES=named.url()) as owner:
            printed, errors = owner.communicate(timeout=WITHIN)
        assert errors == ""
        url, count = printed.split()
        assert urlsplit(url).netloc == urlsplit(named.url()).netloc
        assert count == "2"
        assert named.rows("SELECT 1 FROM pg_database WHERE datname LIKE 'test%'") == []


# Where the installation lies


def test_an_installation_in_a_closed_directory_is_used(tmp_path: Path) -> None:
    closed = tmp_path / "closed to others"
    closed.mkdir(mode=0o700)
    copy_installation(find_installation(), closed)
    workspace = Workspace(closed)
    try:
        data = workspace.make_directory(durable=True)
        workspace.copy_data(data)
        assert (data / "PG_VERSION").read_text() == "18\n"
        # Its owner runs it where it is; root, whose programs run as another user, runs a copy.
        assert workspace.programs.is_relative_to(closed) == (os.geteuid() != 0)
    finally:
        workspace.remove()
    assert not workspace.disk.exists()
    assert not workspace.memory.exists()
