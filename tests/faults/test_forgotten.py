"""Forgetting is hard too: the bytes leave the files, beside a server and without one."""

from __future__ import annotations

import secrets
from pathlib import Path

import apsw

from tests.faults.erasure import marked_value, marks_in_files, new_mark, remaining
from tests.faults.support import assert_verified, wait_until
from tests.support.extent import extent
from tests.support.process import ServerProcess, run_cli

_ERASED_WITHIN = 60.0
_TIERS = ("working", "session", "episodic")


def _write(server: ServerProcess, agent: str) -> set[str]:
    """Gives an agent memory whose values are marked; the marks of what is not sealed."""
    marks = set()
    with server.client(server.create_key(agent)) as client:
        for number in range(extent(24, long=60)):
            mark = new_mark()
            sealed = number % 3 == 0
            body = {
                "namespace": "erasure",
                "key": f"key-{secrets.token_hex(8)}",
                "value": marked_value(mark, (0, 1_200, 30_000)[number % 7 % 3]),
                "memory_type": _TIERS[number % 3 - number % 2],
                "sensitivity": "restricted" if sealed else "internal",
            }
            headers = {"Idempotency-Key": secrets.token_hex(8)} if number % 2 else {}
            made = client.post("/api/v1/memory", json=body, headers=headers)
            assert made.status_code == 201, made.text
            if not sealed:
                marks.add(mark)
    return marks


def _wrapped(data: Path, agent: str) -> list[bytes]:
    """The agent's data keys as they lie in the database."""
    connection = apsw.Connection(str(data / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(5_000)
    try:
        rows = connection.execute("SELECT wrapped FROM data_keys WHERE subject = ?", (agent,))
        return [row[0] for row in rows]
    finally:
        connection.close()


def _stands_in_a_file(data: Path, content: bytes) -> bool:
    return any(content in path.read_bytes() for path in data.rglob("*") if path.is_file())


def _forget(data: Path, agent: str) -> None:
    run_cli("forget", "--data", str(data), "--agent", agent, "--yes")


def test_the_server_erases_what_a_command_beside_it_removes(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data) as server:
        gone, kept = _write(server, "ada"), _write(server, "grace")
        (key,) = _wrapped(data, "ada")
        assert marks_in_files(data).keys() == gone | kept
        assert _stands_in_a_file(data, key)
        # Nothing of what the server itself does would make it look.
        _forget(data, "ada")
        wait_until(
            lambda: not remaining(data, gone) and not _stands_in_a_file(data, key),
            _ERASED_WITHIN,
            "what was forgotten is in no file",
            pause=0.5,
        )
        assert marks_in_files(data).keys() == kept
        assert _wrapped(data, "ada") == []
        assert len(_wrapped(data, "grace")) == 1
        assert server.terminate() == 0
    assert marks_in_files(data).keys() == kept
    assert_verified(data)


def test_without_a_server_everything_is_erased_when_the_command_ends(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data) as server:
        gone, kept = _write(server, "ada"), _write(server, "grace")
        (key,) = _wrapped(data, "ada")
        server.kill()
    assert marks_in_files(data).keys() == gone | kept
    _forget(data, "ada")
    assert marks_in_files(data).keys() == kept
    assert not _stands_in_a_file(data, key)
    assert_verified(data)
