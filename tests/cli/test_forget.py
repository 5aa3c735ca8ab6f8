"""forget: beside a running server, and on a directory alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.shell import misuse, refuse, run, succeed
from tests.support.process import ServerProcess

_MEMORY = "/api/v1/memory"


def _remember(server: ServerProcess, key: str, name: str, **fields: Any) -> None:
    body = {
        "namespace": f"of-{name}",
        "key": name,
        "value": {"text": "secret"},
        "memory_type": "working",
        "sensitivity": "restricted",
        **fields,
    }
    with server.client(key) as client:
        made = client.post(_MEMORY, json=body, headers={"Idempotency-Key": name})
        assert made.status_code == 201, made.text


def _rows(table: str) -> dict[str, int]:
    """What the table says has gone."""
    lines = table.splitlines()
    assert lines[0].split() == ["what", "gone"]
    return {name.strip(): int(number) for name, number in (_halves(one) for one in lines[2:])}


def _halves(line: str) -> tuple[str, str]:
    name, _, number = line.rstrip().rpartition(" ")
    return name, number


def _gone(table: str) -> dict[str, int]:
    return {name: number for name, number in _rows(table).items() if number}


def test_an_agent_is_forgotten_beside_the_server(server: ServerProcess) -> None:
    ada, grace = server.create_key("ada"), server.create_key("grace")
    _remember(server, ada, "one")
    _remember(server, ada, "two", memory_type="episodic")
    _remember(server, ada, "shared", memory_type="semantic")
    _remember(server, grace, "one")
    command = ("forget", *server.place, "--agent", "ada", "--yes")
    printed = run(*command)
    assert printed.returncode == 0, printed.stderr
    assert _gone(printed.stdout) == {
        "working entries": 1,
        "episodic entries": 1,
        "stored replies": 3,
        "API keys revoked": 1,
        "data keys destroyed": 1,
    }
    assert "Shared memory" in printed.stderr
    assert _gone(succeed(*command)) == {}
    with server.client(ada) as client:
        assert client.get(_MEMORY).status_code == 401
    with server.client(grace) as client:
        found = client.get(_MEMORY, params={"namespace": "of-*"}).json()["entries"]
        assert [one["value"] for one in found] == [{"text": "secret"}] * 2
    # The server that had the key goes on with a new one.
    ada = server.create_key("ada")
    _remember(server, ada, "one", sensitivity="confidential")
    with server.client(ada) as client:
        stream = client.get("/api/v1/agents/ada/events", params={"limit": 1_000}).json()["events"]
    assert [one["type"] for one in stream][-4:] == [
        "memory.deleted",
        "memory.deleted",
        "agent.forgotten",
        "memory.created",
    ]
    succeed("verify", *server.place)
    assert _gone(succeed(*command))["working entries"] == 1


def test_agent_is_forgotten_in_a_directory_without_a_server(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        _remember(server, server.create_key("ada", tenant="default"), "one")
        assert server.terminate() == 0
    gone = _gone(succeed("forget", *server.place, "--agent", "ada", "--yes"))
    assert gone == {
        "working entries": 1,
        "stored replies": 1,
        "API keys revoked": 1,
        "data keys destroyed": 1,
    }
    succeed("verify", *server.place)


def test_nothing_goes_without_a_yes(server: ServerProcess) -> None:
    key = server.create_key("doubted")
    _remember(server, key, "kept")
    command = ("forget", *server.place, "--agent", "doubted")
    for answer in ("n\n", "\n", ""):
        printed = run(*command, input=answer)
        assert printed.returncode == 130, printed.stderr
    with server.client(key) as client:
        assert len(client.get("/api/v1/agents/doubted/memory").json()) == 1
    printed = run(*command, input="y\n")
    assert printed.returncode == 0, printed.stderr
    assert "Erase everything that doubted owns in the tenant default" in printed.stdout
    assert "working entries" in printed.stdout
    with server.client(key) as client:
        assert client.get(_MEMORY).status_code == 401


def test_only_the_named_tenant_is_touched(server: ServerProcess) -> None:
    succeed("tenants", "create", *server.place, "elsewhere")
    keys = {tenant: server.create_key("twin", tenant=tenant) for tenant in ("default", "elsewhere")}
    for key in keys.values():
        _remember(server, key, "twin")
    printed = succeed("forget", *server.place, "--tenant", "elsewhere", "--agent", "twin", "--yes")
    assert _gone(printed)["working entries"] == 1
    with server.client(keys["default"]) as client:
        assert len(client.get("/api/v1/agents/twin/memory").json()) == 1
    with server.client(keys["elsewhere"]) as client:
        assert client.get(_MEMORY).status_code == 401


def test_invalid_input_is_refused(server: ServerProcess, tmp_path: Path) -> None:
    assert "--agent" in misuse("forget", *server.place, "--yes")
    assert "--data" in refuse("forget", "--agent", "ada", "--yes")
    for name in ("a/b", ""):
        assert "--agent" in refuse("forget", *server.place, "--agent", name, "--yes")
        assert "USER" in refuse("forget", *server.place, "--subject", name, "--yes")
    assert "tenant not found" in refuse(
        "forget", *server.place, "--tenant", "nowhere", "--agent", "ada", "--yes"
    )
    missing = tmp_path / "missing"
    assert "no database" in refuse("forget", "--data", str(missing), "--agent", "a", "--yes")
    assert not missing.exists()


def test_a_server_forgets_an_agent_and_a_person(server: ServerProcess) -> None:
    grants = ("--permission", "memory.read", "--permission", "memory.write")
    admin = server.create_key("chief", *grants, "--permission", "tenant.admin")
    ada = server.create_key("lone")
    _remember(server, ada, "one")
    _remember(server, admin, "two", subjects=["ivan"], memory_type="semantic")
    place = ("forget", "--url", server.url, "--key", admin)
    gone = _gone(succeed(*place, "--agent", "lone", "--yes"))
    assert gone["working entries"] == gone["data keys destroyed"] == 1
    with server.client(ada) as client:
        assert client.get(_MEMORY).status_code == 401
    printed = run(*place, "--subject", "ivan", "--yes")
    assert printed.returncode == 0, printed.stderr
    assert "semantic entries" in printed.stdout
    assert "evt_" in printed.stdout
    assert "remaining bytes" not in printed.stderr
    asked = run(*place, "--subject", "ivan", input="n\n")
    assert asked.returncode == 130
    assert "Erase everything about ivan in the tenant of this API key permanently?" in asked.stdout
    weak = server.create_key("weak")
    assert "tenant.admin" in refuse(
        "forget", "--url", server.url, "--key", weak, "--subject", "ivan", "--yes"
    )
    for option in ("--tenant", "--ledger"):
        assert option in misuse(*place, option, "other", "--subject", "ivan", "--yes")
    assert "--key" in refuse("forget", "--url", server.url, "--subject", "ivan", "--yes")
    succeed("verify", *server.place)
