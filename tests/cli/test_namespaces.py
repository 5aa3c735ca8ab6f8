"""namespaces: list, show, update, grant and revoke."""

from __future__ import annotations

from pathlib import Path

from tests.cli.groups import fields, group
from tests.cli.shell import Shell, columns, misuse, new_directory

namespaces = group("namespaces")


def test_namespaces_are_administered(tmp_path: Path) -> None:
    new_directory(tmp_path / "data", "billing")
    data = ("--data", str(tmp_path / "data"), "--agent")
    curator = namespaces(Shell("curator", (*data, "curator")))
    granted = curator.succeed("grant", "policies", "billing", "write")
    assert fields(granted)["default"] == "read"
    assert columns(granted.split("\n\n")[1]) == ["agent", "access", "episodic"]
    curator.succeed("grant", "policies", "linus", "read")
    curator.succeed("grant", "policies", "billing", "admin")
    changed = curator.json(
        "update", "policies", "--default", "none", "--last-write-wins",
        "--indexed-path", "value.tier", "--indexed-path", "value.n",
    )  # fmt: skip
    assert changed["permissions"]["default"] == "none"
    levels = {one["agent"]: one["access"] for one in changed["permissions"]["allow"]}
    assert levels == {"curator": "admin", "billing": "admin", "linus": "read"}
    assert (changed["last_write_wins"], changed["indexed_paths"]) == (
        True,
        ["value.tier", "value.n"],
    )
    other = namespaces(Shell("linus", (*data, "linus")))
    assert other.json("list") == [{"namespace": "policies", "access": "read"}]
    kept = curator.json("update", "policies", "--no-last-write-wins", "--no-indexed-paths")
    assert "last_write_wins" not in kept
    assert "indexed_paths" not in kept
    assert kept["permissions"] == changed["permissions"]
    curator.succeed("revoke", "policies", "linus")
    assert "version" in curator.refuse("update", "policies", "--default", "read", "--version", "1")
    assert columns(curator.succeed("list")) == ["namespace", "access"]
    assert fields(curator.succeed("show", "policies"))["access"] == "admin"
    assert "nothing to change" in curator.refuse("update", "policies")
    misuse("namespaces", "grant", "policies", "ada", "rule")
    misuse("namespaces", "update", "policies", "--no-indexed-paths", "--indexed-path", "value.n")
    assert curator.refuse("revoke", "nowhere", "ada")


def test_merge_changes_the_fields_of_a_patch(tmp_path: Path) -> None:
    new_directory(tmp_path / "data", "billing")
    shell = Shell("billing", ("--data", str(tmp_path / "data"), "--agent", "billing"))
    shell.json("put", "customers", "ana", '{"tier": "gold", "fax": 1, "at": {"zip": 1, "city": 2}}')
    merged = shell.json("merge", "customers", "ana", '{"fax": null, "at": {"city": 3}}')
    assert merged["value"] == {"tier": "gold", "at": {"zip": 1, "city": 3}}
    assert merged["version"] == 2
    shell.refuse("merge", "customers", "bob", "{}")
    assert "JSON object" in shell.refuse("merge", "customers", "ana", "[1]")
