"""The sync and async runtimes of a worker: waiting, running the function, renewing the lease."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from memorywall.sdk.client import AsyncClient, Client
from memorywall.sdk.worker_context import AsyncTaskContext, TaskContext
from memorywall.sdk.worker_episode import EpisodeRecorder
from memorywall.sdk.worker_lease import (
    InterruptGuard,
    LeaseState,
    Work,
    WorkerStopped,
    run_awaiting,
    run_blocking,
)
from memorywall.wire.tasks import TaskResponse

_KEEPER_ENDS_WITHIN = 5.0


class SyncRuntime:
    """Runs everything in the calling thread, except the lease renewal, which has its own thread."""

    def __init__(
        self, function: Callable[[TaskContext], Any], client: Client, guard: InterruptGuard
    ) -> None:
        self._function = function
        self._client = client
        self._guard = guard
        self._woken = threading.Event()
        self._done = threading.Event()
        self._keeper: threading.Thread | None = None

    def stop(self, reason: str | None = None) -> None:
        """Asks the worker to stop. May be called from any thread.

        reason: the reason in the log; default: a call of `stop`
        """
        self._guard.stop(reason)
        self._woken.set()

    def idle(self, seconds: float) -> None:
        with self._guard.opened():
            self._woken.wait(seconds)
            self._guard.check()

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def call(
        self, task: TaskResponse, lease: LeaseState, resumed: bool, episode: EpisodeRecorder
    ) -> Any:
        context = TaskContext(
            self._client, task, lease, self._guard, resumed=resumed, episode=episode
        )
        with self._guard.opened():
            return self._function(context)

    def start_keeping(self, work: Callable[[Callable[[float], Any]], Work[None]]) -> None:
        self._done = threading.Event()
        self._keeper = threading.Thread(
            target=run_blocking,
            args=(work(self._done.wait),),
            name="memorywall-lease",
            daemon=True,
        )
        self._keeper.start()

    def stop_keeping(self) -> None:
        self._done.set()
        if self._keeper is not None:
            # A thread that waits for a response ends by itself; the response has no effect.
            self._keeper.join(_KEEPER_ENDS_WITHIN)


class AsyncRuntime:
    """Runs everything in one event loop; an asyncio task renews the lease."""

    def __init__(
        self,
        function: Callable[[AsyncTaskContext], Awaitable[Any]],
        client: AsyncClient,
        guard: InterruptGuard,
    ) -> None:
        self._function = function
        self._client = client
        self._guard = guard
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._running: asyncio.Task[Any] | None = None
        self._keeper: asyncio.Task[None] | None = None

    def stop(self, reason: str | None = None) -> None:
        """Asks the worker to stop. May be called from any thread.

        reason: the reason in the log; default: a call of `stop`
        """
        self._guard.stop(reason)
        # A closed loop has already stopped.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._interrupt)

    def _interrupt(self) -> None:
        self._woken.set()
        if self._running is not None and self._guard.is_open:
            self._running.cancel()

    async def idle(self, seconds: float) -> None:
        self._guard.check()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._guard.check()

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def call(
        self, task: TaskResponse, lease: LeaseState, resumed: bool, episode: EpisodeRecorder
    ) -> Any:
        context = AsyncTaskContext(
            self._client, task, lease, self._guard, resumed=resumed, episode=episode
        )

        async def run() -> Any:
            return await self._function(context)

        with self._guard.opened():
            self._running = asyncio.create_task(run())
            try:
                return await self._running
            except asyncio.CancelledError:
                around = asyncio.current_task()
                if around is not None and around.cancelling():
                    raise
                if self._guard.stopping:
                    raise WorkerStopped from None
                raise RuntimeError("the function was cancelled from within") from None
            finally:
                self._running = None

    async def start_keeping(self, work: Callable[[Callable[[float], Any]], Work[None]]) -> None:
        self._keeper = asyncio.create_task(run_awaiting(work(asyncio.sleep)))

    async def stop_keeping(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
