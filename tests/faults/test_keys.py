"""Administration beside a running server, while it is busy."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import httpx

from tests.faults.load import Load
from tests.faults.support import acting_key, assert_verified
from tests.support.process import ServerProcess, run_cli

_ENTRY = {"namespace": "n", "key": "k", "value": {"a": 1}, "memory_type": "working"}
_WHO = "/api/v1/agents/me"


def _prefix(key: str) -> str:
    return key.partition(".")[0]


def test_keys_and_tenants_are_administered_under_load(tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    with ServerProcess(tmp_path) as server:
        load = Load(seed, acting_key(server), workers=3)
        load.start(server.url)
        data = str(tmp_path)
        run_cli("tenants", "create", "acme", "--data", data)
        key = server.create_key("billing", tenant="acme")
        with server.client(key) as client:
            made = client.post("/api/v1/memory", json=_ENTRY)
            assert made.status_code == 201, made.text
            _revoked_key_is_refused_at_once(client, data, key, made.headers["location"])
        # Another key of the same agent is not concerned.
        other = server.create_key("billing", tenant="acme")
        with server.client(other) as client:
            assert client.get(made.headers["location"]).status_code == 200
        listed = json.loads(run_cli("keys", "list", "--data", data, "--json").stdout)
        assert sum(key["revoked_at"] is not None for key in listed) == 1
        load.wait_for(50)
        load.stop()
        load.settle(server.url)
        assert_verified(tmp_path)


def _revoked_key_is_refused_at_once(
    client: httpx.Client, data: str, key: str, location: str
) -> None:
    """The connection is open and the key well known to the server."""
    for _ in range(20):
        assert client.get(location).status_code == 200
    run_cli("keys", "revoke", _prefix(key), "--data", data)
    refused = client.get(location)
    assert refused.status_code == 401, refused.text
    assert refused.json()["error"] == "UNAUTHENTICATED"
    changed = client.patch(location, json={"value": {}}, headers={"If-Match": "1"})
    assert changed.status_code == 401


def test_a_key_that_acts_for_others_is_revoked_for_all_of_them(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        key = acting_key(server)
        clients = [server.client(key, agent=f"agent-{number}") for number in range(5)]
        for client in clients:
            assert client.post("/api/v1/memory", json=_ENTRY).status_code == 201
        run_cli("keys", "revoke", _prefix(key), "--data", str(tmp_path))
        for client in clients:
            assert client.get(_WHO).status_code == 401
            client.close()
        with server.client(key) as newcomer:
            assert newcomer.get(_WHO).status_code == 401
