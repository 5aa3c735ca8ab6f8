"""keys, tenants and capacity: beside a running server, and on a directory alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memorywall.records.principal import Permission
from tests.cli.groups import group
from tests.cli.shell import Shell, columns, misuse, refuse, run, succeed
from tests.support.process import ServerProcess
from tests.support.stored import places_holding

KEY = re.compile(r"mw_[a-z2-7]{8}\.[A-Za-z0-9_-]{43}")


def _listed(data: Path, *options: str) -> list[dict[str, Any]]:
    keys: list[dict[str, Any]] = json.loads(
        succeed("keys", "list", "--data", str(data), "--json", *options)
    )
    return keys


def test_a_key_is_made_beside_the_server_and_works_at_once(server: ServerProcess) -> None:
    made = run("keys", "create", "--data", str(server.data), "--agent", "fresh")
    assert made.returncode == 0
    key = made.stdout.strip()
    assert KEY.fullmatch(key)
    assert "shown only once" in made.stderr
    with server.client(key) as client:
        assert client.get("/api/v1/agents/me").json() == {
            "agent_id": "fresh",
            "tenant": "default",
            "kind": "agent",
            "permissions": ["memory.read", "memory.write"],
        }


def test_the_secret_is_never_shown_or_kept(server: ServerProcess) -> None:
    key = server.create_key("discreet")
    prefix, _, secret = key.partition(".")
    data = str(server.data)
    shown = succeed("keys", "list", "--data", data) + succeed(
        "keys", "list", "--data", data, "--json"
    )
    assert prefix in shown
    assert secret not in shown
    assert places_holding(server.data, secret.encode()) == []
    assert places_holding(server.data, prefix.encode()) != []


def test_what_json_tells_of_a_new_key(tmp_path: Path) -> None:
    made = json.loads(
        succeed(
            "keys", "create", "--data", str(tmp_path / "d"), "--agent", "anna", "--kind", "user",
            "--permission", "memory.read", "--permission", "memory.admin", "--json",
        )
    )  # fmt: skip
    assert KEY.fullmatch(made.pop("key"))
    created = made.pop("created_at")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", created)
    assert made == {
        "prefix": made["prefix"],
        "tenant": "default",
        "agent": "anna",
        "kind": "user",
        "permissions": ["memory.admin", "memory.read"],
        "namespaces": [],
        "expires_at": None,
        "last_used_at": None,
        "revoked_at": None,
        "successor": None,
    }


def test_keys_are_listed_for_people_whole(tmp_path: Path) -> None:
    data = str(tmp_path / "d")
    every = [word for one in Permission for word in ("--permission", one.value)]
    succeed("keys", "create", "--data", data, "--agent", "all-powerful", *every)
    table = succeed("keys", "list", "--data", data)
    assert columns(table) == [
        "prefix", "tenant", "agent", "kind", "permissions", "namespaces", "created_at",
        "expires_at", "last_used_at", "revoked_at", "successor",
    ]  # fmt: skip
    row = table.splitlines()[2]
    assert "all-powerful" in row
    # What a key may do must not be cut off: an operator reads this table to find out.
    for permission in Permission:
        assert permission.value in row


def test_a_revoked_key_is_refused_at_its_next_request(
    server: ServerProcess, new_agent: Callable[..., Shell]
) -> None:
    agent = new_agent()
    key = agent.where[3]
    agent.succeed("set", "n", "k", "{}")
    data = str(server.data)
    # A whole key is taken for its prefix, and its secret is not repeated.
    prefix = key.partition(".")[0]
    assert succeed("keys", "revoke", "--data", data, key) == f"{prefix} is revoked\n"
    assert agent.refuse("get", "n", "k") == "the API key is unknown or revoked"
    revoked = [one for one in _listed(server.data) if one["prefix"] == prefix]
    assert len(revoked) == 1
    assert revoked[0]["revoked_at"] is not None
    # The agent's other keys and its memory stay.
    second = server.create_key(agent.agent)
    where = ("--url", server.url, "--key", second)
    assert Shell(agent.agent, where).json("get", "n", "k")["value"] == {}


def test_a_rotated_key_works_beside_its_successor_until_it_ends(
    server: ServerProcess, new_agent: Callable[..., Shell]
) -> None:
    agent = new_agent()
    data = str(server.data)
    old = agent.where[3]
    made = run("keys", "rotate", "--data", data, old)
    assert "shown only once" in made.stderr
    new = made.stdout.strip()
    assert KEY.fullmatch(new)
    for key in (old, new):
        with server.client(key) as client:
            assert client.get("/api/v1/agents/me").json()["agent_id"] == agent.agent
    [kept] = [one for one in _listed(server.data) if one["prefix"] == old.partition(".")[0]]
    assert kept["successor"] == new.partition(".")[0]
    assert kept["expires_at"] > kept["created_at"]
    assert "rotate its `successor`" in refuse("keys", "rotate", "--data", data, old)
    newest = succeed("keys", "rotate", "--data", data, new, "--overlap", "0").strip()
    with server.client(new) as client:
        assert client.get("/api/v1/agents/me").status_code == 401
    with server.client(newest) as client:
        assert client.get("/api/v1/agents/me").status_code == 200
    assert "no key with this prefix" in refuse("keys", "rotate", "--data", data, "mw_nothing")
    assert "`overlap` must be" in refuse("keys", "rotate", "--data", data, newest, "--overlap", "x")


def test_a_token_of_a_session_replaces_the_key(agent: Shell, server: ServerProcess) -> None:
    sessions = group("sessions")(agent)
    session = sessions.json("create")["id"]
    token = sessions.succeed("token", session, "--ttl", "PT5M").strip()
    with server.client(token) as client:
        shown = client.get("/api/v1/sessions").json()["sessions"]
    assert [one["id"] for one in shown] == [session]
    assert sessions.json("token", session)["token"]


def test_an_unknown_prefix_cannot_be_revoked(server: ServerProcess) -> None:
    said = refuse("keys", "revoke", "--data", str(server.data), "mw_nothing.secret-part")
    assert "no key with this prefix" in said
    assert "secret-part" not in said


def test_a_principal_keeps_its_kind(server: ServerProcess) -> None:
    server.create_key("steady")
    said = refuse(
        "keys", "create", "--data", str(server.data), "--agent", "steady", "--kind", "user"
    )
    assert said == "this principal is known as agent, not user"


def test_quota_of_a_tenant_is_set_and_shown(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "d"))
    succeed("tenants", "create", "acme", *data)
    assert "none" in succeed("tenants", "quota", "acme", *data)
    shown = succeed("tenants", "quota", "acme", "--entries", "7", *data, "--json")
    assert json.loads(shown) == {"entries": 7, "bytes": None, "used_entries": 0, "used_bytes": 0}
    succeed("tenants", "quota", "acme", "--bytes", "900", *data)
    table = succeed("tenants", "quota", "acme", *data).splitlines()
    assert [line.split() for line in table[2:4]] == [
        ["entries", "0", "none"],
        ["bytes", "0", "900"],
    ]
    assert "not both" in refuse("tenants", "quota", "acme", "--none", "--bytes", "1", *data)
    succeed("tenants", "quota", "acme", "--none", *data)
    shown = succeed("tenants", "quota", "acme", *data, "--json")
    assert json.loads(shown)["bytes"] is None
    assert "tenant not found" in refuse("tenants", "quota", "nobody", *data)


def test_names_that_cannot_be_names_are_refused(server: ServerProcess) -> None:
    data = str(server.data)
    for agent in ("", "a/b", " a", "a\u202eb", "a" * 129):
        assert "`agent` must" in refuse("keys", "create", "--data", data, "--agent", agent)
    assert "`tenant` must" in refuse("tenants", "create", "a/b", "--data", data)


def test_tenants_share_nothing(server: ServerProcess) -> None:
    data = str(server.data)
    assert succeed("tenants", "create", "acme", "--data", data) == "created tenant acme\n"
    assert refuse("tenants", "create", "acme", "--data", data) == (
        "there is a tenant of this name already"
    )
    assert json.loads(succeed("tenants", "list", "--data", data, "--json")) == ["acme", "default"]
    assert succeed("tenants", "list", "--data", data).split() == [
        "tenant", "-" * len("tenant") + "--", "acme", "default",
    ]  # fmt: skip

    shells = [
        Shell("twin", ("--url", server.url, "--key", server.create_key("twin", tenant=tenant)))
        for tenant in ("default", "acme")
    ]
    entry = shells[0].json("set", "n", "k", "{}")
    assert shells[1].json("query")["total"] == 0
    assert shells[1].refuse("get", entry["id"]) == "Memory entry not found"
    assert {one["tenant"] for one in _listed(server.data, "--tenant", "acme")} == {"acme"}


def test_a_tenant_must_be_made_first(server: ServerProcess) -> None:
    said = refuse(
        "keys", "create", "--data", str(server.data), "--agent", "a", "--tenant", "nosuch"
    )
    assert said == "tenant not found; create it with `memorywall tenants create`"


def test_capacity_is_shown_set_enforced_and_reset(server: ServerProcess, agent: Shell) -> None:
    options = ("--data", str(server.data), "--agent", agent.agent)
    assert succeed("capacity", *options) == "1000\n"
    assert succeed("capacity", *options, "2") == "2\n"
    for number in range(3):
        agent.succeed("set", "n", f"k{number}", "{}", "--type", "episodic", "--pinned")
        if number == 1:
            break
    said = agent.refuse("set", "n", "k2", "{}", "--type", "episodic")
    assert "pinned" in said
    agent.succeed("set", "n", "k0", "{}", "--not-pinned")
    agent.succeed("set", "n", "k2", "{}", "--type", "episodic")
    assert [entry["key"] for entry in agent.json("query")["entries"]] == ["k2", "k1"]
    assert agent.json_lines("events", "--json")[-2]["type"] == "memory.evicted"
    assert agent.json("summary")["episodic"]["capacity"] == 2
    assert succeed("capacity", *options, "--default") == "1000\n"
    assert "not both" in refuse("capacity", *options, "--default", "7")


def test_tiers_are_shown_and_narrowed(anywhere: Shell, new_agent: Callable[..., Shell]) -> None:
    chief = anywhere
    if "--url" in anywhere.where:
        flags = [word for one in Permission for word in ("--permission", one.value)]
        chief = new_agent(*flags)
    before = {one["memory_type"]: one for one in chief.json("tiers")}
    assert before["episodic"]["capacity"] == 1000
    options = ("--capacity", "2", "--default-ttl", "duration:P30D", "--eviction", "oldest")
    narrowed = chief.json("tiers", "set", "session", *options)
    expected = {"capacity": 2, "default_ttl": "duration:P30D", "eviction": "oldest"}
    assert narrowed == {**before["session"], **expected}
    assert {one["memory_type"]: one for one in chief.json("tiers")} == {
        **before,
        "session": narrowed,
    }
    # The options of the client may stand before and after the command.
    shown = succeed("tiers", "set", "session", "--capacity", "3", *chief.where)
    assert columns(shown)[:2] == ["tier", "capacity"]
    assert shown.splitlines()[-1].split()[:6] == ["session", "3", "agent", "none", "owner", "owner"]
    assert "capacity" in chief.refuse("tiers", "set", "episodic", "--capacity", "1001")
    assert chief.json("tiers", "set", "session") == before["session"]
    assert "none" in misuse("tiers", "set", "none", *chief.where)


def test_entries_of_a_tier_are_evicted(anywhere: Shell, new_agent: Callable[..., Shell]) -> None:
    chief = anywhere
    if "--url" in anywhere.where:
        flags = [word for one in Permission for word in ("--permission", one.value)]
        chief = new_agent(*flags)
    for number in range(3):
        task = ("--task", "t1") if number else ()
        chief.succeed("set", "notes", f"k{number}", "{}", "--type", "working", *task)
    asked = ("tiers", "evict", "working", "--target", "1", "--of", chief.agent)
    assert "--policy must" in refuse(*asked, *chief.where)
    assert "--policy" in misuse(*asked, "--policy", "none", *chief.where)
    asked = (*asked, "--policy", "oldest", *chief.where)
    tried = json.loads(succeed(*asked, "--task", "t1", "--dry-run", "--json"))
    assert (tried["evicted"], tried["remaining"], tried["dry_run"]) == (1, 1, True)
    told = run(*asked, "--task", "t1")
    assert told.stdout.split() == tried["entry_ids"]
    assert told.stderr == "1 evicted, 1 remain\n"
    keys = {one["key"] for one in chief.json("query", "--namespace", "notes")["entries"]}
    assert keys == {"k0", "k2"}
    assert "--target" in misuse("tiers", "evict", "working", *chief.where)


def test_only_an_administrator_of_the_tenant_narrows_tiers(
    new_agent: Callable[..., Shell],
) -> None:
    curator = new_agent("--permission", "memory.read", "--permission", "memory.admin")
    assert "tenant" in curator.refuse("tiers", "set", "session", "--capacity", "1")
    assert {
        one["capacity"] for one in curator.json("tiers") if one["memory_type"] == "session"
    } == {None}


@pytest.mark.sqlite("whether its file is made")
def test_looking_does_not_make_a_database(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    for command in (
        ["keys", "list"],
        ["keys", "revoke", "mw_x"],
        ["tenants", "list"],
        ["capacity", "--agent", "a"],
        ["verify"],
        ["query", "--agent", "a"],
    ):
        said = refuse(*command, "--data", str(nowhere))
        assert "there is no database" in said, command
        assert not nowhere.exists(), command


def test_keys_and_quotas_of_a_server_need_no_directory(server: ServerProcess) -> None:
    rights = ("tenant.admin", "act_as", "memory.read", "memory.write")
    options = [option for right in rights for option in ("--permission", right)]
    chief = server.create_key("chief-of-keys", *options)
    place = ("--url", server.url, "--key", chief)
    made = json.loads(
        succeed("keys", "create", *place, "--agent", "far-away", "--user", "ana", "--json")
    )
    assert KEY.match(made["key"])
    near = next(one for one in _listed(server.data) if one["prefix"] == made["prefix"])
    far = json.loads(succeed("keys", "list", *place, "--json"))
    assert near in far
    assert made["prefix"] in succeed("keys", "list", *place)
    assert succeed("keys", "revoke", *place, made["key"]) == f"{made['prefix']} is revoked\n"
    assert "no key with this prefix" in refuse("keys", "revoke", *place, "mw_nothing")
    assert "tenant" in misuse("keys", "list", *place, "--tenant", "other")
    assert succeed("tenants", "list", *place).split()[-1] == "default"
    shown = json.loads(succeed("tenants", "quota", "default", *place, "--json"))
    assert shown["entries"] is None
    assert "tenant" in misuse("tenants", "quota", "other", *place)
