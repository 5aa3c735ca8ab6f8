"""Tasks: of an intent, of an agent, and those nobody has."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from memorywall.records.task import Assignment, MemoryPolicy, Task, TaskStatus
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import AGENT, TENANT, StoreCase, at
from memorywall_testing.names import LOOKALIKES
from memorywall_testing.work import ANYTHING, INTENT, make_task

_OVER = (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED, TaskStatus.SKIPPED)


async def _insert(store: Store, *tasks: Task) -> None:
    async def script(transaction: Transaction) -> None:
        for task in tasks:
            await transaction.tasks.insert(task)

    await store.write(TENANT, script)


async def _changed(store: Store, task: Task, **fields: object) -> Task:
    """The task as it is after a replacement that sets these fields."""
    new: Task = msgspec.structs.replace(task, version=task.version + 1, **fields)
    await store.write(TENANT, lambda to: to.tasks.replace(new))
    return new


async def _get(store: Store, task: Task) -> Task | None:
    return await store.read(TENANT, lambda to: to.tasks.get(task.id))


async def _list(
    store: Store,
    intent_id: str = INTENT,
    status: TaskStatus | None = None,
    limit: int = 1_000,
    offset: int = 0,
) -> list[Task]:
    return await store.read(TENANT, lambda to: to.tasks.list(intent_id, status, limit, offset))


async def _count(store: Store, intent_id: str = INTENT) -> int:
    return await store.read(TENANT, lambda to: to.tasks.count(intent_id))


async def _assigned(
    store: Store,
    agent: str = AGENT,
    status: TaskStatus | None = None,
    limit: int = 1_000,
    offset: int = 0,
) -> list[Task]:
    return await store.read(TENANT, lambda to: to.tasks.assigned(agent, status, limit, offset))


async def _open_of(store: Store, agent: str = AGENT) -> list[Task]:
    return await store.read(TENANT, lambda to: to.tasks.open_of(agent))


async def _unassigned(
    store: Store, intents: Iterable[str] = (INTENT,), limit: int = 1_000
) -> list[Task]:
    named = tuple(intents)
    return await store.read(TENANT, lambda to: to.tasks.unassigned(named, limit))


async def _dependents(store: Store, task_id: str, intent_id: str = INTENT) -> list[Task]:
    return await store.read(TENANT, lambda to: to.tasks.dependents(intent_id, task_id))


async def _completed(store: Store, task_ids: list[str]) -> frozenset[str]:
    return await store.read(TENANT, lambda to: to.tasks.completed(task_ids))


def _full(status: TaskStatus) -> Task:
    return make_task(
        description="\u2764\ufe0f",
        status=status,
        priority="high",
        input=ANYTHING,
        output={"result": ANYTHING},
        error="it failed",
        blocked_reason="it waits",
        assigned_agent=AGENT,
        assignments=(
            Assignment(
                agent_id="grace",
                assigned_by="linus",
                assigned_at=at(-9),
                accepted_at=at(-8),
                ended_at=at(-7),
            ),
            Assignment(agent_id=AGENT, assigned_by=AGENT, assigned_at=at(-6)),
        ),
        capabilities_required=("ocr", "\U0001f44d"),
        depends_on=("task_z", "task_a"),
        parent_task_id="task_parent",
        memory_policy=MemoryPolicy(
            archive_on_completion=False,
            inherit_from_parent=True,
            max_entries=0,
            max_total_size_kb=5,
        ),
        attempt=2,
        max_attempts=5,
        metadata=ANYTHING,
        version=9,
        created_by="linus",
        created_at=at(-9),
        updated_at=at(-1),
        started_at=at(-5),
        completed_at=at(-1),
    )


class TasksConformance(StoreCase):
    """`port.Tasks`."""

    async def test_without_tasks(self, store: Store) -> None:
        assert await _get(store, make_task()) is None
        assert await _list(store) == await _assigned(store) == await _open_of(store) == []
        assert await _unassigned(store) == await _unassigned(store, []) == []
        assert await _count(store) == 0

    @pytest.mark.parametrize("status", list(TaskStatus))
    async def test_every_field_of_a_task_comes_back(self, store: Store, status: TaskStatus) -> None:
        tasks = [make_task(status=status), _full(status)]
        await _insert(store, *tasks)
        for task in tasks:
            assert await _get(store, task) == task
        assert await _list(store) == tasks
        assert await _assigned(store) == tasks[1:]

    async def test_replaced_task_is_returned_by_reads(self, store: Store) -> None:
        bare, full, other = make_task(), _full(TaskStatus.RUNNING), make_task()
        await _insert(store, bare, full, other)
        fields = {
            name: getattr(full, name)
            for name in full.__struct_fields__
            if name not in ("id", "version")
        }
        filled = await _changed(store, bare, **fields)
        assert await _get(store, bare) == filled
        emptied = await _changed(store, full, assigned_agent=None, output=None, assignments=())
        assert await _get(store, full) == emptied
        assert await _get(store, other) == other

    async def test_missing_task_is_not_replaced(self, store: Store) -> None:
        task = make_task(assigned_agent=AGENT)
        with pytest.raises(LookupError):
            await _changed(store, task)
        assert await _get(store, task) is None
        assert await _open_of(store) == []

    async def test_insert_of_task_does_not_replace_another(self, store: Store) -> None:
        first = make_task()
        await _insert(store, first)
        with pytest.raises(Exception):  # noqa: B017, PT011 - which one is the backend's own affair
            await _insert(store, make_task(id=first.id, intent_id="int_2"))
        assert await _list(store) == [first]
        assert await _count(store, "int_2") == 0

    async def test_an_intents_tasks_are_listed_oldest_first_in_pages(self, store: Store) -> None:
        statuses = list(TaskStatus)
        tasks = [make_task(status=statuses[number % 9]) for number in range(27)]
        elsewhere = make_task(intent_id="int_2")
        await _insert(store, *reversed(tasks), elsewhere)
        assert await _list(store, "int_2") == [elsewhere]
        assert (await _count(store), await _count(store, "int_2")) == (27, 1)
        for status in (None, *statuses):
            expected = [task for task in tasks if status in (None, task.status)]
            for limit, offset in ((99, 0), (1, 0), (2, 1), (5, 4), (9, 99), (0, 0)):
                page = await _list(store, INTENT, status, limit, offset)
                assert page == expected[offset : offset + limit]

    async def test_an_agents_tasks_are_listed_oldest_first_in_pages(self, store: Store) -> None:
        statuses = list(TaskStatus)
        tasks = [
            make_task(status=statuses[number % 9], assigned_agent=AGENT, intent_id=f"int_{number}")
            for number in range(27)
        ]
        hers = make_task(assigned_agent="grace")
        await _insert(store, *reversed(tasks), hers, make_task())
        assert await _assigned(store, "grace") == await _open_of(store, "grace") == [hers]
        assert await _open_of(store) == [task for task in tasks if task.status not in _OVER]
        for status in (None, *statuses):
            expected = [task for task in tasks if status in (None, task.status)]
            for limit, offset in ((99, 0), (1, 0), (2, 1), (5, 4), (9, 99), (0, 0)):
                page = await _assigned(store, AGENT, status, limit, offset)
                assert page == expected[offset : offset + limit]

    async def test_assigned_and_open_tasks_follow_every_change(self, store: Store) -> None:
        task = make_task()
        await _insert(store, task)
        assert await _unassigned(store) == [task]
        task = await _changed(store, task, assigned_agent=AGENT, status=TaskStatus.CLAIMED)
        assert await _unassigned(store) == []
        assert await _assigned(store) == await _open_of(store) == [task]
        task = await _changed(store, task, assigned_agent="grace", status=TaskStatus.READY)
        assert await _unassigned(store) == await _assigned(store) == await _open_of(store) == []
        assert await _assigned(store, "grace") == await _open_of(store, "grace") == [task]
        for status in _OVER:
            task = await _changed(store, task, status=status)
            assert await _open_of(store, "grace") == []
            assert await _assigned(store, "grace") == [task]
        task = await _changed(store, task, status=TaskStatus.READY, attempt=2)
        assert await _open_of(store, "grace") == [task]
        task = await _changed(store, task, assigned_agent=None)
        assert await _open_of(store, "grace") == await _assigned(store, "grace") == []
        assert await _unassigned(store) == [task]

    async def test_the_intents_an_agent_works_in_follow_every_change(self, store: Store) -> None:
        names = ("int_2", "int_1", *LOOKALIKES)
        tasks = [make_task(intent_id=name, assigned_agent=AGENT) for name in names]
        await _insert(store, *tasks, make_task(intent_id="int_1", assigned_agent=AGENT))
        await _insert(store, make_task(intent_id="int_3", assigned_agent="grace"))
        await _insert(store, make_task(intent_id="int_4"))

        async def look(agent: str) -> tuple[object, set[str]]:
            async def script(to: Transaction) -> tuple[object, set[str]]:
                known = (*names, "int_3", "int_4", "int_5")
                working = {one for one in known if await to.tasks.works_in(agent, one)}
                return await to.tasks.intents_of(agent), working

            return await store.read(TENANT, script)

        assert await look(AGENT) == (sorted(set(names)), set(names))
        assert await look("grace") == (["int_3"], {"int_3"})
        assert await look("nobody") == ([], set())
        await _changed(store, tasks[0], status=TaskStatus.COMPLETED)
        assert "int_2" in (await look(AGENT))[1], "a task that is over counts"
        await _changed(store, tasks[0], assigned_agent="grace")
        assert await look("grace") == (["int_2", "int_3"], {"int_2", "int_3"})
        assert "int_2" not in (await look(AGENT))[1]

    async def test_only_ready_unassigned_tasks_are_available(self, store: Store) -> None:
        tasks = {status: make_task(status=status) for status in TaskStatus}
        assigned = make_task(assigned_agent="grace")
        later = make_task(intent_id="int_2")
        latest = make_task()
        elsewhere = make_task(intent_id="int_3")
        await _insert(store, latest, elsewhere, later, assigned, *tasks.values())
        ready = tasks[TaskStatus.READY]
        assert await _unassigned(store) == [ready, latest]
        assert await _unassigned(store, [INTENT, "int_2", "int_none", INTENT]) == [
            ready, later, latest,
        ]  # fmt: skip
        assert await _unassigned(store, ["int_2", INTENT], 2) == [ready, later]
        assert await _unassigned(store, []) == []
        many = [f"int_{number}" for number in range(2, 1_000)]
        assert await _unassigned(store, many) == [later, elsewhere]

    async def test_dependents_are_the_pending_tasks_that_depend_on_one(self, store: Store) -> None:
        pending = TaskStatus.PENDING
        needed, other = make_task(), make_task()
        alone = make_task(status=pending, depends_on=(needed.id,))
        both = make_task(status=pending, depends_on=(other.id, needed.id))
        others = make_task(status=pending, depends_on=(other.id,))
        nothing = make_task(status=pending)
        # The id also occurs in these tasks, but not as a dependency.
        below = make_task(status=pending, parent_task_id=needed.id, depends_on=(other.id,))
        told = make_task(status=pending, input={"of": needed.id}, name=needed.id)
        longer = make_task(status=pending, depends_on=(needed.id + "0", "0" + needed.id))
        elsewhere = make_task(status=pending, depends_on=(needed.id,), intent_id="int_2")
        over = [
            make_task(status=status, depends_on=(needed.id,))
            for status in TaskStatus
            if status is not pending
        ]
        tasks = [needed, other, alone, both, others, nothing, below, told, longer, elsewhere, *over]
        await _insert(store, *reversed(tasks))
        assert await _dependents(store, needed.id) == [alone, both]
        assert await _dependents(store, other.id) == [both, others, below]
        assert await _dependents(store, needed.id, "int_2") == [elsewhere]
        assert await _dependents(store, nothing.id) == await _dependents(store, "") == []
        ready = await _changed(store, alone, status=TaskStatus.READY)
        assert await _dependents(store, needed.id) == [both]
        await _changed(store, ready, status=pending)
        await _changed(store, both, depends_on=())
        assert [task.id for task in await _dependents(store, needed.id)] == [alone.id]

    @pytest.mark.parametrize("name", [*LOOKALIKES, 'a "quoted" \\ name', "a%b_c", "line\nbreak"])
    async def test_dependents_are_told_apart_by_code_point(self, store: Store, name: str) -> None:
        names = sorted({*LOOKALIKES, name})
        tasks = [make_task(status=TaskStatus.PENDING, depends_on=(one,)) for one in names]
        await _insert(store, *tasks)
        expected = [task for task in tasks if task.depends_on == (name,)]
        assert await _dependents(store, name) == expected

    async def test_completed_tells_which_of_some_tasks_are(self, store: Store) -> None:
        tasks = {status: make_task(status=status) for status in TaskStatus}
        later = make_task(status=TaskStatus.COMPLETED, intent_id="int_2")
        unasked = make_task(status=TaskStatus.COMPLETED)
        await _insert(store, later, unasked, *tasks.values())
        done = tasks[TaskStatus.COMPLETED]
        asked = [task.id for task in tasks.values()]
        assert await _completed(store, asked) == {done.id}
        assert await _completed(store, [*asked, later.id, done.id, "task_none"]) == {
            done.id, later.id,
        }  # fmt: skip
        assert await _completed(store, []) == await _completed(store, ["", "task_none"]) == set()
        many = [f"task_{number}" for number in range(2_000)]
        assert await _completed(store, [*many, later.id]) == {later.id}
        running = await _changed(store, tasks[TaskStatus.RUNNING], status=TaskStatus.COMPLETED)
        assert await _completed(store, asked) == {done.id, running.id}
        await _changed(store, later, status=TaskStatus.FAILED)
        assert await _completed(store, [later.id]) == set()

    async def test_transaction_reads_its_changes(self, store: Store) -> None:
        needed = make_task()
        waiting = make_task(status=TaskStatus.PENDING, depends_on=(needed.id,))
        await _insert(store, needed)
        done = msgspec.structs.replace(needed, status=TaskStatus.COMPLETED)

        async def script(to: Transaction) -> None:
            assert await to.tasks.dependents(INTENT, needed.id) == []
            assert await to.tasks.completed([needed.id]) == set()
            await to.tasks.insert(waiting)
            await to.tasks.replace(done)
            assert await to.tasks.dependents(INTENT, needed.id) == [waiting]
            assert await to.tasks.completed([needed.id]) == {needed.id}

        await store.write(TENANT, script)

    async def test_agents_and_intents_are_told_apart_by_code_point(self, store: Store) -> None:
        by_agent = [make_task(assigned_agent=name, intent_id="int_2") for name in LOOKALIKES]
        by_intent = [make_task(intent_id=name) for name in LOOKALIKES]
        await _insert(store, *by_agent, *by_intent)
        for name, assigned, within in zip(LOOKALIKES, by_agent, by_intent, strict=True):
            assert await _assigned(store, name) == await _open_of(store, name) == [assigned]
            assert await _list(store, name) == await _unassigned(store, [name]) == [within]
            assert await _count(store, name) == 1
