"""groups: list, create, show, add, remove and delete."""

from __future__ import annotations

from pathlib import Path

from tests.cli.groups import fields, group
from tests.cli.shell import Shell, columns, misuse, new_directory

groups = group("groups")


def test_groups_are_administered(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "chief")
    chief = groups(Shell("chief", ("--data", str(data), "--agent", "chief")))
    made = chief.succeed("create", "red", "--kind", "class")
    assert fields(made)["kind"] == "class"
    assert chief.succeed("add", "red", "ada") == ""
    assert [one["principal_id"] for one in chief.json("show", "red")["members"]] == ["ada"]
    assert "ada" in chief.succeed("show", "red")
    table = chief.succeed("list")
    assert columns(table) == ["group", "kind", "created", "by", "created"]
    assert table.splitlines()[2].split()[:3] == ["red", "class", "chief"]
    assert chief.succeed("remove", "red", "ada") == ""
    assert chief.json("show", "red")["members"] == []
    assert chief.succeed("delete", "red") == ""
    assert chief.json("list") == []
    assert "no such group" in chief.refuse("show", "red")
    misuse("groups", "create", "red", "--kind", "club")
