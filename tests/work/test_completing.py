"""What the completion of a task asks of the store: the same however large the intent is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from memorywall.records.task import Task
from memorywall.storage.postgres.session import StatementSession
from memorywall.storage.sql.record_spec import RecordSpec
from tests.support.backend import is_on_file
from tests.support.service import RunningService
from tests.work.crew import Crew, remember

pytestmark = pytest.mark.anyio

Patch = pytest.MonkeyPatch


class _Counted:
    """What was asked of the store while it was counted.

    statements: the text of each, in order
    decoded: how many tasks were decoded
    """

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.decoded = 0

    def reading(self, table: str) -> int:
        """How many statements read a table."""
        reads = re.compile(rf"\s*SELECT\b.*\b{table}\b", re.DOTALL)
        return sum(reads.match(_without_comments(one)) is not None for one in self.statements)


def _without_comments(statement: str) -> str:
    return re.sub(r"--[^\n]*", "", statement)


@contextmanager
def _counting(service: RunningService, patch: Patch) -> Iterator[_Counted]:
    """Counts the statements of writing transactions, and the tasks that are decoded."""
    counted = _Counted()
    decode = RecordSpec.from_row

    def decoding(self: RecordSpec[Any], row: Any) -> Any:
        counted.decoded += self.struct is Task
        return decode(self, row)

    with patch.context() as patched:
        patched.setattr(RecordSpec, "from_row", decoding)
        if is_on_file():
            connection = service.services.store.unkeyed._writer._connection  # type: ignore[attr-defined]

            def note(_: Any, statement: str, bindings: Any) -> bool:
                counted.statements.append(statement)
                return True

            connection.exec_trace = note
            yield counted
            connection.exec_trace = None
            return
        run = StatementSession._run

        async def noting(self: StatementSession, statement: str, bindings: Any) -> Any:
            counted.statements.append(statement)
            return await run(self, statement, bindings)

        patched.setattr(StatementSession, "_run", noting)
        yield counted


async def _completing(crew: Crew, patch: Patch, task: dict[str, Any]) -> _Counted:
    """Completes a claimed task; what was asked of the store meanwhile."""
    with _counting(crew.service, patch) as counted:
        body, headers = {"status": "completed"}, {"If-Match": str(task["version"])}
        response = await crew.chief.patch(f"/api/v1/tasks/{task['id']}", json=body, headers=headers)
        assert response.status_code == 200, response.text
    return counted


async def _claimed(crew: Crew, **fields: Any) -> dict[str, Any]:
    task = await crew.task(assigned_agent="a", **fields)
    return await crew.change(crew.chief, task["id"], status="claimed")


async def test_completing_does_not_read_the_tasks_that_wait_for_others(
    crew: Crew, monkeypatch: Patch
) -> None:
    other = await crew.task("other")
    few, many = await _claimed(crew), await _claimed(crew)
    before = await _completing(crew, monkeypatch, few)
    for number in range(30):
        await crew.task(f"waits {number}", depends_on=[other["id"]])
    after = await _completing(crew, monkeypatch, many)
    assert after.decoded == before.decoded <= 2
    assert len(after.statements) == len(before.statements)


async def test_completing_asks_once_for_all_that_its_dependents_wait_for(
    crew: Crew, monkeypatch: Patch
) -> None:
    counts = []
    for needs in (1, 20):
        done = []
        for _ in range(needs - 1):
            task = await _claimed(crew)
            await crew.change(crew.chief, task["id"], status="completed")
            done.append(task["id"])
        last = await _claimed(crew)
        waiting = await crew.task(f"waits for {needs}", depends_on=[*done, last["id"]])
        assert waiting["status"] == "pending"
        counts.append(await _completing(crew, monkeypatch, last))
        assert (await crew.now(waiting["id"]))["status"] == "ready"
    few, many = counts
    assert many.decoded == few.decoded <= 3
    assert many.reading("tasks") == few.reading("tasks")
    assert len(many.statements) == len(few.statements)


async def test_completion_queries_the_memory_of_the_task_once(
    crew: Crew, monkeypatch: Patch
) -> None:
    task = await _claimed(crew)
    await remember(crew.a, task["id"], "kept")
    counted = await _completing(crew, monkeypatch, task)
    of_task = [
        one for one in counted.statements if re.search(r"WHERE tenant = \S+ AND task_id", one)
    ]
    assert len(of_task) == 1
    (archive,) = await crew.log(event_type="memory.archived")
    assert archive["data"]["entries_archived"] == 1


async def test_completing_one_of_two_releases_nothing_and_the_other_does(crew: Crew) -> None:
    """A task's id in another field of a pending task is no dependency."""
    first, second = await _claimed(crew), await _claimed(crew)
    waiting = await crew.task("waits", depends_on=[first["id"], second["id"]])
    named = await crew.task(
        "names it", depends_on=[second["id"]], parent_task_id=first["id"], input={"of": first["id"]}
    )
    await crew.change(crew.chief, first["id"], status="completed")
    for task in (waiting, named):
        assert await crew.now(task["id"]) == task
    await crew.change(crew.chief, second["id"], status="completed")
    for task in (waiting, named):
        assert (await crew.now(task["id"]))["status"] == "ready"
        assert (await crew.told(task["id"])) == ["task.created", "task.ready"]
