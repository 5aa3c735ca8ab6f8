"""Drivers that run operations in this process: one for sync and one for async."""

from __future__ import annotations

import asyncio
import concurrent.futures
import weakref
from collections.abc import Callable, Coroutine
from copy import copy
from typing import Any

from msgspec.structs import replace

from memorywall.assembly import LocalAuthenticator
from memorywall.in_process.calls import call_of, make_refusal, response_of
from memorywall.in_process.host import AsyncHost, Host, OpenedMemory, check_owner
from memorywall.records.entry import Entry, is_expired
from memorywall.records.errors import MemorywallError, UnavailableError
from memorywall.records.principal import Principal
from memorywall.sdk.effects import Open, Request, Response
from memorywall.sdk.errors import MemoryTransportError
from memorywall.sdk.executors import (
    AwaitedStream,
    AwaitingDriver,
    BlockingDriver,
    BlockingStream,
    RequestBinding,
)
from memorywall.service.requests.operation_context import OperationCall
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.operation_runner import OperationRunner
from memorywall.settings import DEFAULT_TENANT, Settings
from memorywall.wire.results import ResultStream

_CLOSED = "the client is closed"
_LARGEST_KEPT = 4_096
"""Bytes of a value; a client keeps thousands of reads."""


class _Caller:
    """Makes the calls of one agent.

    owner: the agent that administers the tenant
    with_keys: see `call_of`
    """

    def __init__(self, owner: str, agent: str | None, *, with_keys: bool = False) -> None:
        self._with_keys = with_keys
        self._authenticate = LocalAuthenticator(DEFAULT_TENANT, owner).authenticate
        self._agent = agent
        self._principal: Principal | None = None

    def call(
        self, request: Request, settings: Settings, binding: RequestBinding
    ) -> OperationCall | Response:
        """Returns the call of a request, bound as the client is, or the response if the request is
        refused."""
        try:
            if self._principal is None:
                self._principal = _finish(self._authenticate(None, self._agent))
            return call_of(request, self._principal, settings, binding, with_key=self._with_keys)
        except MemorywallError as error:
            return make_refusal(request.operation, error)


def _finish(coroutine: Coroutine[Any, Any, Any]) -> Any:
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

    close: closes the host, or gives it up where others use it
    generation: that of the store when it was last asked for; None before
    """

    def __init__(self, host: Host, close: Callable[[], object]) -> None:
        self.host = host
        self.generation: int | None = None
        self.is_closed = False
        self._finalizer = weakref.finalize(self, close)
        # During interpreter exit no thread can be started, and closing a store needs one.
        self._finalizer.atexit = False

    def check(self) -> None:
        """Raises RuntimeError after `close`, and StoreLockedError in a forked process."""
        if self.is_closed:
            raise RuntimeError(_CLOSED)
        check_owner(self.host)

    def close(self) -> None:
        """Closes the host, once."""
        self.is_closed = True
        self._finalizer()


class _LastingRead:
    """A read that has the same result until something is committed or its entry expires.

    entry: see `OperationCall.lasting`
    generation: that of the store before the read
    """

    __slots__ = ("_entry", "_generation", "_handle", "_service")

    def __init__(
        self, handle: Handle, service: SharedServices, entry: Entry, generation: int
    ) -> None:
        self._handle = handle
        self._service = service
        self._entry = entry
        self._generation = generation

    def is_current(self, _: None) -> bool:
        """See `Response.is_current`. Raises the errors of `Handle.check`."""
        self._handle.check()
        service, entry = self._service, self._entry
        try:
            generation = self._handle.generation = _finish(service.store.generation())
        except UnavailableError:
            return False
        if generation != self._generation:
            return False
        now = service.now()
        if is_expired(entry, now):
            return False
        service.record_access((entry,), now)
        return True


class InProcessDriver(BlockingDriver):
    """Runs operations in the calling thread if the store supports it, else on the host's loop.

    owner: the agent that administers the tenant
    agent: the agent that it acts for; default: the owner
    """

    def __init__(self, handle: Handle, owner: str, agent: str | None = None) -> None:
        super().__init__()
        self._handle = handle
        self._host = handle.host
        self._owner = owner
        self._calling = handle.host.memory.calling_runner
        self._caller = _Caller(owner, agent)

    def for_agent(self, agent: str) -> InProcessDriver:
        """Returns a driver for another agent, which closes nothing."""
        return InProcessDriver(Handle(self._host, lambda: None), self._owner, agent)

    def send(self, request: Request) -> Response:
        self._handle.check()
        call = self._caller.call(request, self._host.settings, self.binding)
        if isinstance(call, Response):
            return call
        try:
            runner = self._calling
            if request.keeps and runner is not None and runner.is_one_transaction(call):
                return self._send_keeping(call, runner)
            return response_of(call, self._run(call))
        except MemoryTransportError:
            raise
        except concurrent.futures.CancelledError:
            raise MemoryTransportError("the store was closed before it answered") from None
        except Exception as error:
            return make_refusal(request.operation, error)

    def open(self, step: Open) -> tuple[Response, BlockingStream]:
        self._handle.check()
        host = self._host
        call = self._caller.call(step.request, host.settings, self.binding)
        if isinstance(call, Response):
            return call, _BlockingParts(host, None)
        try:
            result = host.call(lambda: host.memory.runner.run(call))
        except MemoryTransportError:
            raise
        except Exception as error:
            return make_refusal(step.request.operation, error), _BlockingParts(host, None)
        return Response(200), _BlockingParts(host, _Parts(result, host.memory.stopping))

    def close(self) -> None:
        self._handle.close()

    @property
    def is_closed(self) -> bool:
        return self._handle.is_closed

    def _send_keeping(self, call: OperationCall, runner: OperationRunner) -> Response:
        """Returns a response with `is_current`, if the operation allows it."""
        service, generation = runner.service, self._handle.generation
        # A generation from before the read may be too old, and then the next read runs again. It is
        # never that of a commit that the read has missed.
        if generation is None:
            generation = self._handle.generation = _finish(service.store.generation())
        response = response_of(call, _finish(runner.run(call)))
        entry = call.lasting
        if entry is None or entry.size > _LARGEST_KEPT:
            return response
        read = _LastingRead(self._handle, service, entry, generation)
        return replace(response, is_current=read.is_current)

    def _run(self, call: OperationCall) -> Any:
        runner = self._calling
        if runner is not None and runner.is_one_transaction(call):
            return _finish(runner.run(call))
        memory = self._host.memory
        return self._host.call(lambda: memory.runner.run(call))


class AsyncInProcessDriver(AwaitingDriver):
    """Runs operations on the event loop of the store, which the first request opens.

    handle: opens the store and gives it up
    owner: the agent that administers the tenant and that it acts for
    with_keys: whether requests have idempotency keys, because another process may have run them
    """

    def __init__(self, handle: AsyncHandle, owner: str, *, with_keys: bool = False) -> None:
        super().__init__()
        self.handle = handle
        self._owner = owner
        self._caller = _Caller(owner, None, with_keys=with_keys)

    def for_agent(self, agent: str) -> AsyncInProcessDriver:
        """Returns a driver for another agent."""
        twin = copy(self)
        twin._caller = _Caller(self._owner, agent)
        return twin

    async def send(self, request: Request) -> Response:
        memory = await self.handle.open()
        call = self._call(request, memory)
        if isinstance(call, Response):
            return call
        try:
            return response_of(call, await memory.runner.run(call))
        except Exception as error:
            return make_refusal(request.operation, error)

    async def open(self, step: Open) -> tuple[Response, AwaitedStream]:
        memory = await self.handle.open()
        call = self._call(step.request, memory)
        if isinstance(call, Response):
            return call, _Parts(None, memory.stopping)
        try:
            result = await memory.runner.run(call)
        except Exception as error:
            return make_refusal(step.request.operation, error), _Parts(None, memory.stopping)
        return Response(200), _Parts(result, memory.stopping)

    async def close(self) -> None:
        await self.handle.close()

    @property
    def is_closed(self) -> bool:
        return self.handle.is_closed

    def _call(self, request: Request, memory: OpenedMemory) -> OperationCall | Response:
        settings = memory.runner.service.settings
        return self._caller.call(request, settings, self.binding)


class AsyncHandle:
    """The shared state of all copies of an async driver. Gives up the host, also when it is
    garbage-collected.

    acquire: returns a host, which is opened here
    """

    def __init__(self, acquire: Callable[[], AsyncHost]) -> None:
        self.is_closed = False
        self._acquire = acquire
        self._host: AsyncHost | None = None
        self._finalizer: Callable[[], object] | None = None

    async def open(self) -> OpenedMemory:
        """Returns the open store. Raises RuntimeError after `close` and on another event loop, and
        the errors of opening, after which the next request tries again."""
        if self.is_closed:
            raise RuntimeError(_CLOSED)
        is_first = self._host is None
        if self._host is None:
            # Before the first suspension, so that requests that begin together open one store.
            self._host = self._acquire()
            finalizer = weakref.finalize(self, self._host.release)
            finalizer.atexit = False
            self._finalizer = finalizer
        try:
            return await self._host.open()
        except Exception:
            if is_first and self._finalizer is not None:
                self._finalizer()
                self._host = None
            raise

    async def close(self) -> None:
        """Gives up the host, and waits until the store is closed if nobody else uses it."""
        self.is_closed = True
        if self._finalizer is not None and self._finalizer() and self._host is not None:
            await self._host.wait_closed()


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
            self._host.start(self._parts.close)
