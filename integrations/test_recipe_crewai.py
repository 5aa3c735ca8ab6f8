"""The recipe for CrewAI: the page, and CrewAI's own storage on the same calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from crewai.memory import Memory, MemoryRecord
from crewai.memory.storage.lancedb_storage import LanceDBStorage

import memorywall
from integrations.other_process import run_elsewhere
from integrations.scripted_model import Reply, ScriptedModel, says
from integrations.tea import answers
from memorywall.exceptions import MemoryTransportError
from tests.support.process import ServerProcess

Recipe = Callable[[str], dict[str, Any]]
START = datetime.fromisoformat("2026-01-01")  # CrewAI counts without a time zone


def reply(body: dict[str, Any]) -> Reply:
    """What a model says to CrewAI: it extracts the memory, describes it, merges it, and answers."""
    text = json.dumps(body["messages"])
    match body.get("response_format", {}).get("json_schema", {}).get("name"):
        case "ExtractedMemories":
            told = "I only drink green tea" in text
            return says(json.dumps({"memories": ["Ann only drinks green tea."] if told else []}))
        case "MemoryAnalysis":
            metadata: dict[str, list[str]] = {"entities": ["Ann"], "dates": [], "topics": []}
            analysis = {"suggested_scope": "/drinks/tea", "categories": ["tea"], "importance": 0.7}
            return says(json.dumps({**analysis, "extracted_metadata": metadata}))
        case "ConsolidationPlan":
            return says(json.dumps({"actions": [], "insert_new": False}))
        case None if "I only drink green tea" in text:
            return says("Noted.")
    return answers(body)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CrewAI sends nothing and keeps its own files here."""
    monkeypatch.setenv("CREWAI_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("CREWAI_TRACING_ENABLED", "false")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))


@pytest.fixture
def names(recipe: Recipe, model: ScriptedModel) -> dict[str, Any]:
    """The names of the page, which has been run."""
    model.will(*[reply] * 50)
    return recipe("crewai")


def test_another_process_remembers(
    names: dict[str, Any], model: ScriptedModel, tmp_path: Path
) -> None:
    with ServerProcess(tmp_path / "data") as server:
        opening = f"memorywall.Client({server.url!r}, {server.dev_key!r})"
        with memorywall.Client(server.url, server.dev_key) as client:
            ann = client.for_user("ann")
            assert names["ask"](ann, "I only drink green tea.") == "Noted."
            (entry,) = ann.memory.query(namespace="crewai")
            assert (entry.subjects, entry["text"]) == (("ann",), "Ann only drinks green tea.")
            assert entry["record"]["scope"] == "/drinks/tea"
            code = f"""
with {opening} as client:
    for user in ("ann", "bob"):
        print(ask(client.for_user(user), "Which tea?"))
    ask(client.for_user("ann"), "I only drink green tea.")
"""
            printed = run_elsewhere("crewai", code, tmp_path)
            assert printed.splitlines() == ["Green tea.", "I do not know yet."]
            assert ann.memory.query(namespace="crewai")[0].id == entry.id
            assert ann.memory.count(namespace="crewai") == 1, "the same was remembered twice"
            client.forget("ann")
            assert names["ask"](ann, "Which tea?") == "I do not know yet."


def plain(seen: list[Any]) -> Any:
    return json.loads(json.dumps(seen, default=lambda one: one.model_dump(mode="json")))


def test_it_does_what_the_storage_of_crewai_does(names: dict[str, Any], tmp_path: Path) -> None:
    records = [
        MemoryRecord(
            id=f"r{number}",
            content=f"Statement {number} about {scope}",
            scope=scope,
            categories=["odd"] if number % 2 else ["even", "a, b"],
            metadata={"number": number, "kind": number % 3},
            importance=0.25,
            source="crm",
            private=number == 4,
            created_at=START + timedelta(days=number),
            embedding=[1.0, float(number)],
        )
        for number, scope in enumerate(["/", "/a", "/a/b", "/a/b/c", "/d", "/d/e"])
    ]
    changed = records[2].model_copy(update={"content": "Changed", "categories": ["new"]})

    def use(storage: Any) -> list[Any]:
        seen: list[Any] = [storage.count(), storage.list_records(), storage.get_record("r1")]
        storage.save(records[:4])
        storage.save(records[4:])
        storage.update(changed)
        for scope in ("/", "/a", "/a/", "/d", "/none"):
            seen += [storage.count(scope), storage.get_scope_info(scope)]
            seen += [storage.list_records(scope), dict(storage.list_categories(scope))]
        seen += [storage.list_records(limit=2, offset=1), storage.get_record("r2")]
        seen += [storage.list_scopes(scope) for scope in ("/none", "/d/e/none")]
        for condition in (
            {"record_ids": ["r0", "none"]},
            {"scope_prefix": "/a", "categories": ["odd"]},
            {"metadata_filter": {"kind": 1}},
            {"older_than": START + timedelta(days=3)},
        ):
            seen += [storage.delete(**condition), storage.list_records()]
        storage.reset("/d")
        seen.append(storage.list_records())
        storage.reset()
        return [*seen, storage.count()]

    with memorywall.open(tmp_path / "memory.db", agent="ada") as client:
        storage = names["MemorywallStorage"](client.for_user("ann"))
        ours, theirs = use(storage), use(LanceDBStorage(tmp_path / "lance"))
        assert plain(ours) == plain(theirs)


def test_memory_finds_by_text_within_its_scope(names: dict[str, Any], tmp_path: Path) -> None:
    with memorywall.open(tmp_path / "memory.db", agent="ada") as client:
        memories = {}
        for user in ("ann", "bob"):
            storage = names["MemorywallStorage"](client.for_user(user))
            memories[user] = Memory(
                storage=storage, embedder=storage.embed, llm="none", exploration_budget=0
            )
        ann, bob = memories["ann"], memories["bob"]
        given: dict[str, Any] = {"categories": ["food"], "importance": 0.5}
        made = ann.remember("Ann eats no nuts.", scope="/food", metadata={"n": 1}, **given)
        ann.remember_many(["The tree nursery sells nuts.", "Été à Köln 🌰"], "/work", **given)
        bob.remember("Bob eats nuts.", scope="/", **given)
        assert {one.content for one in ann.list_records()} == {
            "Ann eats no nuts.", "The tree nursery sells nuts.", "Été à Köln 🌰",
        }  # fmt: skip
        for depth in ("shallow", "deep"):
            assert ann.recall("Does Ann eat nuts?", depth=depth)[0].record.id == made.id
            assert ann.recall("Köln?", depth=depth)[0].record.content == "Été à Köln 🌰"
            found = ann.recall("nuts", scope="/work", categories=["food"], depth=depth)
            assert found[0].record.content == "The tree nursery sells nuts."
            assert all(one.record.scope == "/work" for one in found)
            assert ann.recall("nuts", categories=["none"], depth=depth) == []
            assert ann.recall("weather in Rome", depth=depth) == []
            assert [one.record.content for one in bob.recall("nuts", depth=depth)] == [
                "Bob eats nuts."
            ]
        ann.remember("Ann sings in a choir.", scope="/", **given)
        assert ann.recall("Who sings in a choir?")[0].record.content == "Ann sings in a choir."
        ann.update(made.id, content="Ann eats nuts again.", metadata={"n": 2})
        (found, *_) = ann.recall("Does Ann eat nuts?")
        assert (found.record.id, found.record.content) == (made.id, "Ann eats nuts again.")
        assert found.record.metadata == {"n": 2}
        assert ann.forget(scope="/food") == 1
        assert ann.list_scopes() == ["/", "/work"]
        client.forget("ann")
        assert ann.list_records() == []
        assert ann.recall("nuts") == []
        assert len(bob.list_records()) == 1
        for memory in memories.values():
            memory.close()


def test_a_server_that_is_away_is_no_silence(
    names: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with memorywall.Client("http://127.0.0.1:9", "mw_none") as client:
        storage = names["MemorywallStorage"](client.for_user("ann"))
        memory = Memory(storage=storage, embedder=storage.embed, llm="none")
        for use in (
            lambda: memory.recall("nuts", depth="shallow"),
            lambda: memory.remember("nuts", scope="/", categories=[], importance=0.5),
            memory.list_records,
        ):
            with pytest.raises(MemoryTransportError):
                use()
        caplog.clear()
        assert memory.recall("nuts") == []
        assert [one for one in caplog.records if one.levelname == "WARNING"]
        memory.close()
