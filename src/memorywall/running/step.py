"""One step under way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from memorywall.records.errors import MemorywallError
from memorywall.running.functions import StepError, StepFunction
from memorywall.running.outcome import StepOutcome, listed
from memorywall.sdk.client import Client
from memorywall.sdk.drivers import steady_clock
from memorywall.sdk.groups import Tasks
from memorywall.sdk.worker_context import TaskContext
from memorywall.sdk.worker_hands import BlockingHands
from memorywall.sdk.worker_hold import Gate, run_blocking
from memorywall.sdk.worker_loop import Loop, Plan
from memorywall.wire.work import TakenTask

LEASE_SECONDS = 60
_STOPPED_WITHIN = 5.0


class _OneTask:
    """`client.tasks`, where the next task is a certain one."""

    def __init__(self, tasks: Tasks, task_id: str) -> None:
        self.get: Callable[..., Any] = tasks.get
        self.update: Callable[..., Any] = tasks.update
        self.renew: Callable[..., Any] = tasks.renew
        self.release: Callable[..., Any] = tasks.release
        self._claim = partial(tasks.claim, task_id)

    def next(self, capabilities: Sequence[str], *, lease_seconds: int, **_: Any) -> TakenTask:
        """Takes the task up."""
        return self._claim(lease_seconds)


class StepAtWork:
    """A step whose function runs in a thread of its own, under the lease of the step's task.

    A step that has sub-steps stays open after its function has returned: its lease is renewed and
    its working memory is there, for them to inherit, until it is told that they have ended.
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
        gate = Gate()
        self._gate = gate
        self._hands = BlockingHands(self._work, client, gate)
        tasks = _OneTask(client.tasks, task_id)
        plan = Plan(lease_seconds=LEASE_SECONDS, report_errors=True)
        self._loop = Loop(tasks, client.tasks, self._hands, gate, plan, steady_clock)
        # A daemon, because a function that does not heed a stop must not keep the program.
        self._thread = threading.Thread(target=self._run, name=f"workflow-{name}", daemon=True)

    def begin(self) -> bool:
        """Runs the function to its end. Returns whether the step is open then: its function has
        done its part, and the sub-steps can begin."""
        self._thread.start()
        self._begun.wait()
        return self._is_open

    def end(self, parts: Sequence[StepOutcome] = ()) -> str | None:
        """Lets the step end, which it does well only if its parts did. Returns what went wrong
        where its task cannot tell."""
        self._parts.extend(parts)
        self._released.set()
        self._thread.join()
        if self._error is None:
            return None
        if not isinstance(self._error, MemorywallError):
            raise self._error
        return self._error.detail

    def stop(self) -> None:
        """Asks the function to stop, as a Worker's does: at its next use of its context."""
        self._hands.stop()
        self._released.set()

    def wait(self) -> None:
        """After `stop`: gives the function a little time to be interrupted."""
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
        names = listed(part.step for part in failed)
        if any(part.is_over for part in failed):
            raise StepError(f"not completed: {names}")
        raise ctx.blocked(f"not completed: {names}")
