"""Workers: functions that are called with one task after the other (RFC-0015 "Worker Context").

    from memorywall import Worker

    @Worker(capabilities=["billing"])
    def process_invoices(ctx):
        progress = ctx.memory.get("invoice_processing", "batch_progress")
        ...

    process_invoices.run()

The function's task is held by a lease that is renewed at half its time while the function runs.
What it returns, a dict or None, becomes the task's output and completes it; an exception fails
it. When the worker dies its lease runs out; whoever takes the task up then finds in `ctx.memory`
what was kept for it. A worker that loses its lease cannot write any more, neither by its own
judgement nor by the server's, and leaves the task alone.

A worker asks for tasks again and again, with pauses that double from 0.05 seconds to
`poll_interval` while there are none: at most a request a second, each a look at one index, which
is cheaper for both sides than a stream kept open by every idle worker.
"""

from __future__ import annotations

import asyncio
import inspect
import signal
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from functools import update_wrapper
from typing import Any, TypeAlias, TypedDict, Unpack, cast, overload

from memorywall.sdk.client import AsyncClient, Client
from memorywall.sdk.worker_context import AsyncTaskContext, TaskContext
from memorywall.sdk.worker_lease import InterruptGuard, WorkerStopped, run_awaiting, run_blocking
from memorywall.sdk.worker_loop import Loop, RunOptions
from memorywall.sdk.worker_runtime import AsyncRuntime, SyncRuntime

Function: TypeAlias = Callable[[TaskContext], Any]
AsyncFunction: TypeAlias = Callable[[AsyncTaskContext], Awaitable[Any]]


class RunArguments(TypedDict, total=False):
    """How a worker runs.

    intent_id: only tasks of this intent
    poll_interval: the longest pause between two questions for a task, in seconds; 1 if left out
    lease_seconds: how long a task is held after the worker's last sign of life; 30 if left out
    until_idle: stop when there is no task
    max_tasks: stop after so many
    """

    intent_id: str | None
    poll_interval: float
    lease_seconds: int
    until_idle: bool
    max_tasks: int | None


class BareWorker:
    """What a worker of either colour is.

    capabilities: what it can do; it takes tasks that require nothing else
    report_errors: whether the text of an exception goes into the task, besides its type
    """

    def __init__(
        self, function: Callable[..., Any], capabilities: tuple[str, ...], report_errors: bool
    ) -> None:
        self.capabilities = capabilities
        self.report_errors = report_errors
        self._runs: set[SyncRuntime | AsyncRuntime] = set()
        self._stopped = False
        update_wrapper(cast(Any, self), function)

    def stop(self) -> None:
        """Stops it for good, from any thread or signal handler.

        A write to `ctx.memory` that is under way is finished; then, or at its next use, and an
        `async` function wherever it waits, the function is interrupted, and its task given back to
        be taken up at once. A function that never gets there finishes its task. SIGTERM does the
        same to `run` in the main thread, where it interrupts a function at whatever it is doing.
        """
        self._stopped = True
        for run in tuple(self._runs):
            run.stop()

    @contextmanager
    def _running(self, runtime: SyncRuntime | AsyncRuntime) -> Iterator[None]:
        self._runs.add(runtime)
        if self._stopped:
            runtime.stop()
        try:
            yield
        finally:
            self._runs.discard(runtime)

    def _plan(self, options: RunArguments) -> RunOptions:
        return RunOptions(
            capabilities=self.capabilities, report_errors=self.report_errors, **options
        )


class TaskWorker(BareWorker):
    """A function that works on tasks. It can still be called, with a context."""

    def __init__(
        self, function: Function, capabilities: tuple[str, ...], report_errors: bool
    ) -> None:
        super().__init__(function, capabilities, report_errors)
        self._function = function

    def __call__(self, ctx: TaskContext) -> Any:
        return self._function(ctx)

    def run(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        agent: str | None = None,
        client: Client | None = None,
        **options: Unpack[RunArguments],
    ) -> int:
        """Works on one task after the other, until `stop`, SIGTERM or Ctrl-C; returns on how many.

        url, api_key: MEMORYWALL_URL and MEMORYWALL_API_KEY when left out
        agent: the agent to work as, for a key that may act as others
        client: use this one instead, and leave it open
        The options are `intent_id`, `poll_interval`, `lease_seconds`, `until_idle` and
        `max_tasks`: see `memorywall.sdk.worker.Options`.
        """
        plan = self._plan(options)
        with ExitStack() as stack:
            renewing = client
            if client is None or renewing is None:
                client = stack.enter_context(Client(url, api_key, agent=agent))
                # A renewal that hangs has to be given up while there is time for another.
                patience = max(1.0, plan.lease_seconds / 6)
                renewing = stack.enter_context(Client(url, api_key, agent=agent, timeout=patience))
            guard = InterruptGuard()
            runtime = SyncRuntime(self._function, client, guard)
            stack.enter_context(self._running(runtime))
            stack.enter_context(self._handling_sigterm(guard))
            loop = Loop(client.tasks, renewing.tasks, runtime, guard, plan, client._executor.clock)
            return run_blocking(loop.run())

    def run_once(self, client: Client, **options: Unpack[RunArguments]) -> bool:
        """Works on one task, and says whether there was one."""
        guard = InterruptGuard()
        runtime = SyncRuntime(self._function, client, guard)
        with self._running(runtime):
            plan = self._plan(options)
            loop = Loop(client.tasks, client.tasks, runtime, guard, plan, client._executor.clock)
            return run_blocking(loop.run_once())

    @contextmanager
    def _handling_sigterm(self, guard: InterruptGuard) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: object) -> None:
            # No lock is taken here: the thread that is interrupted may hold it.
            self._stopped = guard.stopping = True
            if guard.is_open:
                raise WorkerStopped

        before = signal.signal(signal.SIGTERM, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


class AsyncTaskWorker(BareWorker):
    """An `async` function that works on tasks. It can still be called, with a context."""

    def __init__(
        self, function: AsyncFunction, capabilities: tuple[str, ...], report_errors: bool
    ) -> None:
        super().__init__(function, capabilities, report_errors)
        self._function = function

    def __call__(self, ctx: AsyncTaskContext) -> Awaitable[Any]:
        return self._function(ctx)

    def run(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        agent: str | None = None,
        **options: Unpack[RunArguments],
    ) -> int:
        """`run_async` in an event loop of its own; see `TaskWorker.run`."""

        async def work() -> int:
            loop = asyncio.get_running_loop()
            # Not everywhere, and not in every thread, can a loop hear signals.
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(signal.SIGTERM, self.stop)
            return await self.run_async(url, api_key, agent=agent, **options)

        return asyncio.run(work())

    async def run_async(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        agent: str | None = None,
        client: AsyncClient | None = None,
        **options: Unpack[RunArguments],
    ) -> int:
        """Works on one task after the other, until `stop` or until it is cancelled; see
        `TaskWorker.run`."""
        plan = self._plan(options)
        async with AsyncExitStack() as stack:
            renewing = client
            if client is None or renewing is None:
                client = await stack.enter_async_context(AsyncClient(url, api_key, agent=agent))
                patience = max(1.0, plan.lease_seconds / 6)
                renewing = await stack.enter_async_context(
                    AsyncClient(url, api_key, agent=agent, timeout=patience)
                )
            guard = InterruptGuard()
            runtime = AsyncRuntime(self._function, client, guard)
            stack.enter_context(self._running(runtime))
            loop = Loop(client.tasks, renewing.tasks, runtime, guard, plan, client._executor.clock)
            return await run_awaiting(loop.run())

    async def run_once(self, client: AsyncClient, **options: Unpack[RunArguments]) -> bool:
        """Works on one task, and says whether there was one."""
        guard = InterruptGuard()
        runtime = AsyncRuntime(self._function, client, guard)
        with self._running(runtime):
            plan = self._plan(options)
            loop = Loop(client.tasks, client.tasks, runtime, guard, plan, client._executor.clock)
            return await run_awaiting(loop.run_once())


class Worker:
    """Makes a worker of the function it decorates; see `memorywall.sdk.worker`.

    capabilities: what the function can do; it is given tasks that require nothing else
    report_errors: whether the text of an exception goes into the task, where everybody reads it
        who may read the intent; otherwise only its type does
    """

    def __init__(self, capabilities: Iterable[str] = (), *, report_errors: bool = False) -> None:
        if callable(capabilities):
            raise TypeError("write `@Worker(capabilities=[...])`, or `@Worker()` for none")
        names = (capabilities,) if isinstance(capabilities, str) else tuple(capabilities)
        self._capabilities = names
        self._report_errors = report_errors

    @overload
    def __call__(self, function: AsyncFunction) -> AsyncTaskWorker: ...

    @overload
    def __call__(self, function: Function) -> TaskWorker: ...

    def __call__(self, function: Any) -> AsyncTaskWorker | TaskWorker:
        kind = AsyncTaskWorker if inspect.iscoroutinefunction(function) else TaskWorker
        return kind(function, self._capabilities, self._report_errors)
