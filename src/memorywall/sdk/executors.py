"""Runs request generators: one driver for sync and one for async. `http.py` implements both over
HTTP."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from copy import copy
from inspect import isawaitable
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from memorywall.records.errors import MemorywallError
from memorywall.sdk.effects import (
    Emit,
    Invoke,
    Now,
    Open,
    Pause,
    Read,
    Request,
    RequestGenerator,
    Response,
    StreamGenerator,
)

Item = TypeVar("Item")
Result = TypeVar("Result")

# Time that the machine sleeps must count against a lease. A clock that continues during sleep is
# preferred where the platform has one.
_SLEEPLESS: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def steady_clock() -> float:
    """Returns seconds of a clock that never goes back."""
    return time.monotonic() if _SLEEPLESS is None else time.clock_gettime(_SLEEPLESS)


class BlockingStream(Protocol):
    """The response of an opened stream."""

    def read(self) -> bytes | list[Any] | None:
        """Returns the next chunk, or None at the end. Raises MemoryTransportError."""
        ...

    def close(self) -> None:
        """Closes the stream."""
        ...


class AwaitedStream(Protocol):
    """The async variant of `BlockingStream`."""

    async def read(self) -> bytes | list[Any] | None:
        """Returns the next chunk, or None at the end. Raises MemoryTransportError."""
        ...

    async def close(self) -> None:
        """Closes the stream."""
        ...


class RequestBinding(NamedTuple):
    """The headers by which a driver binds every request.

    subject: the people (X-Subject), or None
    session: the session (X-Session-ID), or None
    said_at: when what a request stores was said (X-Said-At), or None
    """

    subject: str | None = None
    session: str | None = None
    said_at: str | None = None


UNBOUND = RequestBinding()


class RequestDriver(ABC):
    """What a driver binds its requests to.

    clock: returns the time for generators that request it
    """

    binding = UNBOUND

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock

    @property
    @abstractmethod
    def is_closed(self) -> bool:
        """Returns whether the driver is closed."""

    def for_subject(self, subject: str, said_at: str | None = None) -> Self:
        """Returns the same driver with requests that are bound to people.

        subject: as in `X-Subject`
        said_at: as in `X-Said-At`; default: that of this driver
        """
        return self._bound(subject=subject, said_at=said_at or self.binding.said_at)

    def in_session(self, session: str) -> Self:
        """Returns the same driver with requests that are bound to a session."""
        return self._bound(session=session)

    def _bound(self, **fields: str | None) -> Self:
        twin = copy(self)
        twin.binding = self.binding._replace(**fields)
        return twin


class BlockingDriver(RequestDriver):
    """Runs request generators to completion.

    pause: waits for a number of seconds
    clock: see `RequestDriver`
    """

    def __init__(
        self,
        *,
        pause: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = steady_clock,
    ) -> None:
        super().__init__(clock)
        self.pause = pause

    @abstractmethod
    def send(self, request: Request) -> Response:
        """Returns the whole response to a request. Raises MemoryTransportError."""

    @abstractmethod
    def open(self, step: Open) -> tuple[Response, BlockingStream]:
        """Returns the head of a response and the stream of its body. Raises
        MemoryTransportError."""

    @abstractmethod
    def close(self) -> None:
        """Closes connections, or the store."""

    def with_pause(self, pause: Callable[[float], object]) -> Self:
        """Returns the same driver with another pause function."""
        twin = copy(self)
        twin.pause = pause
        return twin

    def run(self, script: RequestGenerator[Result]) -> Result:
        """Returns the generator's result. Errors of its requests are raised inside of it, also that
        of a request which cannot be sent."""
        try:
            step = next(script)
            while True:
                try:
                    answer = self._do(step)
                except MemorywallError as error:
                    step = script.throw(error)
                else:
                    step = script.send(answer)
        except StopIteration as end:
            result: Result = end.value
            return result

    def stream(self, script: StreamGenerator[Item]) -> Generator[Item, None, None]:
        """Iterates over the items that the generator emits. Closing the iterator closes the
        generator's stream."""
        opened: BlockingStream | None = None
        try:
            step = next(script)
            while True:
                try:
                    match step:
                        case Emit(item):
                            yield item
                            answer: object = None
                        case Read():
                            assert opened is not None, "a script opens before it reads"  # noqa: S101
                            answer = opened.read()
                        case Open():
                            if opened is not None:
                                opened.close()
                            answer, opened = self.open(step)
                        case _:
                            answer = self._do(step)
                except MemorywallError as error:
                    step = script.throw(error)
                else:
                    step = script.send(answer)
        except StopIteration:
            return
        finally:
            script.close()
            if opened is not None:
                opened.close()

    def _do(self, step: Request | Pause | Now | Invoke) -> object:
        if isinstance(step, Request):
            return self.send(step)
        if isinstance(step, Invoke):
            return step.function(step.argument)
        return self.pause(step.seconds) if isinstance(step, Pause) else self.clock()


class AwaitingDriver(RequestDriver):
    """Runs request generators on an event loop; see `BlockingDriver`."""

    def __init__(
        self,
        *,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = steady_clock,
    ) -> None:
        super().__init__(clock)
        self.pause = pause

    @abstractmethod
    async def send(self, request: Request) -> Response:
        """Returns the whole response to a request. Raises MemoryTransportError."""

    @abstractmethod
    async def open(self, step: Open) -> tuple[Response, AwaitedStream]:
        """Returns the head of a response and the stream of its body. Raises
        MemoryTransportError."""

    @abstractmethod
    async def close(self) -> None:
        """Closes connections."""

    async def run(self, script: RequestGenerator[Result]) -> Result:
        """Returns the generator's result. Errors of its requests are raised inside of it, also that
        of a request which cannot be sent."""
        try:
            step = next(script)
            while True:
                try:
                    answer = await self._do(step)
                except MemorywallError as error:
                    step = script.throw(error)
                else:
                    step = script.send(answer)
        except StopIteration as end:
            result: Result = end.value
            return result

    async def stream(self, script: StreamGenerator[Item]) -> AsyncGenerator[Item, None]:
        """Iterates over the items that the generator emits. Closing the iterator closes the
        generator's stream."""
        opened: AwaitedStream | None = None
        try:
            step = next(script)
            while True:
                try:
                    match step:
                        case Emit(item):
                            yield item
                            answer: object = None
                        case Read():
                            assert opened is not None, "a script opens before it reads"  # noqa: S101
                            answer = await opened.read()
                        case Open():
                            if opened is not None:
                                await opened.close()
                            answer, opened = await self.open(step)
                        case _:
                            answer = await self._do(step)
                except MemorywallError as error:
                    step = script.throw(error)
                else:
                    step = script.send(answer)
        except StopIteration:
            return
        finally:
            script.close()
            if opened is not None:
                await opened.close()

    async def _do(self, step: Request | Pause | Now | Invoke) -> object:
        if isinstance(step, Request):
            return await self.send(step)
        if isinstance(step, Invoke):
            answer = step.function(step.argument)
            return await answer if isawaitable(answer) else answer
        return await self.pause(step.seconds) if isinstance(step, Pause) else self.clock()
