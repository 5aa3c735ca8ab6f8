"""An event loop in its own thread, with a store open on it, for sync clients."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from memorywall.assembly import (
    LocalAuthenticator,
    for_calling_threads,
    open_index,
    open_memory,
)
from memorywall.jobs.end_sessions import END_SESSIONS_JOB
from memorywall.jobs.job_runner import run_everywhere
from memorywall.operations.table import FUNCTIONS
from memorywall.records.errors import StoreLockedError
from memorywall.records.forks import ProcessBound
from memorywall.sdk.errors import MemoryTransportError
from memorywall.server.scheduler import run_jobs
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.operation_runner import OperationRunner
from memorywall.settings import DEFAULT_TENANT, Settings

_GRACE_SECONDS = 5.0
_EXIT_SECONDS = 10.0
Result = TypeVar("Result")
_log = logging.getLogger("memorywall.scheduler")


@dataclass(frozen=True, slots=True)
class OpenedMemory:
    """An open store and its operation runners.

    runner: for callers on the event loop
    calling_runner: for callers in threads without an event loop, if the store supports it
    stopping: set when endless streams must end
    """

    runner: OperationRunner
    calling_runner: OperationRunner | None
    authenticator: LocalAuthenticator
    stopping: asyncio.Event


@asynccontextmanager
async def opened_memory(settings: Settings, agent: str) -> AsyncIterator[OpenedMemory]:
    """Opens the store of the settings, with its jobs, for the duration of the context.

    agent: the administrator of the tenant; the default agent
    """
    async with (
        open_memory(settings) as service,
        open_index(settings, service) as index,
        run_jobs(service, index),
    ):
        calling = for_calling_threads(service)
        opened = OpenedMemory(
            runner=OperationRunner(service, FUNCTIONS, index),
            calling_runner=None if calling is None else OperationRunner(calling, FUNCTIONS, index),
            authenticator=LocalAuthenticator(DEFAULT_TENANT, agent),
            stopping=asyncio.Event(),
        )
        try:
            yield opened
        finally:
            opened.stopping.set()
            await _summarize_waiting(service)


async def _summarize_waiting(service: SharedServices) -> None:
    """Summarizes the sessions that wait for it, without a model: a short process never reaches the
    interval of the job."""
    spec = replace(END_SESSIONS_JOB, prepare=None)
    try:
        await run_everywhere(service, spec, early=True)
    except Exception as error:
        _log.warning("job failed", extra={"job": spec.name, "error": type(error).__name__})


class Host(ProcessBound):
    """Opens a store on an event loop in its own thread.

    The thread is a daemon: a program that does not close its client still exits, as if the process
    were killed. Acknowledged writes are on disk.
    """

    def __init__(self, settings: Settings, agent: str) -> None:
        super().__init__()
        self._settings = settings
        self._agent = agent
        # Reentrant, because the garbage collector may close this during a call.
        self._lock = threading.RLock()
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._opened: concurrent.futures.Future[OpenedMemory] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._run, name="memorywall-local", daemon=True)
        self._thread.start()
        self.memory = self._opened.result()

    def call(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Runs a coroutine on the loop and waits for its result. Raises MemoryTransportError if the
        store is closed before there is a result, and StoreLockedError in a forked process."""
        check_owner(self)
        with self._lock:
            if self._closed:
                raise MemoryTransportError("the store is closed", sent=False)
            future = asyncio.run_coroutine_threadsafe(work(), self._loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise MemoryTransportError("the store was closed before it answered") from None
        except BaseException:
            future.cancel()
            raise

    def dismiss(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs a coroutine on the loop without waiting for it, unless the store is closed."""
        if self.is_inherited:
            return
        with self._lock:
            if not self._closed:
                asyncio.run_coroutine_threadsafe(work(), self._loop)

    def close(self) -> None:
        """Waits for running calls, and closes the store. A forked process leaves it open."""
        if self.is_inherited:
            return
        with self._lock:
            first, self._closed = not self._closed, True
            if first and self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._stop.set)
        # The garbage collector may call this in any thread, including the loop's own.
        if threading.current_thread() is not self._thread:
            self._thread.join(_EXIT_SECONDS)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        try:
            async with opened_memory(self._settings, self._agent) as memory:
                self._opened.set_result(memory)
                standing = asyncio.all_tasks()
                await self._stop.wait()
                memory.stopping.set()
                await _finish(asyncio.all_tasks() - standing)
        except BaseException as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)


def check_owner(opened: ProcessBound) -> None:
    """Raises StoreLockedError in a forked process, which must not use the store of its parent."""
    if opened.is_inherited:
        raise StoreLockedError(
            "the process that forked this one has the store open; open it after the fork and close"
            " it before, or use Client(url) with a server"
        )


async def _finish(under_way: set[asyncio.Task[Any]]) -> None:
    """Waits for running calls for a while, then cancels the remaining ones."""
    if not under_way:
        return
    _, late = await asyncio.wait(under_way, timeout=_GRACE_SECONDS)
    for task in late:
        task.cancel()
    if late:
        await asyncio.wait(late, timeout=_GRACE_SECONDS)
