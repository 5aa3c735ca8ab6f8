"""migrate: names of older versions in a data directory."""

from __future__ import annotations

from pathlib import Path

import pytest

import memorywall
from tests.cli.shell import refuse, run, succeed
from tests.support.older_names import stored_as_given

NFC, NFD = "caf\u00e9", "cafe\u0301"


def test_names_are_renamed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    place = ("--data", str(data))
    succeed("init", *place)
    with stored_as_given(monkeypatch), memorywall.open(data, agent="ada") as older:
        older.memory.put(NFD, NFD, {"text": "one"}, "episodic", tags=[NFD])
        for name in (NFC, NFD):
            older.memory.put("both", name, {"text": "two"}, "episodic")
    printed = run("migrate", *place)
    assert printed.returncode == 1
    assert printed.stdout.splitlines() == ["renamed 1 entries and 0 namespaces"]
    (taken,) = printed.stderr.splitlines()
    assert "another entry has its name" in taken
    with memorywall.open(data, agent="ada") as client:
        entry = client.memory.get(NFD, NFD)
        assert (entry.namespace, entry.key, entry.tags) == (NFC, NFC, (NFC,))
        both = {client.memory.get("both", name).id for name in (NFC, NFD)}
        assert len(both) == 2
        assert taken.partition(":")[0] in both
        client.memory.delete("both", NFC)
    assert succeed("migrate", *place).splitlines() == ["renamed 1 entries and 0 namespaces"]
    assert succeed("migrate", *place).splitlines() == ["renamed 0 entries and 0 namespaces"]
    succeed("verify", *place)


def test_a_store_must_be_named() -> None:
    assert "--data" in refuse("migrate")
