"""The parts of a worker: tasks, their source, a runtime and a clock; real or simulated."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from memorywall import Client
from memorywall.exceptions import MemoryTransportError, MemorywallError
from memorywall.records.task import Assignment, MemoryPolicy, TaskStatus
from memorywall.sdk.worker import AsyncTaskWorker, TaskWorker, Worker
from memorywall.sdk.worker_context import TaskBlocked, TaskContext
from memorywall.sdk.worker_lease import InterruptGuard, LeaseState, Work, run_blocking
from memorywall.sdk.worker_loop import Loop, RunOptions
from memorywall.wire.tasks import TaskResponse
from tests.support.process import ServerProcess
from tests.test_sdk_support import fresh

UNREACHABLE = MemoryTransportError("nobody answers")


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def make_task(number: int = 1, **fields: Any) -> TaskResponse:
    given: dict[str, Any] = {
        "id": f"task_{number}",
        "intent_id": "int_1",
        "name": "work",
        "version": 3,
        "state": TaskStatus.CLAIMED,
        "status": TaskStatus.CLAIMED,
        "priority": "normal",
        "input": {},
        "assigned_agent": "w",
        "assignments": (Assignment(agent_id="w", assigned_by="w", assigned_at="", accepted_at=""),),
        "capabilities_required": (),
        "depends_on": (),
        "memory_policy": MemoryPolicy(),
        "attempt": 1,
        "max_attempts": 3,
        "metadata": {},
        "created_by": "boss",
        "created_at": "",
        "updated_at": "",
    }
    return TaskResponse(**{**given, **fields})


def changed(task: TaskResponse, **fields: Any) -> TaskResponse:
    names = {name: getattr(task, name) for name in task.__struct_fields__}
    return TaskResponse(**{**names, "version": task.version + 1, **fields})


class FakeTasks:
    """Hands tasks out and remembers what is said of them.

    troubles: what the next calls of `update` raise; None lets one pass
    current: the task as `get` shows it
    """

    def __init__(self, clock: Clock, *tasks: TaskResponse | Exception | None) -> None:
        self.clock = clock
        self.waiting = list(tasks)
        self.asked: list[tuple[Any, dict[str, Any]]] = []
        self.updates: list[dict[str, Any]] = []
        self.released: list[tuple[str, int]] = []
        self.troubles: list[MemorywallError | None] = []
        self.current: TaskResponse | MemorywallError | None = None
        self.next_takes = 0.0

    def next(self, capabilities: Any, **named: Any) -> Any:
        self.asked.append((capabilities, named))
        self.clock.now += self.next_takes
        task = self.waiting.pop(0) if self.waiting else None
        if isinstance(task, Exception):
            raise task
        if task is None:
            return None
        return SimpleNamespace(task=task, lease=SimpleNamespace(fencing_token=7))

    def get(self, task_id: str) -> TaskResponse:
        if isinstance(self.current, MemorywallError):
            raise self.current
        assert self.current is not None
        assert self.current.id == task_id
        return self.current

    def update(self, task: TaskResponse, **fields: Any) -> TaskResponse:
        assert fields.pop("fencing_token") == 7
        trouble = self.troubles.pop(0) if self.troubles else None
        if trouble is not None:
            raise trouble
        self.updates.append({"version": task.version, **fields})
        return changed(task, status=fields["status"], state=fields["status"])

    def renew(self, task_id: str, **named: Any) -> None:
        raise AssertionError("nobody renews here")

    def release(self, task_id: str, *, fencing_token: int) -> None:
        self.released.append((task_id, fencing_token))

    @property
    def said(self) -> list[str]:
        return [str(one["status"]) for one in self.updates]


class FakeHands:
    """Waits by moving the clock, and keeps no lease."""

    def __init__(self, clock: Clock, function: Callable[..., Any]) -> None:
        self.clock = clock
        self.function = function
        self.pauses: list[float] = []
        self.keeping = 0
        self.after_idling: Callable[[int], None] = lambda times: None

    def idle(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.now += seconds
        self.after_idling(len(self.pauses))

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.now += seconds

    def call(self, task: TaskResponse, hold: LeaseState, resumed: bool, episode: Any) -> Any:
        return self.function(task, hold, resumed)

    def start_keeping(self, work: Callable[[Callable[[float], Any]], Work[None]]) -> None:
        self.keeping += 1

    def stop_keeping(self) -> None:
        self.keeping -= 1


class Bench:
    """A loop over fakes."""

    def __init__(
        self, *tasks: TaskResponse | Exception | None, function: Callable[..., Any], **plan: Any
    ) -> None:
        self.clock = Clock()
        self.tasks = FakeTasks(self.clock, *tasks)
        self.hands = FakeHands(self.clock, function)
        self.gate = InterruptGuard()
        self.loop = Loop(
            self.tasks, self.tasks, self.hands, self.gate, RunOptions(**plan), self.clock
        )

    def once(self) -> bool:
        found = run_blocking(self.loop.run_once())
        assert self.hands.keeping == 0
        return found

    def run(self) -> int:
        return run_blocking(self.loop.run())


class Shop:
    """An intent on a server, whose coordinator hands out tasks; everybody may speak for anybody."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.boss = self.client(fresh("boss"))
        self.intent = self.boss.intents.create("what there is to do").id

    def client(self, agent: str) -> Client:
        return Client(self.server.url, self.server.dev_key, agent=agent)

    def task(self, agent: str | None = None, **fields: Any) -> TaskResponse:
        return self.boss.tasks.create(self.intent, "a task", assigned_agent=agent, **fields)

    def look(self, task: TaskResponse) -> TaskResponse:
        return self.boss.tasks.get(task.id)

    def run(self, worker: TaskWorker | AsyncTaskWorker, agent: str, **options: Any) -> int:
        """Lets an agent do all there is for it."""
        options = {"until_idle": True, "poll_interval": 0.05, **options}
        return worker.run(self.server.url, self.server.dev_key, agent=agent, **options)

    def archived(self, task: TaskResponse) -> list[dict[str, Any]]:
        """Returns the archive of a finished task's working memory from the log."""
        page = self.boss.intents.events(self.intent, limit=1_000, event_type="memory.archived")
        return [
            entry for event in page if event.task_id == task.id for entry in event.data["snapshot"]
        ]

    def close(self) -> None:
        self.boss.close()


@pytest.fixture
def shop(server: ServerProcess) -> Iterator[Shop]:
    """An intent of one's own on the server."""
    opened = Shop(server)
    yield opened
    opened.close()


def on(shop: Shop, agent: str, function: Any, **options: Any) -> int:
    """Runs a function for the tasks of an agent. A task that fails fails the test."""
    errors: list[BaseException] = []

    @Worker()
    def work(ctx: TaskContext) -> Any:
        try:
            return function(ctx)
        except TaskBlocked:
            raise
        except Exception as error:
            errors.append(error)
            raise

    done = shop.run(work, agent, **options)
    if errors:
        raise errors[0]
    return done


def eventually(condition: Callable[[], Any], within: float = 30.0) -> Any:
    """The first true answer. Fails when there is none in time."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if answer := condition():
            return answer
        time.sleep(0.02)
    raise AssertionError(f"not so within {within:g} seconds: {inspect.getsource(condition)}")
