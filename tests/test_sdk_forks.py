"""Clients in forked processes and on several event loops: nobody gets what is another's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.process import ServerProcess
from tests.support.programs import run_python
from tests.test_sdk_support import server

__all__ = ["server"]
LIMIT = 120


def run(*arguments: str, action: str = "error") -> dict[str, Any]:
    """Returns what a program of `tests.support.forking` finds.

    action: what the program does with warnings
    """
    printed = run_python("-W", action, "-m", "tests.support.forking", *arguments, limit=LIMIT)
    assert action != "error" or not printed.stderr
    found: dict[str, Any] = json.loads(printed.stdout)
    return found


def test_processes_that_share_a_client_read_their_own_replies(server: ServerProcess) -> None:
    assert run("people", server.url, server.dev_key) == {
        "parent": ["ann"],
        "child": ["bob"],
        "other": ["bob"],
        "turn": {"n": 1},
    }


def test_a_child_closes_no_connection_of_its_parent(server: ServerProcess) -> None:
    found = run("closing", server.url, server.dev_key)
    assert (found["closed"], found["same"]) == ("RuntimeError: the client is closed", True)
    assert len(set(found["made"])) == 2


def test_streams_continue_on_both_sides_of_a_fork(server: ServerProcess) -> None:
    found = run("streams", server.url, server.dev_key)
    assert found["parent"] == found["child"]
    assert found["parent"][0] == 299
    assert found["parent"][1] == sorted(set(found["parent"][1]))


def test_one_async_client_on_several_event_loops(server: ServerProcess) -> None:
    assert run("loops", server.url, server.dev_key) == {
        "first": ["ann"],
        "second": ["bob"],
        "left open": 0,
        "parent": ["ann"],
        "child": ["bob"],
        "within": ["ann"],
        "child within": ["bob"],
        "thread of ann": ["ann"],
        "thread of bob": ["bob"],
    }


def test_a_child_does_not_use_the_store_of_its_parent(tmp_path: Path) -> None:
    found = run("in_process", str(tmp_path / "own.db"), action="ignore")
    for name in ("read", "export", "opened"):
        assert found[name].startswith("StoreLockedError: "), found
    assert (found["written"], found["again"]) == (2, {"name": "bob"})


def test_a_child_does_not_use_the_store_of_an_async_client(tmp_path: Path) -> None:
    found = run("in_process_async", str(tmp_path / "own.db"), action="ignore")
    assert found["child"].startswith("StoreLockedError: ")
    assert found["parent"] == {"name": "ann"}


def test_a_child_leaves_the_files_of_a_store_in_memory(tmp_path: Path) -> None:
    assert run("in_memory", str(tmp_path), action="ignore") == {"kept": 1, "left": []}
