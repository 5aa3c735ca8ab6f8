"""Does what scripts ask for: one driver for each colour. `http.py` has those over HTTP."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from copy import copy
from typing import Any, Protocol, Self, TypeVar

from memorywall.sdk.effects import (
    Emit,
    Now,
    Open,
    Pause,
    Read,
    Request,
    RequestGenerator,
    Response,
    StreamGenerator,
)
from memorywall.sdk.errors import MemoryTransportError

Item = TypeVar("Item")
Result = TypeVar("Result")

# Whoever sleeps must not believe to hold what has run out meanwhile; where there is a clock that
# goes on while the machine sleeps, it is the one to ask.
_SLEEPLESS: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def steady_clock() -> float:
    """Seconds since some moment, which never go back."""
    return time.monotonic() if _SLEEPLESS is None else time.clock_gettime(_SLEEPLESS)


class BlockingStream(Protocol):
    """The reply of an opened stream."""

    def read(self) -> bytes | list[Any] | None:
        """The next piece, or None at the end. Raises MemoryTransportError."""
        ...

    def close(self) -> None:
        """Ends the stream."""
        ...


class AwaitedStream(Protocol):
    """The twin of `BlockingStream`."""

    async def read(self) -> bytes | list[Any] | None:
        """The next piece, or None at the end. Raises MemoryTransportError."""
        ...

    async def close(self) -> None:
        """Ends the stream."""
        ...


class BlockingDriver(ABC):
    """Runs scripts, and returns when they are through.

    pause: lets seconds pass
    clock: tells the time to scripts that ask for it
    subject: the person every request is bound to (X-Subject), None for none
    """

    def __init__(
        self,
        *,
        pause: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = steady_clock,
        subject: str | None = None,
    ) -> None:
        self.subject = subject
        self.pause = pause
        self.clock = clock

    @abstractmethod
    def send(self, request: Request) -> Response:
        """The whole reply to a request. Raises MemoryTransportError."""

    @abstractmethod
    def open(self, step: Open) -> tuple[Response, BlockingStream]:
        """The head of a reply, and what follows it. Raises MemoryTransportError."""

    @abstractmethod
    def close(self) -> None:
        """Lets go of connections, or of a store."""

    @property
    @abstractmethod
    def is_closed(self) -> bool:
        """Whether it was closed."""

    def with_pause(self, pause: Callable[[float], object]) -> Self:
        """The same driver with another way to let time pass."""
        twin = copy(self)
        twin.pause = pause
        return twin

    def for_subject(self, subject: str) -> Self:
        """The same driver, with requests that are bound to a person."""
        twin = copy(self)
        twin.subject = subject
        return twin

    def run(self, script: RequestGenerator[Result]) -> Result:
        """The script's result."""
        try:
            step = next(script)
            while True:
                try:
                    answer = self._do(step)
                except MemoryTransportError as error:
                    step = script.throw(error)
                else:
                    step = script.send(answer)
        except StopIteration as end:
            result: Result = end.value
            return result

    def stream(self, script: StreamGenerator[Item]) -> Generator[Item, None, None]:
        """What the script emits. Closing this closes the stream it reads."""
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
                except MemoryTransportError as error:
                    step = script.throw(error)
                else:
                    step = script.send(answer)
        except StopIteration:
            return
        finally:
            script.close()
            if opened is not None:
                opened.close()

    def _do(self, step: Request | Pause | Now) -> object:
        if isinstance(step, Request):
            return self.send(step)
        return self.pause(step.seconds) if isinstance(step, Pause) else self.clock()


class AwaitingDriver(ABC):
    """Runs scripts without blocking the event loop; see `BlockingDriver`."""

    def __init__(
        self,
        *,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = steady_clock,
        subject: str | None = None,
    ) -> None:
        self.subject = subject
        self.pause = pause
        self.clock = clock

    @abstractmethod
    async def send(self, request: Request) -> Response:
        """The whole reply to a request. Raises MemoryTransportError."""

    @abstractmethod
    async def open(self, step: Open) -> tuple[Response, AwaitedStream]:
        """The head of a reply, and what follows it. Raises MemoryTransportError."""

    @abstractmethod
    async def close(self) -> None:
        """Lets go of connections."""

    @property
    @abstractmethod
    def is_closed(self) -> bool:
        """Whether it was closed."""

    def for_subject(self, subject: str) -> Self:
        """The same driver, with requests that are bound to a person."""
        twin = copy(self)
        twin.subject = subject
        return twin

    async def run(self, script: RequestGenerator[Result]) -> Result:
        """The script's result."""
        try:
            step = next(script)
            while True:
                try:
                    answer = await self._do(step)
                except MemoryTransportError as error:
                    step = script.throw(error)
                else:
                    step = script.send(answer)
        except StopIteration as end:
            result: Result = end.value
            return result

    async def stream(self, script: StreamGenerator[Item]) -> AsyncGenerator[Item, None]:
        """What the script emits. Closing this closes the stream it reads."""
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
                except MemoryTransportError as error:
                    step = script.throw(error)
                else:
                    step = script.send(answer)
        except StopIteration:
            return
        finally:
            script.close()
            if opened is not None:
                await opened.close()

    async def _do(self, step: Request | Pause | Now) -> object:
        if isinstance(step, Request):
            return await self.send(step)
        return await self.pause(step.seconds) if isinstance(step, Pause) else self.clock()
