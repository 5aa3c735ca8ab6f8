"""attachments: files of entries and intents; kinds: the schemas of the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import Shell, columns, succeed


@pytest.mark.parametrize("parent", ["entry", "intent"])
def test_files_are_added_listed_saved_and_deleted(
    anywhere: Shell, tmp_path: Path, parent: str
) -> None:
    make = ("put", "invoices", "march", "{}") if parent == "entry" else ("intents", "create", "Pay")
    made = succeed(*make, *anywhere.where, "--json")
    (parent_id,) = [one for one in made.split('"') if one.startswith(("mem_", "int_"))][:1]
    file = tmp_path / "march.pdf"
    file.write_bytes(b"%PDF \x00\xff")
    added = succeed("attachments", "add", *anywhere.where, parent_id, str(file)).strip()
    assert added.startswith("att_")
    table = succeed("attachments", "list", *anywhere.where, parent_id)
    assert columns(table)[:3] == ["id", "file", "type"]
    assert table.splitlines()[2].split()[:4] == [added, "march.pdf", "application/pdf", "7"]
    copy = tmp_path / "copy"
    succeed("attachments", "save", *anywhere.where, parent_id, added, "--output", str(copy))
    assert copy.read_bytes() == file.read_bytes()
    succeed("attachments", "delete", *anywhere.where, parent_id, added)
    assert succeed("attachments", "list", *anywhere.where, parent_id, "--json") == "[]\n"


def test_kinds_and_their_schemas_are_shown(anywhere: Shell) -> None:
    kinds = {one["kind"]: one for one in anywhere.json("kinds")}
    assert {"turn", "correction"} <= kinds.keys()
    table = anywhere.succeed("kinds")
    (turn,) = (line for line in table.splitlines() if line.startswith("turn "))
    assert turn.split()[1:4] == ["1", "session", "add_turns,"]
    schema = anywhere.json("kinds", "turn")
    assert (schema["title"], schema["type"]) == ("turn", "object")
    assert anywhere.refuse("kinds", "none") == "there is no kind of this name"
