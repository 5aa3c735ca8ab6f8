"""What a worker does with one task after the other, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from memorywall.exceptions import (
    AuthenticationError,
    MemoryTransportError,
    MemorywallError,
    UnavailableError,
    ValueTooLargeError,
)
from memorywall.records.errors import (
    FencedError,
    MemoryAccessError,
    ResourceConflictError,
    ResourceNotFoundError,
    TransitionError,
)
from memorywall.records.task import Assignment, TaskStatus
from memorywall.sdk.worker_context import TaskBlocked
from memorywall.sdk.worker_lease import LeaseState, WorkerStopped
from memorywall.sdk.worker_loop import was_worked_on
from memorywall.wire.tasks import TaskResponse
from tests.support.workers import UNREACHABLE, Bench, make_task


def nothing(*_: object) -> None:
    pass


# Taking tasks


def test_the_time_of_a_lease_counts_from_before_it_was_asked_for() -> None:
    left: list[float] = []

    def work(task: TaskResponse, hold: LeaseState, resumed: bool) -> None:
        left.append(hold.left)

    bench = Bench(make_task(), function=work)
    bench.tasks.next_takes = 12.0
    assert bench.once()
    assert left == [18.0]


def test_what_is_asked_for() -> None:
    bench = Bench(
        function=nothing, capabilities=("billing", "sql"), intent_id="int_9", lease_seconds=5
    )
    assert not bench.once()
    assert bench.tasks.asked == [(("billing", "sql"), {"intent_id": "int_9", "lease_seconds": 5})]


def test_pauses_grow_while_idle_and_restart_after_a_task() -> None:
    tasks = [*[None] * 7, make_task(1), None, None, make_task(2)]
    bench = Bench(*tasks, function=nothing, poll_interval=1.0, max_tasks=2)
    assert bench.run() == 2
    assert bench.hands.pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 0.05, 0.1]


def test_request_to_unavailable_server_is_repeated() -> None:
    bench = Bench(UNREACHABLE, UnavailableError(), make_task(), function=nothing, max_tasks=1)
    assert bench.run() == 1
    assert len(bench.hands.pauses) == 2


def test_a_worker_for_what_there_is_now_does_not_wait_for_a_server() -> None:
    bench = Bench(make_task(), UNREACHABLE, function=nothing, until_idle=True)
    with pytest.raises(MemoryTransportError):
        bench.run()
    assert bench.tasks.said == ["running", "completed"]


def test_a_key_that_is_refused_ends_the_worker() -> None:
    bench = Bench(AuthenticationError(), make_task(), function=nothing)
    with pytest.raises(AuthenticationError):
        bench.run()


def test_it_runs_until_idle_or_for_so_many_tasks() -> None:
    three = [make_task(number) for number in range(3)]
    assert Bench(*three, function=nothing, until_idle=True).run() == 3
    bench = Bench(*three, function=nothing, max_tasks=2)
    assert bench.run() == 2
    assert len(bench.tasks.waiting) == 1
    assert Bench(*three, function=nothing, max_tasks=0).run() == 0


def test_resumed_is_true_after_an_earlier_agent() -> None:
    def by(agent: str, accepted: str | None, ended: str | None = None) -> Assignment:
        return Assignment(
            agent_id=agent, assigned_by="boss", assigned_at="", accepted_at=accepted, ended_at=ended
        )

    assert not was_worked_on(make_task())
    assert was_worked_on(make_task(started_at="2026-02-02T00:00:00.000Z"))
    assert was_worked_on(make_task(assignments=(by("a", "x", "y"), by("w", "z"))))
    # Whoever was only assigned to it has done nothing yet.
    assert not was_worked_on(make_task(assignments=(by("a", None, "y"), by("w", "z"))))


# Saying what came of it


def test_a_task_is_started_and_completed() -> None:
    bench = Bench(make_task(), function=lambda task, hold, resumed: {"status": task.status})
    assert bench.once()
    assert bench.tasks.updates == [
        {"version": 3, "status": "running"},
        {"version": 4, "status": "completed", "output": {"status": "running"}},
    ]
    assert bench.tasks.released == []


def test_one_that_was_under_way_is_not_started_again() -> None:
    task = make_task(status=TaskStatus.RUNNING, state=TaskStatus.RUNNING, started_at="then")
    bench = Bench(task, function=lambda task, hold, resumed: {"resumed": resumed})
    bench.once()
    told = {"version": 3, "status": "completed", "output": {"resumed": True}}
    assert bench.tasks.updates == [told]


def fail(*_: object) -> None:
    raise KeyError("the customer's name")


def test_only_the_type_of_an_error_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(make_task(), function=fail)
    bench.once()
    told = bench.tasks.updates[-1]
    assert told == {"version": 4, "status": "failed", "error": "KeyError: see the worker's log"}
    assert "the customer's name" in caplog.text


def test_error_text_is_reported_with_report_errors() -> None:
    bench = Bench(make_task(), function=fail, report_errors=True)
    bench.once()
    assert bench.tasks.updates[-1]["error"] == 'KeyError: "the customer\'s name"'


@pytest.mark.parametrize("output", [["a", "list"], "text", 7])
def test_output_is_a_dict(output: object) -> None:
    bench = Bench(make_task(), function=lambda *_: output)
    bench.once()
    assert bench.tasks.said == ["running", "failed"]
    assert bench.tasks.updates[-1]["error"].startswith("TypeError")


def test_output_that_cannot_be_stored_fails_the_task() -> None:
    bench = Bench(make_task(), function=lambda *_: {"too": "large"})
    bench.tasks.troubles = [None, ValueTooLargeError()]
    bench.once()
    assert bench.tasks.said == ["running", "failed"]
    assert bench.tasks.updates[-1]["error"].startswith("ValueTooLargeError")


def test_blocked_task_does_not_delay_other_tasks() -> None:
    def wait_for_approval(*_: object) -> None:
        raise TaskBlocked("no approval yet")

    bench = Bench(make_task(), function=wait_for_approval)
    bench.once()
    assert bench.tasks.updates[-1] == {
        "version": 4,
        "status": "blocked",
        "blocked_reason": "no approval yet",
    }
    assert bench.tasks.released == [("task_1", 7)]


def test_a_report_is_tried_again_while_the_lease_lasts() -> None:
    bench = Bench(make_task(), function=lambda *_: {"n": 1})
    bench.tasks.troubles = [None, UNREACHABLE, UnavailableError(), UNREACHABLE]
    bench.once()
    assert bench.tasks.said == ["running", "completed"]
    assert len(bench.hands.pauses) == 3


def test_a_report_is_given_up_when_the_lease_is_over() -> None:
    bench = Bench(make_task(), function=lambda *_: {"n": 1})
    bench.tasks.troubles = [None, *[UNREACHABLE] * 1_000]
    assert bench.once()
    assert bench.tasks.said == ["running"]
    assert bench.clock.now == pytest.approx(1_030)
    assert bench.tasks.released == []


def test_lost_task_is_not_changed() -> None:
    def work(task: TaskResponse, hold: LeaseState, resumed: bool) -> dict[str, int]:
        bench.clock.now += 31
        return {"n": 1}

    bench = Bench(make_task(), make_task(2), function=work, until_idle=True)
    assert bench.run() == 2
    assert bench.tasks.said == ["running", "running"]
    assert bench.tasks.released == []


def test_error_after_task_loss_does_not_fail_the_task(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def work(task: TaskResponse, hold: LeaseState, resumed: bool) -> None:
        hold.lose()
        hold.check()

    bench = Bench(make_task(), function=work)
    assert bench.once()
    assert bench.tasks.said == ["running"]
    assert "abandoned" in caplog.text
    assert "failed" not in caplog.text


@pytest.mark.parametrize("refusal", [FencedError(), MemoryAccessError(), ResourceNotFoundError()])
def test_a_report_that_is_refused_ends_the_matter(refusal: MemorywallError) -> None:
    bench = Bench(make_task(), function=lambda *_: {"n": 1})
    bench.tasks.troubles = [None, refusal]
    bench.tasks.current = make_task(assigned_agent="other", status=TaskStatus.RUNNING, version=9)
    assert bench.once()
    assert bench.tasks.said == ["running"]
    assert bench.tasks.released == []


def test_result_is_reported_when_another_client_changed_the_task() -> None:
    bench = Bench(make_task(), function=lambda *_: {"n": 1})
    bench.tasks.troubles = [None, ResourceConflictError()]
    bench.tasks.current = make_task(status=TaskStatus.RUNNING, version=11)
    bench.once()
    assert bench.tasks.updates[-1] == {"version": 11, "status": "completed", "output": {"n": 1}}


def test_a_conflict_that_cannot_be_looked_into_yet_does_not_lose_the_result() -> None:
    bench = Bench(make_task(), function=lambda *_: {"n": 1})
    bench.tasks.troubles = [None, ResourceConflictError()]
    bench.tasks.current = UnavailableError()
    bench.once()
    assert bench.tasks.updates[-1] == {"version": 4, "status": "completed", "output": {"n": 1}}
    assert len(bench.hands.pauses) == 1


@pytest.mark.parametrize("answer", [FencedError(), TransitionError(), ResourceConflictError()])
def test_a_report_whose_reply_was_lost_is_known_again(
    answer: MemorywallError, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(make_task(), function=lambda *_: {"n": 1})
    bench.tasks.troubles = [None, UNREACHABLE, answer]
    bench.tasks.current = make_task(status=TaskStatus.COMPLETED, version=5)
    caplog.set_level("INFO", "memorywall.worker")
    bench.once()
    assert "abandoned" not in caplog.text
    assert "task_1: completed" in caplog.text


def test_task_changed_by_another_client_is_released() -> None:
    bench = Bench(make_task(), function=lambda *_: {"n": 1})
    bench.tasks.troubles = [None, TransitionError()]
    bench.tasks.current = make_task(status=TaskStatus.BLOCKED, version=5)
    bench.once()
    assert bench.tasks.said == ["running"]
    assert bench.tasks.released == [("task_1", 7)]


# Stopping


def test_a_task_in_hand_goes_back_when_the_worker_stops() -> None:
    def work(*_: object) -> None:
        bench.gate.stopping = True
        with bench.gate.opened():
            raise AssertionError("it is stopping")

    bench = Bench(make_task(), make_task(2), function=work)
    assert bench.run() == 1
    assert bench.tasks.released == [("task_1", 7)]
    assert bench.tasks.said == ["running"]
    assert len(bench.tasks.waiting) == 1


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_a_task_in_hand_goes_back_when_the_program_ends(kind: type[BaseException]) -> None:
    def work(*_: object) -> None:
        raise kind

    bench = Bench(make_task(), function=work)
    with pytest.raises(kind):
        bench.run()
    assert bench.tasks.released == [("task_1", 7)]
    assert bench.hands.keeping == 0


def test_an_idle_worker_stops_at_once() -> None:
    def stop(times: int) -> None:
        if times == 3:
            raise WorkerStopped

    bench = Bench(function=nothing)
    bench.hands.after_idling = stop
    assert bench.run() == 0
    assert len(bench.hands.pauses) == 3


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ({"until_idle": True}, "after 2 tasks: no task left"),
        ({"max_tasks": 1}, "after 1 task: max_tasks is reached"),
        ({}, "after 2 tasks: stop() was called"),
    ],
)
def test_a_worker_tells_what_ended_it(
    plan: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(make_task(), make_task(2), function=nothing, **plan)
    bench.hands.after_idling = lambda times: bench.gate.stop()
    with caplog.at_level("INFO", "memorywall.worker"):
        bench.run()
    assert caplog.messages[-1] == f"worker stopped {reason}"
