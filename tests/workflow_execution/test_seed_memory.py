"""Semantic namespaces are loaded before the first step, any number of times."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from memorywall.records.errors import MemoryAccessError
from memorywall.records.tier import Tier
from memorywall.sdk.client import Client
from memorywall.workflow import SemanticNamespace
from memorywall.workflow_execution.agent_clients import server_connections
from memorywall.workflow_execution.seed_memory import seed_memory
from tests.support.process import ServerProcess
from tests.workflow_execution.conftest import make_key
from tests.workflow_execution.stage import HEADER, Stage

FLOW = HEADER + "memory: {semantic_namespaces: [facts]}\nplan: [{task: one, agent: ann}]\n"


def _load(stage: Stage, entries: list[dict[str, Any]]) -> None:
    stage.write("facts.json", json.dumps(entries))
    seed_memory(stage.chief, stage.read(FLOW).memory.semantic_namespaces)


def _versions(client: Client) -> dict[str, int]:
    found = client.memory.export(namespace="facts", memory_type=Tier.SEMANTIC)
    return {entry.key: entry.version for entry in found}


def _value(client: Client, key: str) -> Any:
    entry = client.memory.get("facts", key, Tier.SEMANTIC)
    assert entry is not None
    return entry.value


def test_it_is_there_when_the_first_step_begins(any_stage: Stage) -> None:
    any_stage.functions("""
        def work(ctx):
            return {"found": ctx.memory.get("facts", "k", "semantic").value}
    """)
    any_stage.write("facts.json", json.dumps([{"key": "k", "value": {"n": 1}}]))
    outcome = any_stage.run(FLOW)
    assert any_stage.task(outcome, "one").output == {"found": {"n": 1}}


def test_loading_again_changes_nothing(any_stage: Stage) -> None:
    entries = [
        {"key": "a", "value": {"n": 1, "list": [1.5, None, "é"]}, "tags": ["x", "y"]},
        {"key": "b", "value": {}, "sensitivity": "restricted"},
    ]
    for _ in range(3):
        _load(any_stage, entries)
    assert _versions(any_stage.chief) == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"value": {"n": 2}},
        {"value": {"n": 1.0}},
        {"value": {"n": True}},
        {"value": {"n": 1, "more": None}},
        {"tags": ["x"]},
        {"tags": ["y", "x"]},
        {"tags": []},
        {"sensitivity": "public"},
    ],
    ids=str,
)
def test_changed_entries_of_the_file_are_updated(stage: Stage, change: dict[str, Any]) -> None:
    entry = {"key": "k", "value": {"n": 1}, "tags": ["x", "y"], "sensitivity": "internal"}
    other = {"key": "other", "value": {"n": 1}}
    _load(stage, [entry, other])
    _load(stage, [{**entry, **change}, other])
    assert _versions(stage.chief) == {"k": 2, "other": 1}
    found = stage.chief.memory.get("facts", "k", Tier.SEMANTIC)
    assert found is not None
    now = {"value": found.value, "tags": list(found.tags), "sensitivity": found.sensitivity}
    wanted = {name: {**entry, **change}[name] for name in now}
    assert json.dumps(now) == json.dumps(wanted)


def test_entries_absent_from_the_file_stay(stage: Stage) -> None:
    stage.chief.memory.set("facts", "by hand", {"n": 1}, Tier.SEMANTIC)
    _load(stage, [{"key": "a", "value": {}}, {"key": "b", "value": {}}])
    _load(stage, [{"key": "b", "value": {}}])
    assert _versions(stage.chief) == {"by hand": 1, "a": 1, "b": 1}


def test_more_than_a_batch_is_loaded(stage: Stage) -> None:
    entries = [{"key": f"k{number}", "value": {"n": number}} for number in range(2_345)]
    _load(stage, entries)
    entries[2_000]["value"] = {"n": -1}
    _load(stage, entries)
    versions = _versions(stage.chief)
    assert len(versions) == 2_345
    assert [key for key, version in versions.items() if version == 2] == ["k2000"]


def test_several_may_load_the_same_at_once(served_stage: Stage) -> None:
    served_stage.write(
        "facts.json",
        json.dumps([{"key": f"k{number}", "value": {"n": number}} for number in range(50)]),
    )
    namespaces = served_stage.read(FLOW).memory.semantic_namespaces
    failures: list[BaseException] = []
    ready = threading.Barrier(4)

    def load() -> None:
        try:
            ready.wait(30)
            seed_memory(served_stage.chief, namespaces)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert set(_versions(served_stage.chief).values()) == {1}


def test_concurrent_change_by_another_client_is_detected(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between looking and writing another writes the same key; then it is looked at again."""
    write = stage.chief.memory.batch
    other = stage.connections.agent("other").memory
    stage.chief.memory.set("facts", "there", {}, Tier.SEMANTIC)
    stage.chief.memory.set_permissions("facts", default="write")
    meddled: list[str] = []

    def batch(elements: list[dict[str, Any]]) -> Any:
        if not meddled:
            meddled.append("facts")
            other.set("facts", "k", {"n": "theirs"}, Tier.SEMANTIC)
        return write(elements)

    monkeypatch.setattr(stage.chief.memory, "batch", batch)
    _load(stage, [{"key": "k", "value": {"n": "ours"}}])
    assert meddled
    assert _value(stage.chief, "k") == {"n": "ours"}
    assert _versions(stage.chief)["k"] == 2


def test_namespace_of_another_subject_is_reported(
    tmp_path: Path, served_stage: Stage, server: ServerProcess, tenant: str
) -> None:
    _load(served_stage, [{"key": "k", "value": {"n": 1}}])
    options = ("--permission", "memory.read", "--permission", "memory.write")
    key = server.create_key("stranger", *options, tenant=tenant)
    with server_connections(server.url, key) as others:
        namespaces = served_stage.read(FLOW).memory.semantic_namespaces
        # Who may read it and finds everything in place has nothing to write.
        seed_memory(others.coordinator, namespaces)
        served_stage.write("facts.json", '[{"key": "k", "value": {"n": 2}}]')
        namespaces = served_stage.read(FLOW).memory.semantic_namespaces
        with pytest.raises(MemoryAccessError) as refused:
            seed_memory(others.coordinator, namespaces)
    assert refused.value.detail.startswith("namespace facts: not allowed to update this")
    assert _value(served_stage.chief, "k") == {"n": 1}


def test_a_namespace_that_is_only_declared_is_not_made(stage: Stage) -> None:
    seed_memory(stage.chief, [SemanticNamespace(name="declared")])
    assert stage.chief.memory.namespaces() == []


def test_keys_that_do_not_suffice_are_refused(
    tmp_path: Path, server: ServerProcess, tenant: str
) -> None:
    """Before anything is written, and saying which permission is missing."""
    flow = "name: n\nagents: {ann: {episodic_memory: {capacity: 5}}}\nplan: [{task: t, agent: ann}]"
    for permissions, missing in (
        (("memory.read", "memory.write", "tenant.admin"), "act_as"),
        (("memory.read", "memory.write", "act_as"), "tenant.admin"),
        (("memory.read", "act_as", "tenant.admin"), "memory.write"),
    ):
        key = make_key(server, tenant, *permissions)
        with server_connections(server.url, key) as connections:
            stage = Stage(tmp_path, connections)
            with pytest.raises(Exception, match=missing):
                stage.run(flow)
            assert stage.chief.intents.list().total == 0
