"""The package's public names: few, sorted, documented, and loaded only when asked for."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import memorywall
from memorywall.sdk import client as colours
from memorywall.wire.operations import OPERATIONS

PAIRS = [
    (colours.Client, colours.AsyncClient),
    (colours.Memory, colours.AsyncMemory),
    (colours.Events, colours.AsyncEvents),
]


def methods(kind: type) -> dict[str, object]:
    return {
        name: found
        for name, found in vars(kind).items()
        if callable(found) and not name.startswith("_")
    }


def run(program: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return ended.stdout.strip()


def test_names_are_sorted_and_importable() -> None:
    assert memorywall.__all__ == sorted(memorywall.__all__)
    assert set(memorywall.__all__) == set(memorywall._HOMES)
    assert set(memorywall.__all__) < set(dir(memorywall))
    for name in memorywall.__all__:
        assert inspect.getdoc(getattr(memorywall, name)), name
    assert memorywall.__version__ == "0.1.0"
    with pytest.raises(AttributeError, match="nothing"):
        memorywall.nothing  # noqa: B018


def test_names_can_be_imported_from_a_fresh_interpreter() -> None:
    for name in memorywall.__all__:
        assert run(f"from memorywall import {name}; print({name} is not None)") == "True"
    assert run("from memorywall import *; print(Client.__name__)") == "Client"


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        ("import memorywall", ("httpx", "starlette", "apsw", "msgspec")),
        ("import memorywall.server.app, memorywall.server.serve", ("httpx",)),
        ("import memorywall.cli.serve_command", ("httpx",)),
        ("import memorywall.exceptions", ("httpx", "starlette", "apsw")),
        ("from memorywall import Client, AsyncClient", ("starlette", "apsw", "uvicorn")),
    ],
)
def test_a_name_loads_no_more_than_it_needs(program: str, absent: tuple[str, ...]) -> None:
    loaded = run(f"import sys\n{program}\nprint(*sorted(set(sys.modules) & {set(absent)!r}))")
    assert loaded == ""


def test_both_colours_have_the_same_methods() -> None:
    for blocking, awaited in PAIRS:
        names = {name.removeprefix("a") if name == "aclose" else name for name in methods(awaited)}
        assert names == set(methods(blocking))
        for name, method in methods(blocking).items():
            twin = methods(awaited).get(name) or methods(awaited)["aclose"]
            assert inspect.getdoc(method), name
            assert inspect.getdoc(twin), name
            if name != "close":
                assert inspect.getdoc(method) == inspect.getdoc(twin)
                parameters = inspect.signature(method).parameters  # type: ignore[arg-type]
                assert parameters == inspect.signature(twin).parameters  # type: ignore[arg-type]


def test_help_shows_what_a_method_returns() -> None:
    returns = {
        name: inspect.signature(method).return_annotation  # type: ignore[arg-type]
        for kind in (colours.Memory, colours.Events)
        for name, method in methods(kind).items()
    }
    assert returns["set"] == "MemoryEntry"
    assert returns["get"] == "MemoryEntry | None"
    assert returns["namespaces"] == "list[NamespaceBrief]"
    assert returns["export"] == "Generator[MemoryEntry, None, None]"
    assert not [name for name, text in returns.items() if "Script" in text]


def test_every_operation_has_a_method() -> None:
    called = {
        "create_entry": "set",
        "update_entry": "set",
        "query_entries": "query",
        "write_batch": "batch",
        "delete_matching": "delete_matching",
        "export_entries": "export",
        "list_namespaces": "namespaces",
        "get_namespace": "namespace",
        "set_namespace_permissions": "set_permissions",
        "get_entry": "get_by_id",
        "delete_entry": "delete_by_id",
        "summarize_agent": "summary",
        # The published OpenIntent client's list; `query` gives the same, with a total.
        "list_agent_memory": "query",
        "list_events": "list",
        "get_capabilities": "capabilities",
        "discover": "discover",
        "health": "health",
        "ready": "ready",
        "whoami": "whoami",
    }
    assert set(called) == {operation.name for operation in OPERATIONS}
    offered = {name for kind, _ in PAIRS for name in methods(kind)}
    assert set(called.values()) <= offered
