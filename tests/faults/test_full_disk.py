"""A disk that is full, and one that refuses to write: 507, reads go on, and it recovers.

The scenario needs a small file system of its own. It runs in a mount namespace where it may make
one, with or without being root.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from memorywall.settings import STORE_ENVIRONMENT
from tests.faults.support import assert_verified, wait_until
from tests.support.process import ServerProcess

_SCENARIO = Path(__file__).with_name("full_disk_scenario.py")
_NAMESPACES = (
    ["unshare", "--mount"],
    ["unshare", "--user", "--map-root-user", "--mount"],
)


def _mount_namespace(directory: Path) -> list[str]:
    """The first way in which this user can mount a small file system."""
    said = []
    for prefix in _NAMESPACES:
        command = [*prefix, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(directory)]
        tried = subprocess.run(command, capture_output=True, text=True, timeout=30)
        if tried.returncode == 0:
            return prefix
        said.append(f"{' '.join(prefix)}: {tried.stderr.strip()}")
    raise AssertionError(f"this test must be able to mount a tmpfs and cannot: {said}")


def test_full_disk_is_reported_and_recovered_from(tmp_path: Path) -> None:
    prefix = _mount_namespace(tmp_path)
    ran = subprocess.run(
        [*prefix, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(_SCENARIO)],
        capture_output=True,
        text=True,
        timeout=180,
    )
    print(ran.stdout)
    assert ran.returncode == 0, "see what the scenario printed"
    assert "2 passed" in ran.stdout


def test_a_start_on_a_full_disk_says_so_in_one_line(tmp_path: Path) -> None:
    prefix = _mount_namespace(tmp_path)
    mount = f"mount -t tmpfs -o size=64k tmpfs {tmp_path}"
    start = f"{sys.executable} -m memorywall serve --data {tmp_path}/data --port 0"
    ran = subprocess.run(
        [*prefix, "sh", "-c", f"{mount} && exec {start}"],
        capture_output=True,
        text=True,
        timeout=60,
        env={key: value for key, value in os.environ.items() if key != STORE_ENVIRONMENT},
    )
    assert ran.returncode == 1, ran.stderr
    assert "because its disk is full" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1, ran.stderr


def test_disk_write_error_is_reported_and_recovered_from(tmp_path: Path) -> None:
    """A quota answers with another error than a full disk does; a limit on the size of the
    process's files is such a one."""
    unlimited = resource.RLIM_INFINITY
    with ServerProcess(tmp_path, "--log-level", "error") as server, server.client() as client:
        process = server.process.pid

        def create(key: str, size: int) -> int:
            reply = client.post(
                "/api/v1/memory",
                json={
                    "namespace": "n",
                    "key": key,
                    "value": {"filling": "x" * size},
                    "memory_type": "working",
                },
            )
            if not reply.is_success:
                assert reply.json()["error"] == "STORAGE_FULL", reply.text
            return reply.status_code

        assert create("before", 1_000) == 201
        session = client.post("/api/v1/sessions", json={}).json()["id"]
        path = f"/api/v1/sessions/{session}"
        turns = {"turns": [{"role": "user", "content": "It costs 180 euros."}]}
        assert client.post(f"{path}/turns", json=turns).is_success
        # More than the files may have then, so that no other write makes room for it.
        large = {"working": [{"page": "x" * 500_000}], "state": {"step": 2}}
        resource.prlimit(process, resource.RLIMIT_FSIZE, (400_000, unlimited))
        answers = [create(f"large-{number}", 60_000) for number in range(30)]
        assert answers[-1] == 507
        assert set(answers) <= {201, 507}
        refused = client.post(f"{path}/checkpoints", json=large)
        assert (refused.status_code, refused.json()["error"]) == (507, "STORAGE_FULL")
        assert client.get("/ready").status_code == 503
        counts = client.get(path).json()["counts"]
        assert (counts["turn_count"], counts["summarized_through"]) == (1, 0)
        assert client.get(f"{path}/checkpoints").json() == {"checkpoints": []}
        total = client.get("/api/v1/memory?memory_type=working&agent_id=dev&limit=1").json()
        assert total["total"] == 1 + answers.count(201)
        resource.prlimit(process, resource.RLIMIT_FSIZE, (unlimited, unlimited))
        ready = lambda: client.get("/ready").status_code == 200  # noqa: E731
        wait_until(ready, 60, "the server is ready again")
        assert create("after", 60_000) == 201
        assert client.post(f"{path}/checkpoints", json=large).json()["number"] == 1
        resumed = client.post(f"{path}/resume", json={}).json()
        assert resumed["checkpoint"]["working"] == large["working"]
        assert_verified(tmp_path)
