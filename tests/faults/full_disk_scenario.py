"""What `test_full_disk` runs where it may mount a small file system."""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.support import assert_verified, wait_until
from tests.support.extent import extent
from tests.support.process import ServerProcess

_PAGE = 4096
_READS = (
    "/health",
    "/api/v1/capabilities",
    "/api/v1/memory?memory_type=working&agent_id=dev&limit=20",
    "/api/v1/memory?agent_id=dev&tags=even",
    "/api/v1/agents/dev/memory/summary",
    "/api/v1/agents/dev/events?limit=50",
    "/api/v1/memory/namespaces",
)


class SmallDisk:
    """A tmpfs with a file that takes up what shall not be free."""

    def __init__(self, root: Path) -> None:
        self.data = root / "data"
        self._root = root
        self._filler = root / "filler"

    @property
    def free(self) -> int:
        state = os.statvfs(self._root)
        return state.f_bavail * state.f_frsize

    def leave(self, size: int) -> None:
        """Makes `size` bytes free, a little more or less."""
        self.release()
        # The server may take some of it meanwhile, then the disk is full all the sooner.
        with suppress(OSError), self._filler.open("wb", buffering=0) as file:
            for _ in range(max(0, self.free - size) // _PAGE):
                file.write(bytes(_PAGE))

    def release(self) -> None:
        self._filler.unlink(missing_ok=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    root = tmp_path / "disk"
    root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(root)], check=True)
    yield SmallDisk(root)
    subprocess.run(["umount", "--lazy", str(root)], check=True)


def _draft(key: str, size: int) -> dict[str, Any]:
    return {
        "namespace": "n",
        "key": key,
        "value": {"filling": key[0] * size},
        "memory_type": "working",
        "tags": ["even"],
    }


def _assert_full(reply: httpx.Response) -> None:
    assert reply.status_code == 507, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json()
    assert (problem["error"], problem["status"]) == ("STORAGE_FULL", 507)
    assert problem["message"]


def _server(disk: SmallDisk) -> ServerProcess:
    # Its warnings would fill the pipe nobody reads.
    return ServerProcess(disk.data, "--log-level", "error")


class Writing:
    """Writes of every kind, each of which is done and kept or refused because the disk is full.

    One may still be done on a full disk: the log is written from its beginning again once all of
    it has been moved into the database.
    """

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.kept: dict[str, dict[str, Any]] = {}
        self.refused: Counter[str] = Counter()
        self._numbers = itertools.count()

    def create(self, size: int = 60_000, headers: dict[str, str] | None = None) -> bool:
        key = f"x{next(self._numbers)}"
        reply = self.client.post("/api/v1/memory", json=_draft(key, size), headers=headers)
        return self._keep("repeatable" if headers else "create", reply)

    def change(self, size: int = 60_000) -> bool:
        entry_id, entry = next(iter(self.kept.items()))
        reply = self.client.patch(
            f"/api/v1/memory/{entry_id}",
            json={"value": {"filling": "y" * size, "before": entry["version"]}},
            headers={"If-Match": str(entry["version"])},
        )
        return self._keep("change", reply)

    def batch(self) -> bool:
        elements = [_draft(f"x{next(self._numbers)}", 60_000) for _ in range(20)]
        return self._keep(
            "batch", self.client.post("/api/v1/memory/batch", json={"entries": elements})
        )

    def every_kind(self) -> None:
        self.create(headers={"Idempotency-Key": f"once-{next(self._numbers)}"})
        self.change()
        self.batch()

    def fill(self) -> None:
        """Writes until nothing more fits, and then a little longer."""
        refused = 0
        for _ in range(1_500):
            refused += not self.create()
            if refused == 5:
                return
        raise AssertionError("the disk was never full")

    def _keep(self, kind: str, reply: httpx.Response) -> bool:
        if not reply.is_success:
            _assert_full(reply)
            self.refused[kind] += 1
            return False
        body = reply.json()
        for entry in body.get("entries", [body]):
            self.kept[entry["id"]] = entry
        return True


def test_the_disk_fills_up_while_the_server_writes(disk: SmallDisk) -> None:
    with _server(disk) as server, server.client() as client:
        client.timeout = httpx.Timeout(60)
        writing = Writing(client)
        assert all(writing.create(2_000) for _ in range(20))
        # Each time it is another write that finds no room: the log's, the checkpointer's.
        for left in extent((0, 3_000_000), long=(0, 40_000, 150_000, 700_000, 3_000_000)):
            disk.leave(left)
            writing.fill()
            # A write or the checkpointer may find room again at any time.
            wait_until(
                lambda: not writing.create() and not _is_ready(client),
                60,
                "the server is not ready while writes are refused",
            )
            writing.every_kind()
            # Some rounds of the checkpointer go by.
            time.sleep(0.5)
            writing.every_kind()
            _reads_go_on(client, writing.kept)
            disk.release()
            wait_until(lambda: _is_ready(client), 60, "the server is ready once there is room")
            assert writing.create()
            assert writing.change(10)
        assert writing.refused.keys() == {"create", "repeatable", "change", "batch"}
        assert_verified(disk.data)
        _reads_go_on(client, writing.kept)
        server.kill()
    with _server(disk) as server, server.client() as client:
        _reads_go_on(client, writing.kept)
        assert_verified(disk.data)


def _is_ready(client: httpx.Client) -> bool:
    reply = client.get("/ready")
    if reply.status_code == 503:
        assert "room" in reply.text or "disk" in reply.text, reply.text
    return reply.status_code == 200


def _reads_go_on(client: httpx.Client, kept: dict[str, dict[str, Any]]) -> None:
    """And everything that was acknowledged is there."""
    for path in _READS:
        assert client.get(path).status_code == 200, path
    total = client.get("/api/v1/memory?memory_type=working&agent_id=dev&limit=1").json()["total"]
    assert total == len(kept)
    for entry_id, entry in kept.items():
        assert client.get(f"/api/v1/memory/{entry_id}").json() == entry


def test_there_is_room_for_the_log_but_not_for_its_index(disk: SmallDisk) -> None:
    """A long transaction makes the index of the log grow, in a file of its own."""
    batch = {"entries": [_draft(f"part-{number}", 15_300) for number in range(1_000)]}
    log, index = (disk.data / f"memory.db-{which}" for which in ("wal", "shm"))
    with _server(disk) as server, server.client() as client:
        # What is measured is the batch alone.
        wait_until(lambda: log.stat().st_size == 0, 60, "the log of the migrations is cut")
        index_size = index.stat().st_size
        assert client.post("/api/v1/memory/batch", json=batch).status_code == 200
        needed = log.stat().st_size
        assert index.stat().st_size > index_size, "this batch is too small for the test"
        server.kill()
    for file in disk.data.iterdir():
        file.unlink()
    with _server(disk) as server, server.client() as client:
        wait_until(lambda: log.stat().st_size == 0, 60, "the log of the migrations is cut")
        held = log.stat().st_blocks * 512
        disk.leave(needed - held + 3 * _PAGE)
        assert disk.free < needed - held + 32_768
        _assert_full(client.post("/api/v1/memory/batch", json=batch))
        assert not _is_ready(client)
        page = client.get("/api/v1/memory?memory_type=working&agent_id=dev")
        assert page.json()["total"] == 0
        disk.release()
        assert client.post("/api/v1/memory/batch", json=batch).status_code == 200
        assert_verified(disk.data)
