"""Drivers that run operations in this process: one for sync and one for async."""

from __future__ import annotations

import asyncio
import concurrent.futures
import weakref
from collections.abc import Coroutine
from typing import Any

from memorywall.in_process.calls import call_of, refused, response_of
from memorywall.in_process.host import Host, OpenedMemory, check_owner
from memorywall.records.errors import MemorywallError
from memorywall.records.forks import ProcessBound
from memorywall.records.principal import Principal
from memorywall.sdk.effects import Open, Request, Response
from memorywall.sdk.errors import MemoryTransportError
from memorywall.sdk.executors import AwaitedStream, AwaitingDriver, BlockingDriver, BlockingStream
from memorywall.service.requests.operation_context import OperationCall
from memorywall.service.runner.operation_runner import OperationRunner
from memorywall.wire.results import ResultStream

_CLOSED = "the client is closed"
_ANOTHER_LOOP = "a client of `open_async` works on the event loop only that opened it"


class _Caller(ProcessBound):
    """Makes the calls of one agent."""

    def __init__(self, memory: OpenedMemory, agent: str | None) -> None:
        super().__init__()
        self._memory = memory
        self._agent = agent
        self._settings = memory.runner.service.settings
        self._principal: Principal | None = None

    def call(
        self, request: Request, subject: str | None, session: str | None = None
    ) -> OperationCall | Response:
        """Returns the call of a request, bound to the client's subject and session if there are
        some, or the response if the request is refused. Raises StoreLockedError in a forked
        process."""
        check_owner(self)
        try:
            if self._principal is None:
                authenticate = self._memory.authenticator.authenticate
                self._principal = _finished(authenticate(None, self._agent))
            return call_of(request, self._principal, self._settings, subject, session)
        except MemorywallError as error:
            return refused(request.operation, error)


def _finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Returns the result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    raise RuntimeError("an operation suspended that is one transaction")


class Handle:
    """The shared state of all copies of a driver. Closes the host, also when it is
    garbage-collected.

    owns: whether the host is closed with it
    """

    def __init__(self, host: Host, *, owns: bool) -> None:
        self.host = host
        self.is_closed = False
        self._finalizer = weakref.finalize(self, host.close if owns else _nothing)
        # During interpreter exit no thread can be started, and closing a store needs one.
        self._finalizer.atexit = False

    def close(self) -> None:
        """Closes the host if it is owned."""
        self.is_closed = True
        self._finalizer()


def _nothing() -> None:
    """Does nothing: replaces the close function of a host that is not owned."""


class InProcessDriver(BlockingDriver):
    """Runs operations in the calling thread if the store supports it, else on the host's loop.

    agent: the agent that it acts for
    """

    def __init__(self, handle: Handle, agent: str | None) -> None:
        super().__init__()
        self._handle = handle
        self._host = handle.host
        self._calling = handle.host.memory.calling_runner
        self._caller = _Caller(handle.host.memory, agent)

    def for_agent(self, agent: str) -> InProcessDriver:
        """Returns a driver for another agent, which closes nothing."""
        return InProcessDriver(Handle(self._host, owns=False), agent)

    def send(self, request: Request) -> Response:
        if self._handle.is_closed:
            raise RuntimeError(_CLOSED)
        call = self._caller.call(request, self.subject, self.session)
        if isinstance(call, Response):
            return call
        try:
            return response_of(call, self._run(call))
        except MemoryTransportError:
            raise
        except concurrent.futures.CancelledError:
            raise MemoryTransportError("the store was closed before it answered") from None
        except Exception as error:
            return refused(request.operation, error)

    def open(self, step: Open) -> tuple[Response, BlockingStream]:
        if self._handle.is_closed:
            raise RuntimeError(_CLOSED)
        host = self._host
        call = self._caller.call(step.request, self.subject, self.session)
        if isinstance(call, Response):
            return call, _BlockingParts(host, None)
        try:
            result = host.call(lambda: host.memory.runner.run(call))
        except MemoryTransportError:
            raise
        except Exception as error:
            return refused(step.request.operation, error), _BlockingParts(host, None)
        return Response(200), _BlockingParts(host, _Parts(result, host.memory.stopping))

    def close(self) -> None:
        self._handle.close()

    @property
    def is_closed(self) -> bool:
        return self._handle.is_closed

    def _run(self, call: OperationCall) -> Any:
        runner = self._calling
        if runner is not None and runner.is_one_transaction(call):
            return _finished(runner.run(call))
        memory = self._host.memory
        return self._host.call(lambda: memory.runner.run(call))


class AsyncInProcessDriver(AwaitingDriver):
    """Runs operations on the event loop of the store.

    agent: the agent that it acts for
    """

    def __init__(self, memory: OpenedMemory, agent: str | None) -> None:
        super().__init__()
        self._memory = memory
        self._runner: OperationRunner = memory.runner
        self._caller = _Caller(memory, agent)
        self._is_closed = False
        self._loop = asyncio.get_running_loop()

    def for_agent(self, agent: str) -> AsyncInProcessDriver:
        """Returns a driver for another agent."""
        return AsyncInProcessDriver(self._memory, agent)

    async def send(self, request: Request) -> Response:
        self._check_usable()
        call = self._caller.call(request, self.subject, self.session)
        if isinstance(call, Response):
            return call
        try:
            return response_of(call, await self._runner.run(call))
        except Exception as error:
            return refused(request.operation, error)

    async def open(self, step: Open) -> tuple[Response, AwaitedStream]:
        self._check_usable()
        call = self._caller.call(step.request, self.subject, self.session)
        if isinstance(call, Response):
            return call, _Parts(None, self._memory.stopping)
        try:
            result = await self._runner.run(call)
        except Exception as error:
            return refused(step.request.operation, error), _Parts(None, self._memory.stopping)
        return Response(200), _Parts(result, self._memory.stopping)

    async def close(self) -> None:
        self._is_closed = True

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def _check_usable(self) -> None:
        if self._is_closed:
            raise RuntimeError(_CLOSED)
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError(_ANOTHER_LOOP)


class _Parts:
    """The chunks of a streaming result, on the loop."""

    def __init__(self, stream: ResultStream | None, stopping: asyncio.Event) -> None:
        self._stream = stream
        self._stopping = stopping

    async def read(self) -> list[Any] | None:
        if self._stream is None:
            return None
        parts = self._stream.parts
        if not self._stream.endless:
            return await anext(parts, None)
        following = asyncio.ensure_future(anext(parts, None))
        stopped = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({following, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return following.result() if following.done() else None
        finally:
            stopped.cancel()
            if not following.done():
                following.cancel()
                await asyncio.wait({following})

    async def close(self) -> None:
        if self._stream is not None:
            await self._stream.parts.aclose()


class _BlockingParts:
    """The chunks of a streaming result, for a thread without a loop."""

    def __init__(self, host: Host, parts: _Parts | None) -> None:
        self._host = host
        self._parts = parts

    def read(self) -> list[Any] | None:
        return None if self._parts is None else self._host.call(self._parts.read)

    def close(self) -> None:
        # This does not wait, because the garbage collector may call it in the loop's own thread.
        if self._parts is not None:
            self._host.dismiss(self._parts.close)
