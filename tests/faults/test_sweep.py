"""What has expired is invisible at once, and soon its bytes are gone."""

from __future__ import annotations

from pathlib import Path

from tests.faults.conftest import Expiring
from tests.faults.erasure import marks_in_files, remaining, tables_with
from tests.faults.support import assert_verified, wait_until
from tests.support.process import ServerProcess

_SWEEP_INTERVAL = 60.0
_ERASE_WITHIN = 60.0


def test_expired_values_leave_every_file(expiring: Expiring, tmp_path: Path) -> None:
    data = expiring.server.data
    assert tmp_path not in data.parents
    with expiring.server.client() as client:
        page = client.get("/api/v1/memory", params={"agent_id": "dev", "tags": "short-lived"})
        shown = page.text
    assert not [mark for mark in expiring.gone if mark in shown]
    assert all(mark in shown for mark in expiring.kept)
    wait_until(
        lambda: not remaining(data, expiring.gone),
        _SWEEP_INTERVAL + _ERASE_WITHIN,
        "expired values are in no file",
    )
    assert marks_in_files(data).keys() == set(expiring.kept)
    # The log keeps the names of what has been, and nothing else does.
    for name in expiring.names:
        assert tables_with(data / "memory.db", name) == {"event_contents"}
    assert_verified(data)
    assert expiring.server.terminate() == 0
    with ServerProcess(data):
        assert marks_in_files(data).keys() == set(expiring.kept)
