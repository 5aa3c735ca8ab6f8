"""Whatever stops a run in its midst, nothing of it is left for anybody to take up."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import memorywall.workflow_execution.coordinator_lease as office_module
import memorywall.workflow_execution.step as step_module
from memorywall.sdk.errors import MemoryTransportError
from tests.workflow_execution.stage import LIMIT, Stage, reason, runners, statuses

OPEN_PARENTS = """
    - {task: top, agent: ann}
    - {task: middle, agent: bob, parent: top}
    - {task: part, agent: ann, parent: middle}
    - {task: next, agent: bob, depends_on: [top]}
"""
WRITES_ONE = """
    def work(ctx):
        ctx.memory.set("notes", ctx.task.name, {"n": 1})
"""


class _Unplugged(BaseException):
    """What no part of the program catches."""


@pytest.mark.parametrize("kind", [MemoryTransportError, KeyboardInterrupt, _Unplugged])
@pytest.mark.parametrize("when", [1, 2, 3, 4, 5])
def test_an_error_of_the_runner_calls_everything_off(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException], when: int
) -> None:
    """The runner looks at each task before it begins and after it has ended."""
    stage.functions(WRITES_ONE)
    look, looked = stage.chief.tasks.get, []

    def get(task_id: str) -> Any:
        looked.append(task_id)
        if len(looked) == when:
            raise kind("pulled out")
        return look(task_id)

    monkeypatch.setattr(stage.chief.tasks, "get", get)
    with pytest.raises(kind):
        stage.plan(OPEN_PARENTS)
    assert len(looked) == when
    assert runners() == []
    (intent,) = stage.chief.intents.list()
    assert intent.status == "abandoned"
    ends = {str(task.status) for task in stage.chief.tasks.list(intent_id=intent.id)}
    assert ends <= {"cancelled", "completed"}
    assert "cancelled" in ends
    assert stage.working("ann") == stage.working("bob") == []
    monkeypatch.undo()
    assert stage.plan(OPEN_PARENTS).completed


@pytest.fixture
def interrupted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C arrives as soon as a function says that it has `STARTED`."""
    begin = step_module.StepRun.begin

    def begin_and_be_interrupted(self: step_module.StepRun) -> bool:
        threading.Thread(target=begin, args=(self,), daemon=True).start()
        deadline = time.monotonic() + LIMIT
        while not stage.module.STARTED.is_set():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(step_module.StepRun, "begin", begin_and_be_interrupted)


@pytest.mark.usefixtures("interrupted")
def test_a_function_is_asked_to_stop(stage: Stage) -> None:
    stage.functions(f"""
        import threading
        import time

        STARTED, SEEN = threading.Event(), []

        def work(ctx):
            STARTED.set()
            until = time.monotonic() + {LIMIT}
            while time.monotonic() < until and not ctx.stopping:
                time.sleep(0.01)
            SEEN.append(ctx.stopping)
            ctx.memory.set("notes", "too late", {{}})
            SEEN.append("went on")
    """)
    with pytest.raises(KeyboardInterrupt):
        stage.plan("- {task: only, agent: ann}\n")
    assert stage.module.SEEN == [True]
    (intent,) = stage.chief.intents.list()
    assert intent.status == "abandoned"
    (task,) = stage.chief.tasks.list(intent_id=intent.id)
    assert task.status == "cancelled"


@pytest.mark.usefixtures("interrupted")
def test_a_function_that_does_not_stop_does_not_keep_the_program(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_module, "_STOPPED_WITHIN", 0.1)
    stage.functions(f"""
        import threading

        STARTED, GO, SAID = threading.Event(), threading.Event(), []

        def work(ctx):
            STARTED.set()
            GO.wait({LIMIT})
            try:
                ctx.client.memory.set("notes", "k", {{"too": "late"}}, "working")
            except Exception as error:
                SAID.append(type(error).__name__)
    """)
    with pytest.raises(KeyboardInterrupt):
        stage.plan("- {task: only, agent: ann}\n")
    left = runners()
    assert left
    assert all(thread.daemon for thread in left)
    stage.module.GO.set()
    for thread in left:
        thread.join(LIMIT)
        assert not thread.is_alive()
    # Its task was cancelled under it, so that what it still wrote was refused.
    assert stage.module.SAID == ["FencedError"]
    assert stage.working("ann") == []


def test_a_task_that_others_have_moved_is_left_as_it_is(stage: Stage) -> None:
    stage.functions("""
        def work(ctx):
            if ctx.task.name == "first":
                mine = {task.name: task for task in CHIEF.tasks.list(intent_id=ctx.task.intent_id)}
                CHIEF.tasks.cancel(mine["called off"])
                CHIEF.tasks.assign(mine["given away"], "eve")
                EVE.tasks.claim(mine["taken"].id)
    """)
    stage.share(CHIEF=stage.chief, EVE=stage.connections.agent("eve"))
    outcome = stage.run("""\
name: n
agents: {ann: {function: "MODULE:work"}, bob: {}, eve: {}}
plan:
  - {task: first, agent: ann}
  - {task: called off, agent: bob}
  - {task: given away, agent: bob}
  - {task: taken, agent: eve}
  - {task: waits, agent: bob, depends_on: [called off]}
  - {task: other, agent: bob}
""")
    assert statuses(outcome) == {
        "first": "completed",
        "called off": "cancelled",
        "given away": "ready",
        "taken": "claimed",
        "waits": "skipped",
        "other": "completed",
    }
    assert reason(outcome, "called off") == "it was cancelled when its turn came"
    assert reason(outcome, "given away") == "the task is assigned to another agent"
    assert reason(outcome, "taken") == "it was claimed when its turn came"
    assert not outcome.completed


def test_the_coordinator_stays_in_office_while_steps_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that outlasts three heartbeats sees its coordinator live on."""
    monkeypatch.setattr(office_module, "HEARTBEAT_SECONDS", 1)
    stage.functions(f"""
        import time

        SEEN = []

        def work(ctx):
            until = time.monotonic() + {LIMIT}
            while len(SEEN) < 5 and time.monotonic() < until:
                (office,) = ctx.client.coordinators.list(ctx.task.intent_id)
                assert office.status == "active"
                if office.last_heartbeat not in SEEN:
                    SEEN.append(office.last_heartbeat)
                time.sleep(0.05)
    """)
    outcome = stage.plan("- {task: only, agent: ann}\n")
    assert outcome.completed, outcome
    assert len(stage.module.SEEN) == 5


def test_an_authority_that_is_over_early_does_not_stop_the_run(stage: Stage) -> None:
    stage.functions("""
        def work(ctx):
            if ctx.task.name == "one":
                (office,) = ctx.client.coordinators.list(ctx.task.intent_id)
                CHIEF.coordinators.resign(office.id)
    """)
    stage.share(CHIEF=stage.chief)
    assert stage.plan("- {task: one, agent: ann}\n- {task: two, agent: ann}\n").completed
