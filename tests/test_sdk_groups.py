"""`client.groups`, sync and async."""

from __future__ import annotations

from pathlib import Path

import pytest

import memorywall
from memorywall.records.errors import MemoryNotFoundError
from tests.support.backend import store_of

NAMES = ["ada", "bob"]


def _place(directory: Path) -> str:
    return store_of(directory) or str(directory / "memory.db")


def test_groups_are_administered(tmp_path: Path) -> None:
    with memorywall.open(_place(tmp_path), agent="chief") as client:
        assert client.groups.create("red", kind="class").kind == "class"
        for name in NAMES:
            assert client.groups.add("red", name).principal_id == name
        assert [one.principal_id for one in client.groups.get("red").members] == NAMES
        client.memory.set_permissions("facts", allow=[{"agent": "group:red", "access": "read"}])
        client.groups.remove("red", "ada")
        assert [one.name for one in client.groups.list()] == ["red"]
        client.groups.delete("red")
        with pytest.raises(MemoryNotFoundError):
            client.groups.get("red")
