"""Two servers on one file: the second refuses, the first is not disturbed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import memorywall
from memorywall.records.errors import StoreLockedError
from tests.faults.support import spawn
from tests.support.extent import extent
from tests.support.process import ServerProcess, run_cli

_REFUSES_WITHIN = extent(30.0, long=10.0)
_ENTRY = {"namespace": "n", "key": "k", "value": {"held": True}, "memory_type": "working"}


@pytest.mark.parametrize("arguments", extent([()], long=[(), ("--dev",)]))
def test_the_second_server_refuses_with_one_line(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    with ServerProcess(tmp_path) as first, first.client() as client:
        path = client.post("/api/v1/memory", json=_ENTRY).headers["location"]
        begun = time.monotonic()
        second = spawn(tmp_path, *arguments)
        printed, errors = second.communicate(timeout=30)
        assert time.monotonic() - begun < _REFUSES_WITHIN
        assert second.returncode != 0
        assert printed == ""
        assert len(errors.splitlines()) == 1, errors
        assert errors.startswith("memorywall: another process (a server or memorywall.open) has")
        assert "has memory.db open; stop it first, or ask a server with --url" in errors
        # The first goes on, with its key and its data, for reads and for writes.
        assert client.get(path).json()["value"] == {"held": True}
        with first.client() as newcomer:
            assert newcomer.get(path).status_code == 200
        changed = client.patch(path, json={"value": {}}, headers={"If-Match": "1"})
        assert changed.status_code == 200


def test_a_killed_server_leaves_no_lock_behind(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, dev=False) as first:
        key = first.create_key("agent")
        with first.client(key) as client:
            path = client.post("/api/v1/memory", json=_ENTRY).headers["location"]
        first.kill()
    with ServerProcess(tmp_path, dev=False) as second, second.client(key) as client:
        assert client.get(path).status_code == 200


def test_a_served_directory_is_not_opened_in_process(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    with ServerProcess(tmp_path) as server:
        with pytest.raises(StoreLockedError, match="another process"):
            memorywall.open(database)
        refused = run_cli("query", "--data", str(tmp_path), "--agent", "dev", check=False)
        assert refused.returncode == 1
        assert len(refused.stderr.splitlines()) == 1, refused.stderr
        with server.client() as other:
            assert other.get("/ready").status_code == 200
        assert server.terminate() == 0
    with memorywall.open(database, agent="dev") as client:
        client.memory.set("n", "k", {"held": True})
        # And the other way round: a server does not take what a program has open.
        second = spawn(tmp_path)
        _, errors = second.communicate(timeout=30)
        assert second.returncode != 0
        assert len(errors.splitlines()) == 1, errors
