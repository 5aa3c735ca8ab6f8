"""Workers: functions that are called for one task after another (RFC-0015 "Worker Context").

    from memorywall import Worker

    @Worker(capabilities=["billing"])
    def process_invoices(ctx):
        progress = ctx.memory.get("invoice_processing", "batch_progress")
        ...

    process_invoices.run()

The worker holds a lease on the task and renews the lease at half of its time while the function
runs. The return value, a dict or None, becomes the task's output and completes the task; an
exception fails the task. When a worker dies, its lease expires, and the next worker of the task
reads the stored working memory from `ctx.memory`. A worker that has lost its lease cannot write,
because both the client and the server refuse its writes, and does not change the task.

A worker polls for tasks. While there are none, the pauses double from 0.05 seconds to
`poll_interval`. At the longest default pause this is one request a second, each a look-up in one
index, which costs less than an open stream per idle worker.
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
from memorywall.sdk.values import checked_list
from memorywall.sdk.worker_context import AsyncTaskContext, TaskContext
from memorywall.sdk.worker_lease import InterruptGuard, WorkerStopped, run_awaiting, run_blocking
from memorywall.sdk.worker_loop import Loop, RunOptions
from memorywall.sdk.worker_runtime import AsyncRuntime, SyncRuntime

Function: TypeAlias = Callable[[TaskContext], Any]
AsyncFunction: TypeAlias = Callable[[AsyncTaskContext], Awaitable[Any]]


_STOP_SIGNALS: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class RunArguments(TypedDict, total=False):
    """Options of a run.

    intent_id: claim only tasks of this intent
    poll_interval: the longest pause between two polls, in seconds; default 1
    lease_seconds: the duration of a task lease without renewal; default 30
    until_idle: stop when there is no task
    max_tasks: stop after this number of tasks
    """

    intent_id: str | None
    poll_interval: float
    lease_seconds: int
    until_idle: bool
    max_tasks: int | None


class BareWorker:
    """The properties that sync and async workers share.

    capabilities: the worker claims tasks that require no other capabilities
    report_errors: whether a failed task contains the text of the exception besides its type
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
        """Stops the worker permanently. May be called from any thread or signal handler.

        A running write to `ctx.memory` completes. The function is interrupted after that write or
        at the next use of `ctx.memory`; an `async` function is also interrupted at any await. The
        task is then released and can be claimed at once. A function that reaches no such point
        finishes its task. SIGTERM and the first Ctrl-C have the same effect on `run` in the main
        thread, and interrupt the function at any point. A second Ctrl-C raises KeyboardInterrupt.
        """
        self._stop(None)

    def _stop(self, reason: str | None) -> None:
        self._stopped = True
        for run in tuple(self._runs):
            run.stop(reason)

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
    """A function that works on tasks. The function can still be called directly, with a context."""

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
        """Works on one task after another until `stop`, SIGTERM or Ctrl-C. Returns the number of
        tasks. The log `memorywall.worker` tells what ended the worker; in a program without logging
        the line is printed on standard error.

        url, api_key: default: MEMORYWALL_URL and MEMORYWALL_API_KEY
        agent: the agent to act as, for a key with `act_as`
        client: a client to use instead; it stays open

        The options are `intent_id`, `poll_interval`, `lease_seconds`, `until_idle` and `max_tasks`:
        see `memorywall.sdk.worker.Options`.
        """
        plan = self._plan(options)
        with ExitStack() as stack:
            renewing = client
            if client is None or renewing is None:
                client = stack.enter_context(Client(url, api_key, agent=agent))
                # A renewal that hangs must time out while there is time for another attempt.
                patience = max(1.0, plan.lease_seconds / 6)
                renewing = stack.enter_context(Client(url, api_key, agent=agent, timeout=patience))
            guard = InterruptGuard()
            runtime = SyncRuntime(self._function, client, guard)
            stack.enter_context(self._running(runtime))
            stack.enter_context(self._handling_signals(guard))
            loop = Loop(client.tasks, renewing.tasks, runtime, guard, plan, client.driver.clock)
            return run_blocking(loop.run())

    def run_once(self, client: Client, **options: Unpack[RunArguments]) -> bool:
        """Works on one task. Returns whether there was one."""
        guard = InterruptGuard()
        runtime = SyncRuntime(self._function, client, guard)
        with self._running(runtime):
            plan = self._plan(options)
            loop = Loop(client.tasks, client.tasks, runtime, guard, plan, client.driver.clock)
            return run_blocking(loop.run_once())

    @contextmanager
    def _handling_signals(self, guard: InterruptGuard) -> Iterator[None]:
        def stop(number: int, frame: object) -> None:
            # This code takes no lock, because the interrupted thread may hold it.
            guard.stop(_STOP_SIGNALS[number])
            self._stopped = True
            if number == signal.SIGINT:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            if guard.is_open:
                raise WorkerStopped

        before = {number: signal.signal(number, stop) for number in _handled_signals()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)


class AsyncTaskWorker(BareWorker):
    """An `async` function that works on tasks. The function can still be called directly, with a
    context."""

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
        """Runs `run_async` in a new event loop; see `TaskWorker.run`."""
        # The event loop replaces the handler of SIGINT, so this is read before it runs.
        numbers = _handled_signals()

        async def work() -> int:
            loop = asyncio.get_running_loop()

            def stop(number: int) -> None:
                if number == signal.SIGINT:
                    loop.remove_signal_handler(number)
                self._stop(_STOP_SIGNALS[number])

            # Signal handlers of event loops are unavailable on some platforms.
            with suppress(NotImplementedError):
                for number in numbers:
                    loop.add_signal_handler(number, stop, number)
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
        """Works on one task after another until `stop` or cancellation; see `TaskWorker.run`."""
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
            loop = Loop(client.tasks, renewing.tasks, runtime, guard, plan, client.driver.clock)
            return await run_awaiting(loop.run())

    async def run_once(self, client: AsyncClient, **options: Unpack[RunArguments]) -> bool:
        """Works on one task. Returns whether there was one."""
        guard = InterruptGuard()
        runtime = AsyncRuntime(self._function, client, guard)
        with self._running(runtime):
            plan = self._plan(options)
            loop = Loop(client.tasks, client.tasks, runtime, guard, plan, client.driver.clock)
            return await run_awaiting(loop.run_once())


def _handled_signals() -> list[int]:
    """The signals that stop a worker in this thread. A program's own handler of SIGINT stays."""
    if threading.current_thread() is not threading.main_thread():
        return []
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        return [signal.SIGTERM, signal.SIGINT]
    return [signal.SIGTERM]


class Worker:
    """Decorates a function as a worker; see `memorywall.sdk.worker`.

    capabilities: the worker claims tasks that require no other capabilities
    report_errors: whether a failed task contains the text of the exception, which all readers of
        the intent can read, or only its type
    """

    def __init__(self, capabilities: Iterable[str] = (), *, report_errors: bool = False) -> None:
        if callable(capabilities):
            raise TypeError("write `@Worker(capabilities=[...])`, or `@Worker()` for none")
        self._capabilities = tuple(checked_list("capabilities", capabilities))
        self._report_errors = report_errors

    @overload
    def __call__(self, function: AsyncFunction) -> AsyncTaskWorker: ...

    @overload
    def __call__(self, function: Function) -> TaskWorker: ...

    def __call__(self, function: Any) -> AsyncTaskWorker | TaskWorker:
        kind = AsyncTaskWorker if inspect.iscoroutinefunction(function) else TaskWorker
        return kind(function, self._capabilities, self._report_errors)
