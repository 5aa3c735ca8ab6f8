"""The loop of a worker over its tasks, written once for sync and async."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from memorywall.records.errors import (
    MemorywallError,
    ResourceConflictError,
    StorageFullError,
    UnavailableError,
    ValidationError,
    ValueTooLargeError,
)
from memorywall.records.task import TaskStatus
from memorywall.sdk.errors import MemoryTransportError
from memorywall.sdk.worker_context import TaskBlocked
from memorywall.sdk.worker_episode import EpisodeRecorder
from memorywall.sdk.worker_lease import (
    LEASE_LOST_ERRORS,
    InterruptGuard,
    LeaseState,
    Work,
    WorkerStopped,
    keep,
)
from memorywall.wire.tasks import TaskResponse

_SHORTEST_PAUSE = 0.05
_LONGEST_ERROR = 4_096
_PASSING = (MemoryTransportError, UnavailableError, StorageFullError)
_UNSENDABLE = (ValidationError, ValueTooLargeError, TypeError)
_log = logging.getLogger("memorywall.worker")


class TaskSource(Protocol):
    """The operations of `client.tasks` that a worker needs, sync or async."""

    @property
    def next(self) -> Callable[..., Any]: ...
    @property
    def get(self) -> Callable[..., Any]: ...
    @property
    def update(self) -> Callable[..., Any]: ...
    @property
    def renew(self) -> Callable[..., Any]: ...
    @property
    def release(self) -> Callable[..., Any]: ...


class WorkerRuntime(Protocol):
    """The operations that differ between sync and async. Each method returns a result or an
    awaitable."""

    def idle(self, seconds: float) -> Any:
        """Waits while there is nothing to do. Raises WorkerStopped if the worker must stop."""
        ...

    def pause(self, seconds: float) -> Any:
        """Waits, even if the worker must stop."""
        ...

    def call(
        self, task: TaskResponse, lease: LeaseState, resumed: bool, episode: EpisodeRecorder
    ) -> Any:
        """Runs the function. Raises its exceptions, and WorkerStopped if the worker must stop."""
        ...

    def start_keeping(self, work: Callable[[Callable[[float], Any]], Work[None]]) -> Any:
        """Starts `work` in the background with a wait function as its argument."""
        ...

    def stop_keeping(self) -> Any:
        """Ends the background work."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """The options of a run; see `TaskWorker.run`."""

    capabilities: tuple[str, ...] = ()
    intent_id: str | None = None
    poll_interval: float = 1.0
    lease_seconds: int = 30
    until_idle: bool = False
    max_tasks: int | None = None
    report_errors: bool = False


class TaskLost(Exception):
    """The worker has lost the task."""


class Loop:
    """Claims tasks, works on them, and reports the results."""

    def __init__(
        self,
        tasks: TaskSource,
        renewing: TaskSource,
        runtime: WorkerRuntime,
        guard: InterruptGuard,
        plan: RunOptions,
        clock: Callable[[], float],
    ) -> None:
        self._tasks = tasks
        self._renewing = renewing
        self._runtime = runtime
        self._guard = guard
        self._plan = plan
        self._clock = clock

    def run(self) -> Work[int]:
        """Works on one task after another until asked to stop; returns their number. Polls with
        growing pauses while there is no task. Reports the reason of the end."""
        plan, done, pause = self._plan, 0, _SHORTEST_PAUSE
        while (reason := self._reason_to_stop(done)) is None:
            try:
                found = yield from self.run_once()
            except _PASSING as error:
                if plan.until_idle:
                    raise
                _log.warning("no task could be asked for, which is tried again: %s", error)
                found = False
            if found:
                done, pause = done + 1, _SHORTEST_PAUSE
                continue
            if plan.until_idle:
                reason = "no task left"
                break
            try:
                yield partial(self._runtime.idle, min(pause, plan.poll_interval))
            except WorkerStopped:
                reason = self._guard.reason
                break
            pause = min(2 * pause, plan.poll_interval)
        _report(f"worker stopped after {done} {'task' if done == 1 else 'tasks'}: {reason}")
        return done

    def _reason_to_stop(self, done: int) -> str | None:
        if self._guard.stopping:
            return self._guard.reason
        if self._plan.max_tasks is not None and done >= self._plan.max_tasks:
            return "max_tasks is reached"
        return None

    def run_once(self) -> Work[bool]:
        """Works on one task, if there is one."""
        plan = self._plan
        asked_at = self._clock()
        claimed = yield partial(
            self._tasks.next,
            plan.capabilities,
            intent_id=plan.intent_id,
            lease_seconds=plan.lease_seconds,
        )
        if claimed is None:
            return False
        token = claimed.lease.fencing_token
        lease = LeaseState(token, plan.lease_seconds, asked_at, self._clock)
        yield from self._work_on(claimed.task, lease)
        return True

    def _work_on(self, task: TaskResponse, lease: LeaseState) -> Work[None]:
        renew = partial(
            self._renewing.renew,
            task.id,
            fencing_token=lease.token,
            duration_seconds=lease.seconds,
        )
        yield partial(self._runtime.start_keeping, partial(keep, lease, renew))
        try:
            yield from self._carry_through(task, lease)
        except TaskLost as reason:
            _log.warning("task %s is abandoned: %s", task.id, reason)
            yield from self._give_back(task, lease)
        except BaseException as error:
            yield from self._give_back(task, lease)
            if not isinstance(error, WorkerStopped):
                raise
        finally:
            # The context is unusable from here on, even if a reference to it remains.
            lease.lose()
            yield self._runtime.stop_keeping

    def _carry_through(self, task: TaskResponse, lease: LeaseState) -> Work[None]:
        resumed = was_worked_on(task)
        if task.status is not TaskStatus.RUNNING:
            task = yield from self._tell(task, lease, {"status": TaskStatus.RUNNING})
        _log.info("task %s: %s", task.id, "resumed" if resumed else "begun")
        episode = EpisodeRecorder()
        try:
            output = yield partial(self._runtime.call, task, lease, resumed, episode)
            outcome = _completed(output)
        except TaskBlocked as error:
            outcome = {"status": TaskStatus.BLOCKED, "blocked_reason": error.reason or None}
        except Exception as error:
            if lease.lost:
                raise TaskLost("its lease was lost meanwhile") from error
            outcome = self._failed(task, error)
        if episode.report and outcome["status"] is not TaskStatus.BLOCKED:
            outcome["episode"] = episode.report
        try:
            yield from self._tell(task, lease, outcome)
        except _UNSENDABLE as error:
            outcome = self._failed(task, error)
            yield from self._tell(task, lease, outcome)
        _log.info("task %s: %s", task.id, outcome["status"])
        if outcome["status"] is TaskStatus.BLOCKED:
            yield from self._give_back(task, lease)

    def _tell(
        self, task: TaskResponse, lease: LeaseState, fields: Mapping[str, Any]
    ) -> Work[TaskResponse]:
        """Reports the result, with repetitions while the lease lasts; returns the task
        afterwards."""
        pause = _SHORTEST_PAUSE
        while not lease.lost:
            try:
                updated: TaskResponse = yield partial(
                    self._tasks.update, task, fencing_token=lease.token, **fields
                )
                return updated
            except (ResourceConflictError, *LEASE_LOST_ERRORS) as error:
                current = yield from self._reread(task)
                if current is not None and _is_reported(current, task, fields["status"]):
                    # An earlier attempt ran, but its response was lost.
                    return current
                if isinstance(error, LEASE_LOST_ERRORS):
                    lease.lose()
                    raise TaskLost(str(error)) from error
                if current is not None:
                    if current.version == task.version or current.status is not task.status:
                        raise TaskLost(f"it has been made {current.status}") from error
                    # Another client has changed another field of the task.
                    task = current
                    continue
            except _PASSING as error:
                _log.warning("task %s: a report is tried again: %s", task.id, error)
            yield partial(self._runtime.pause, min(pause, lease.left))
            pause = min(2 * pause, max(self._plan.poll_interval, _SHORTEST_PAUSE))
        raise TaskLost("its lease was lost before it could be reported")

    def _reread(self, task: TaskResponse) -> Work[TaskResponse | None]:
        """Returns the current task, or None if it cannot be read."""
        try:
            current: TaskResponse = yield partial(self._tasks.get, task.id)
        except (*LEASE_LOST_ERRORS, *_PASSING):
            return None
        return current

    def _give_back(self, task: TaskResponse, lease: LeaseState) -> Work[None]:
        """Releases the task for other workers at once; otherwise the task is ready after the lease
        expires."""
        if lease.lost:
            return
        try:
            yield partial(self._tasks.release, task.id, fencing_token=lease.token)
        except MemorywallError as error:
            _log.warning("task %s could not be given back: %s", task.id, error)
        else:
            _log.info("task %s: given back", task.id)

    def _failed(self, task: TaskResponse, error: Exception) -> dict[str, Any]:
        _log.error("task %s failed", task.id, exc_info=error)
        # The text may contain data that only this agent may read; the task has more readers.
        text = str(error) if self._plan.report_errors else "see the worker's log"
        message = f"{type(error).__name__}: {text}"[:_LONGEST_ERROR]
        return {"status": TaskStatus.FAILED, "error": message}


def _report(text: str) -> None:
    """Logs the end of a worker, or prints it on standard error in a program without logging, where
    the worker would end without a word."""
    if _log.hasHandlers():
        _log.info(text)
    else:
        print(text, file=sys.stderr)


def was_worked_on(task: TaskResponse) -> bool:
    """Returns whether an agent worked on this task before the current claim."""
    earlier = task.assignments[:-1]
    return task.started_at is not None or any(one.accepted_at is not None for one in earlier)


def _completed(output: object) -> dict[str, Any]:
    if output is None:
        return {"status": TaskStatus.COMPLETED}
    if not isinstance(output, Mapping):
        kind = type(output).__name__
        raise TypeError(f"a Worker's function returns a dict or None, and this one a {kind}")
    return {"status": TaskStatus.COMPLETED, "output": dict(output)}


def _is_reported(current: TaskResponse, task: TaskResponse, status: TaskStatus) -> bool:
    mine = current.assigned_agent == task.assigned_agent
    return mine and current.status is status is not task.status
