"""A running step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from memorywall.records.errors import MemorywallError
from memorywall.sdk.client import Client
from memorywall.sdk.executors import steady_clock
from memorywall.sdk.tasks import TasksClient
from memorywall.sdk.worker_context import TaskContext
from memorywall.sdk.worker_lease import InterruptGuard, run_blocking
from memorywall.sdk.worker_loop import Loop, RunOptions
from memorywall.sdk.worker_runtime import SyncRuntime
from memorywall.wire.tasks import ClaimedTaskResponse
from memorywall.workflow_execution.functions import StepError, StepFunction
from memorywall.workflow_execution.results import StepOutcome, format_names

LEASE_SECONDS = 60
_STOPPED_WITHIN = 5.0
_SIGNAL_WITHIN = 0.5
"""Seconds after which an interruption of the program is noticed at the latest."""


class _OneTask:
    """`client.tasks` with a fixed next task."""

    def __init__(self, tasks: TasksClient, task_id: str) -> None:
        self.get: Callable[..., Any] = tasks.get
        self.update: Callable[..., Any] = tasks.update
        self.renew: Callable[..., Any] = tasks.renew
        self.release: Callable[..., Any] = tasks.release
        self._claim = partial(tasks.claim, task_id)

    def next(
        self, capabilities: Sequence[str], *, lease_seconds: int, **_: Any
    ) -> ClaimedTaskResponse:
        """Claims the task."""
        return self._claim(lease_seconds)


class StepRun:
    """A step whose function runs in a thread of its own, under the lease of the step's task.

    A step with sub-steps stays open after its function has returned, until the sub-steps have
    ended. Meanwhile its lease is renewed, and the sub-steps can inherit its working memory.
    """

    def __init__(
        self, name: str, task_id: str, function: StepFunction, client: Client, *, has_parts: bool
    ) -> None:
        self._function = function
        self._has_parts = has_parts
        self._parts: list[StepOutcome] = []
        self._is_open = False
        self._begun = threading.Event()
        self._released = threading.Event()
        self._error: BaseException | None = None
        gate = InterruptGuard()
        self._gate = gate
        self._hands = SyncRuntime(self._work, client, gate)
        tasks = _OneTask(client.tasks, task_id)
        plan = RunOptions(lease_seconds=LEASE_SECONDS, report_errors=True)
        self._loop = Loop(tasks, client.tasks, self._hands, gate, plan, steady_clock)
        # A daemon thread, because a function that ignores a stop must not block the exit.
        self._thread = threading.Thread(target=self._run, name=f"workflow-{name}", daemon=True)

    def begin(self) -> bool:
        """Runs the function. Returns whether the step is open afterwards, so that its sub-steps can
        begin."""
        self._thread.start()
        # A signal that arrives just before a wait does not end it, so that no wait is long.
        while not self._begun.wait(_SIGNAL_WITHIN):
            pass
        return self._is_open

    def end(self, parts: Sequence[StepOutcome] = ()) -> str | None:
        """Ends the step, which is completed only if its sub-steps are. Returns the reason of a
        failure that the task does not contain, None otherwise."""
        self._parts.extend(parts)
        self._released.set()
        while self._thread.is_alive():
            self._thread.join(_SIGNAL_WITHIN)
        if self._error is None:
            return None
        if not isinstance(self._error, MemorywallError):
            raise self._error
        return self._error.detail

    def stop(self) -> None:
        """Asks the function to stop at the next use of its context, like a Worker."""
        self._hands.stop()
        self._released.set()

    def wait(self) -> None:
        """Waits a short time for the function to end after `stop`."""
        if self._thread.is_alive():
            self._thread.join(_STOPPED_WITHIN)

    def _run(self) -> None:
        try:
            run_blocking(self._loop.run_once())
        except BaseException as error:
            self._error = error
        finally:
            self._begun.set()

    def _work(self, ctx: TaskContext) -> Any:
        result = self._function(ctx)
        if not self._has_parts:
            return result
        self._is_open = True
        self._begun.set()
        self._released.wait()
        self._gate.check()
        failed = [part for part in self._parts if not part.completed]
        if not failed:
            return result
        names = format_names(part.step for part in failed)
        if any(part.is_terminal for part in failed):
            raise StepError(f"not completed: {names}")
        raise ctx.blocked(f"not completed: {names}")
