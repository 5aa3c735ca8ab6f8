"""The SDK's steps of working memory, in both colours, and the commands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import memorywall
from memorywall.exceptions import DecompositionRequiredError, TransitionError
from memorywall.sdk.working_memory import WorkingStep
from tests.cli.shell import new_directory, refuse, succeed

pytestmark = pytest.mark.anyio


def keep_all(step: WorkingStep, rows: list[dict[str, int]]) -> None:
    """Marks more items than a budget has room for, however short they are."""
    for number in range(100):
        step.keep(f"row {number}", rows)


def test_a_step_is_a_with_statement(place: Path | str) -> None:
    with memorywall.open(place, agent="clerk") as client:
        intent = client.intents.create("Close the books")
        task = client.tasks.create(intent.id, "Find the error", assigned_agent="clerk")
        taken = client.tasks.claim(task.id)
        worker = client.scoped(task_id=task.id, fencing_token=taken.lease.fencing_token)
        with worker.tasks.step(task, "which invoice is wrong", {"budget": 400}) as step:
            step.add("rows", [1, 2, 3])
            step.add("noise", "nothing")
            step.keep("hypothesis", "the invoice of march is wrong", depends_on=["rows"])
            assert step.read("rows") == [1, 2, 3]
            actions = set()
            for number in range(5):
                step.keep(f"kept {number}", {"rows": list(range(200))})
                actions |= {one.action for one in step.changes}
            assert "externalized" in actions
            rows = [{"row": number} for number in range(20)]
            with pytest.raises(DecompositionRequiredError) as raised:
                keep_all(step, rows)
            assert raised.value.budget == 400
            assert raised.value.need is not None
        assert step.memory is not None
        assert step.memory.tokens <= 120
        assert {one.reason for one in step.changes} >= {"step_boundary_eviction"}
        with pytest.raises(TransitionError):
            worker.working.tick(task.id)
        with pytest.raises(KeyError), worker.tasks.step(task.id) as step:
            raise KeyError("the step ends as well")
        assert not worker.working.show(task.id).is_open
        first = worker.working.explain(task.id, limit=1)
        assert first.next is not None
        assert worker.working.explain(task.id, after=first.next).changes


def test_a_step_inside_a_session_is_in_its_checkpoint(place: Path | str) -> None:
    with memorywall.open(place, agent="clerk") as client:
        intent = client.intents.create("Close the books")
        session = client.sessions.create("ann")
        for metadata in ({}, {"session_id": session.id}):
            task = client.tasks.create(
                intent.id, "Find the error", assigned_agent="clerk", metadata=metadata
            )
            inside = client.for_user("ann").in_session(session.id)
            with inside.tasks.step(task, "which invoice is wrong") as step:
                step.add("rows", [1, 2, 3])
                assert inside.claims.list() == []
                working = session.checkpoint().working
            assert [one["value"]["content"] for one in working] == [[1, 2, 3]]
            assert session.checkpoint().working == []
        assert [one.id for one in inside.tasks.list()] == [task.id]


@pytest.mark.sqlite("the page opens a file")
def test_the_beginning_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parent.parent / "docs" / "working-memory.md"
    blocks = re.findall(
        r"^```(\w+)(?: output)?\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL
    )
    (_, program), (_, printed) = blocks[:2]
    monkeypatch.chdir(tmp_path)
    exec(compile(program, str(page), "exec"), {})
    assert capsys.readouterr().out == printed


async def test_an_async_step_is_an_async_with_statement(place: Path | str) -> None:
    async with memorywall.open_async(place, agent="clerk") as client:
        intent = await client.intents.create("Close the books")
        task = await client.tasks.create(intent.id, "Find the error", assigned_agent="clerk")
        async with client.tasks.step(task) as step:
            await step.add("page", "output of a tool", ttl_ops=1)
            await step.add("hypothesis", {"invoice": "march"})
            await step.keep("hypothesis")
            assert [one.item for one in (await step.tick()).changes] == ["page"]
            assert await step.read("hypothesis") == {"invoice": "march"}
        memory = await client.working.show(task.id)
        assert [one.name for one in memory.items] == ["hypothesis"]
        assert [one.change.item for one in (await client.working.explain(task.id)).changes] == [
            "page"
        ]


def test_commands_keep_working_memory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "clerk")
    where = ("--data", str(data), "--agent", "clerk")

    def run(*arguments: str) -> str:
        return succeed(*arguments, *where)

    intent = json.loads(run("intents", "create", "Close", "--json"))["id"]
    line = ("tasks", "create", intent, "t", "--assign", "clerk", "--json")
    task = json.loads(run(*line))["id"]
    assert "step 1 (open)" in run("tasks", "working", "begin", task, "--budget", "500")
    run("tasks", "working", "keep", task, "rows", "[1, 2]", "--ttl-ops", "1")
    shown = run("tasks", "working", "keep", task, "why", "march", "--needs", "rows", "--json")
    assert [one["content"] for one in json.loads(shown)["items"]] == [[1, 2], "march"]
    assert json.loads(run("tasks", "working", "read", task, "rows"))["content"] == [1, 2]
    run("tasks", "working", "mark", task, "why")
    run("tasks", "working", "mark", task, "why", "--undo")
    assert "tick 1" in run("tasks", "working", "tick", task)
    assert "step_boundary_eviction" in run("tasks", "working", "end", task)
    assert "0 of 500 tokens" in run("tasks", "working", "list", task)
    assert "why" in run("tasks", "explain", task)
    changes = json.loads(run("tasks", "explain", task, "--json"))
    assert {one["change"]["item"] for one in changes} == {"rows", "why"}
    assert "no step is open" in refuse("tasks", "working", "tick", task, *where)
