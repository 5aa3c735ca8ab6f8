"""A store in this process: opening, closing, forgetting to close."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import pytest

import memorywall
from memorywall import AsyncClient, Client
from memorywall.exceptions import ConfigurationError, StoreLockedError
from memorywall.storage.sqlite.connection import lock
from tests.support.asgi import AsgiTransport, Message
from tests.support.process import ServerProcess
from tests.support.stored import is_connected
from tests.test_sdk_support import take


def is_open(place: Path | str, directory: Path) -> bool:
    """Whether somebody has the store of a data directory open."""
    if isinstance(place, str):
        return is_connected(directory)
    try:
        lock(place).release()
    except StoreLockedError:
        return True
    return False


def test_a_path_in_a_directory_that_does_not_exist_creates_nothing(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "such.db", f"{tmp_path}/no/such/"):
        with pytest.raises(ConfigurationError, match=r"there is no directory .*create it"):
            memorywall.open(path)
    with pytest.raises(ConfigurationError, match="there is no directory"):
        asyncio.run(_open_async(tmp_path / "no" / "such.db"))
    assert not (tmp_path / "no").exists()


async def _open_async(path: Path) -> None:
    async with memorywall.open_async(path):
        pass


def test_write_remains_after_reopening(place: Path | str) -> None:
    with memorywall.open(place, agent="billing", task_id="t1") as client:
        made = client.memory.set("n", "k", {"n": 1})
        assert made.scope.task_id == "t1"
    with memorywall.open(str(place), agent="billing") as client:
        assert client.memory.get("n", "k") == made
    with memorywall.open(place, agent="other") as client:
        assert client.memory.get("n", "k") is None


def test_a_write_waits_until_it_is_found_by_meaning(place: Path | str) -> None:
    with memorywall.open(place, agent="billing", embedder="static") as client:
        for version in (1, 2):
            made = client.memory.put("n", "k", {"text": "a parcel"}, "episodic", wait_for="indexed")
            assert made.version == version
            found = client.memory.search("shipment", mode="dense")
            assert ([hit.entry.key for hit in found], found.pending) == (["k"], 0)


@pytest.mark.sqlite("a file is open once, a database as often as it likes")
@pytest.mark.anyio
async def test_a_file_is_open_once(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with memorywall.open(path):
        with pytest.raises(StoreLockedError, match="this process"):
            await memorywall.open_async(path)
        with pytest.raises(StoreLockedError, match="embedder"):
            memorywall.open(path, embedder="static")
    async with memorywall.open_async(path):
        with pytest.raises(StoreLockedError, match="this process"):
            memorywall.open(path)
    with ServerProcess(tmp_path), pytest.raises(StoreLockedError):
        memorywall.open(path)
    memorywall.open(path).close()


@pytest.mark.sqlite("another process may have a database open too")
def test_clients_of_one_process_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    # A cell of a notebook that runs again opens the file before it drops the first client.
    client = memorywall.open(path, agent="billing")
    client.memory.put("n", "k", {"n": 1})
    client = memorywall.open(str(path), agent="billing")
    gc.collect()
    assert client.memory.get("n", "k").value == {"n": 1}
    with memorywall.open(path, agent="other") as other:
        # Each agent that opens the file administers it, as if it were alone.
        assert other.memory.get("n", "k") is None
        assert other.status().status == "ready"
    with pytest.raises(RuntimeError, match="closed"):
        other.memory.get("n", "k")
    assert client.memory.put("n", "k", {"n": 2}).version == 2
    assert is_open(path, tmp_path)
    client.close()
    assert not is_open(path, tmp_path)


@pytest.mark.anyio
async def test_an_async_client_opens_with_await_and_with_the_first_request(
    place: Path | str, tmp_path: Path
) -> None:
    client = await memorywall.open_async(place, agent="billing")
    made = await client.memory.put("n", "k", {"n": 1})
    again = memorywall.open_async(place, agent="billing")
    assert await again.memory.get("n", "k") == made
    await client.close()
    await client.close()
    with pytest.raises(RuntimeError, match="closed"):
        await client.memory.get("n", "k")
    assert (await again.for_user("ana").remember("tea")).subjects == ("ana",)
    assert is_open(place, tmp_path)
    await again.aclose()
    assert not is_open(place, tmp_path)


@pytest.mark.parametrize("is_in_memory", [True, False])
@pytest.mark.anyio
async def test_requests_that_begin_together_open_one_store(
    place: Path | str, tmp_path: Path, is_in_memory: bool
) -> None:
    client = memorywall.open_async(":memory:" if is_in_memory else place, agent="billing")
    texts = {f"Ana drinks tea {number}" for number in range(4)}
    await asyncio.gather(*(client.remember(text) for text in texts))
    assert {hit.text for hit in await client.recall("tea")} == texts
    await client.close()
    assert not is_open(place, tmp_path)


@pytest.mark.sqlite("a file is open once, a database as often as it likes")
@pytest.mark.anyio
async def test_requests_after_a_failed_opening_try_again(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    client = memorywall.open_async(path, agent="billing")
    other = lock(path)
    failed = await asyncio.gather(
        client.remember("tea"), client.remember("tea"), return_exceptions=True
    )
    other.release()
    assert [type(one) for one in failed] == [StoreLockedError] * 2
    await client.remember("tea")
    await client.close()
    assert not is_open(path, tmp_path)


def test_the_end_of_the_event_loop_closes_the_store(place: Path | str, tmp_path: Path) -> None:
    async def forget() -> None:
        client = memorywall.open_async(place, agent="billing")
        await client.memory.put("n", "k", {"n": 1})
        kept.append(client)

    kept: list[AsyncClient] = []
    for _ in range(2):
        asyncio.run(forget())
        assert not is_open(place, tmp_path)


@pytest.mark.anyio
async def test_a_store_in_memory_is_new_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with memorywall.open(":memory:") as one, memorywall.open(":memory:") as two:
        one.remember("Ana drinks tea")
        assert [hit.text for hit in one.recall("tea")] == ["Ana drinks tea"]
        assert list(two.recall("tea")) == []
        assert len(list(tmp_path.iterdir())) == 2
    async with memorywall.open_async(":memory:") as three:
        await three.remember("Ana drinks tea")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sqlite("a data directory has a file")
def test_a_data_directory_is_opened_as_the_server_opens_it(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        with server.client() as dev:
            body = {"namespace": "n", "key": "k", "memory_type": "working", "value": {"n": 1}}
            assert dev.post("/api/v1/memory", json=body).status_code == 201
        with pytest.raises(StoreLockedError):
            memorywall.open(tmp_path)
        assert server.terminate() == 0
    for path in (tmp_path, str(tmp_path), f"{tmp_path}/", tmp_path / "memory.db"):
        with memorywall.open(path, agent="dev") as client:
            entry = client.memory.get("n", "k")
            assert entry is not None
            assert entry.value == {"n": 1}
    with ServerProcess(tmp_path) as server, server.client() as dev:
        assert dev.get("/api/v1/memory/by-name?namespace=n&key=k").json()["entry"] is not None


@pytest.mark.sqlite("a data directory has a file")
@pytest.mark.anyio
async def test_a_path_that_ends_in_a_separator_is_a_data_directory(tmp_path: Path) -> None:
    memorywall.open(f"{tmp_path}/new/").close()
    assert (tmp_path / "new" / "memory.db").is_file()
    async with memorywall.open_async(tmp_path / "new", agent="billing") as client:
        await client.memory.set("n", "k", {"n": 1})
    with memorywall.open(tmp_path / "new" / "memory.db", agent="billing") as again:
        assert again.memory.get("n", "k") is not None


def test_unopenable_value_is_reported(place: Path | str, tmp_path: Path) -> None:
    with memorywall.open(place) as client:
        client.memory.set("n", "k", {"n": 1}, sensitivity="restricted")
    (key,) = tmp_path.rglob("memory.db.key")
    key.unlink()
    with pytest.raises(ConfigurationError, match="key"):
        memorywall.open(place)


@pytest.mark.anyio
async def test_the_asynchronous_twin_shares_the_store(place: Path | str) -> None:
    async with memorywall.open_async(place, agent="billing", task_id="t1") as client:
        made = await client.memory.set("n", "k", {"n": 1})
    with memorywall.open(place, agent="billing") as again:
        assert again.memory.get("n", "k") == made


@pytest.mark.anyio
async def test_an_async_client_works_on_its_own_event_loop(place: Path | str) -> None:
    async with memorywall.open_async(place, agent="billing") as client:
        with pytest.raises(RuntimeError, match="event loop"):
            await asyncio.to_thread(asyncio.run, client.memory.get("n", "k"))


def test_closed_client_raises_and_can_be_closed_twice(place: Path | str) -> None:
    client = memorywall.open(place)
    client.close()
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.memory.get("n", "k")


def test_closing_ends_what_another_thread_follows(place: Path | str) -> None:
    client = memorywall.open(place)
    client.memory.set("n", "k", {"n": 1})
    followed, ended = threading.Event(), threading.Event()

    def follow() -> None:
        try:
            for _ in client.events.follow():
                followed.set()
        except RuntimeError as error:
            if "closed" in str(error):
                ended.set()

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    assert followed.wait(timeout=20)
    client.close()
    assert ended.wait(timeout=20)


def test_writes_under_way_are_answered_or_refused(place: Path | str) -> None:
    client = memorywall.open(place, agent="billing")
    written: list[int] = []
    started = threading.Event()

    def write() -> None:
        number = 0
        while True:
            try:
                client.memory.set("n", f"{threading.get_ident()}-{number}", {"n": number})
            except (RuntimeError, memorywall.exceptions.MemorywallError):
                return
            written.append(number)
            number += 1
            if number > 5:
                started.set()

    threads = [threading.Thread(target=write, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert started.wait(timeout=20)
    client.close()
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()
    with memorywall.open(place, agent="billing") as again:
        assert again.memory.query(memory_type="working", limit=1).total >= len(written)


def test_a_forgotten_client_closes_with_the_last_use(place: Path | str, tmp_path: Path) -> None:
    memory = memorywall.open(place).memory
    gc.collect()
    memory.set("n", "k", {"n": 1})
    assert is_open(place, tmp_path)
    del memory
    gc.collect()
    deadline = time.monotonic() + 20
    while is_open(place, tmp_path):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    "ending",
    ["", "raise SystemExit(3)", "client.close()", "events = client.events.follow(); next(events)"],
)
@pytest.mark.sampled(2)
def test_a_program_that_forgets_to_close_ends(place: Path | str, ending: str) -> None:
    program = f"""
import memorywall
client = memorywall.open({str(place)!r}, agent="billing")
client.memory.set("n", "k", {{"n": 1}})
{ending}
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (3 if "Exit" in ending else 0, "")
    with memorywall.open(place, agent="billing") as client:
        assert client.memory.get("n", "k") is not None


@pytest.mark.anyio
async def test_an_abandoned_stream_does_not_hold_up_closing(place: Path | str) -> None:
    async with memorywall.open_async(place, agent="billing") as client:
        await client.memory.batch(
            {"namespace": "n", "key": f"k{n}", "value": {"fill": "x" * 1_000}} for n in range(600)
        )
        assert len(await take(client.memory.export(), 1)) == 1
        assert len(await take(client.events.follow(), 2)) == 2
        held = client.memory.export()
        await anext(held)
    await held.aclose()


@pytest.mark.anyio
async def test_an_application_that_fails_is_not_waited_for() -> None:
    async def silent(scope: Message, receive: object, send: object) -> None:
        pass

    async def failing(scope: Message, receive: object, send: object) -> None:
        raise LookupError("broken")

    async with httpx.AsyncClient(transport=AsgiTransport(silent)) as http:
        with pytest.raises(httpx.RemoteProtocolError):
            await http.get("http://x/")
    async with httpx.AsyncClient(transport=AsgiTransport(failing)) as http:
        with pytest.raises(LookupError):
            await http.get("http://x/")


def test_the_environment_of_a_server_does_not_matter(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYWALL_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("MEMORYWALL_API_KEY", "mw_wrong.wrong")
    with memorywall.open(place) as client:
        assert isinstance(client, Client)
        assert client.whoami().agent_id == "local"


def test_the_status_counts_entries_by_tier(place: Path | str) -> None:
    with memorywall.open(place, agent="root") as client:
        client.memory.set("n", "k", {"a": 1}, memory_type="episodic")
        status = client.status()
    assert (status.status, status.tenant) == ("ready", "default")
    counts = {one.memory_type: (one.entries, one.bytes) for one in status.tiers if one.entries}
    assert counts == {"episodic": (1, 7)}
    jobs = "embed end_leases end_sessions expire judge migrate_facts prune reseal seal segments"
    assert {one.name for one in status.jobs} == set(jobs.split())
