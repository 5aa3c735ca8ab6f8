"""Hosts, which have a store open: for sync clients on an event loop in a thread of its own, for
async clients on the loop that they use."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

from memorywall.assembly import (
    for_calling_threads,
    open_index,
    open_memory,
)
from memorywall.jobs.end_sessions import END_SESSIONS_JOB
from memorywall.jobs.job_runner import run_everywhere
from memorywall.openwop.table import FUNCTIONS
from memorywall.recall.index import Index
from memorywall.records.errors import StoreLockedError
from memorywall.records.forks import FORK_LOCK, ProcessBound
from memorywall.sdk.errors import MemoryTransportError
from memorywall.server.scheduler import run_jobs
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.operation_runner import OperationRunner
from memorywall.settings import Settings

_GRACE_SECONDS = 5.0
_EXIT_SECONDS = 10.0
_ANOTHER_LOOP = "a client of `open_async` works on the event loop only that opened it"
Result = TypeVar("Result")
_log = logging.getLogger("memorywall.scheduler")


@dataclass(frozen=True, slots=True)
class OpenedMemory:
    """An open store and its operation runners.

    runner: for callers on the event loop
    calling_runner: for callers in threads without an event loop, if the store supports it
    index: the search index of both
    stopping: set when endless streams must end
    """

    runner: OperationRunner
    calling_runner: OperationRunner | None
    index: Index
    stopping: asyncio.Event


@asynccontextmanager
async def opened_memory(settings: Settings) -> AsyncIterator[OpenedMemory]:
    """Opens the store of the settings, with its jobs, for the duration of the context."""
    async with (
        open_memory(settings) as service,
        open_index(settings, service) as index,
        run_jobs(service, index),
    ):
        calling = for_calling_threads(service)
        opened = OpenedMemory(
            runner=OperationRunner(service, FUNCTIONS, index),
            calling_runner=None if calling is None else OperationRunner(calling, FUNCTIONS, index),
            index=index,
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


def _do_nothing() -> None: ...


class SharedHost(ProcessBound):
    """Has a store open for the clients that share it.

    on_close: is called when the store is closed; default: nothing
    users: the number of clients that use the host, of which the first has created it
    """

    def __init__(self, settings: Settings, on_close: Callable[[], object] = _do_nothing) -> None:
        super().__init__()
        self.settings = settings
        self.users = 1
        self._on_close = on_close

    @property
    @abstractmethod
    def is_closed(self) -> bool:
        """Whether the store is closed, or begins to close."""

    @abstractmethod
    def close(self) -> None:
        """Closes the store. May be called from any thread, and for an async host does not wait."""

    def release(self) -> bool:
        """Gives up the use of one client. Returns whether it was the last one, so that the store
        closes."""
        with FORK_LOCK:
            self.users -= 1
            is_last = self.users <= 0
        if is_last:
            self.close()
        return is_last


class Host(SharedHost):
    """Opens a store on an event loop in its own thread.

    The thread is a daemon: a program that does not close its client still exits, as if the process
    were killed. Acknowledged writes are on disk.
    """

    memory: OpenedMemory

    def __init__(self, settings: Settings, on_close: Callable[[], object] = _do_nothing) -> None:
        super().__init__(settings, on_close)
        # Reentrant, because the garbage collector may close this during a call.
        self._lock = threading.RLock()
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._opened: concurrent.futures.Future[OpenedMemory] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._run, name="memorywall-local", daemon=True)

    @property
    def is_closed(self) -> bool:
        return self._closed

    def open(self) -> Self:
        """Opens the store, once. Raises the errors of opening it."""
        with self._lock:
            if self._thread.ident is None:
                self._thread.start()
        self.memory = self._opened.result()
        return self

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

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
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
        self._on_close()

    async def _serve(self) -> None:
        try:
            async with opened_memory(self.settings) as memory:
                self._opened.set_result(memory)
                standing = asyncio.all_tasks()
                await self._stop.wait()
                memory.stopping.set()
                await _finish(asyncio.all_tasks() - standing)
        except BaseException as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)


class AsyncHost(SharedHost):
    """Opens a store in a task of the event loop that uses it first, whose end closes it."""

    def __init__(self, settings: Settings, on_close: Callable[[], object] = _do_nothing) -> None:
        super().__init__(settings, on_close)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._opening: asyncio.Future[OpenedMemory] | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_closing = False

    @property
    def is_closed(self) -> bool:
        return self._is_closing or (self._task is not None and self._task.done())

    async def open(self) -> OpenedMemory:
        """Returns the open store. Raises StoreLockedError in a forked process, RuntimeError on
        another event loop, and the errors of opening it."""
        check_owner(self)
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop, self._opening = loop, loop.create_future()
            self._task = loop.create_task(self._serve(self._opening))
        if loop is not self._loop or self._opening is None:
            raise RuntimeError(_ANOTHER_LOOP)
        if self._opening.done():
            return self._opening.result()
        return await asyncio.shield(self._opening)

    def close(self) -> None:
        self._is_closing = True
        if self._loop is not None and not self._loop.is_closed() and not self.is_inherited:
            self._loop.call_soon_threadsafe(self._stop.set)

    async def wait_closed(self) -> None:
        """Waits until the store is closed, on its own event loop."""
        if self._task is not None and self._loop is asyncio.get_running_loop():
            await asyncio.wait({self._task})

    async def _serve(self, opening: asyncio.Future[OpenedMemory]) -> None:
        try:
            async with opened_memory(self.settings) as memory:
                opening.set_result(memory)
                await self._stop.wait()
        except Exception as error:
            if opening.done():
                raise
            opening.set_exception(error)
        finally:
            opening.cancel()
            self._on_close()


def check_owner(host: SharedHost) -> None:
    """Raises StoreLockedError in a forked process, which must not use the store of its parent."""
    if host.is_inherited:
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
