"""Converts a generator function into a sync or async method with the same parameters and
docstring."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from memorywall.sdk.effects import RequestGenerator, StreamGenerator
from memorywall.sdk.executors import AwaitingDriver, BlockingDriver

Core = TypeVar("Core")
Core_co = TypeVar("Core_co", covariant=True)
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Facade(Generic[Core_co]):
    """A core object and the driver that runs its generators in blocking methods."""

    def __init__(self, core: Core_co, executor: BlockingDriver) -> None:
        self._core = core
        self._executor = executor


class AsyncFacade(Generic[Core_co]):
    """A core object and the driver that runs its generators in asynchronous methods."""

    def __init__(self, core: Core_co, executor: AwaitingDriver) -> None:
        self._core = core
        self._executor = executor


def blocking(
    core: Callable[Concatenate[Core, Parameters], RequestGenerator[Result]],
) -> Callable[Concatenate[Facade[Core], Parameters], Result]:
    """Returns a method that runs the generator and returns its result."""

    @wraps(core)
    def method(
        self: Facade[Core], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        return self._executor.run(core(self._core, *args, **kwargs))

    return _described(method, core, "{}")


def blocking_stream(
    core: Callable[Concatenate[Core, Parameters], StreamGenerator[Result]],
) -> Callable[Concatenate[Facade[Core], Parameters], Generator[Result, None, None]]:
    """Returns a method that returns an iterator over the items that the generator emits."""

    @wraps(core)
    def method(
        self: Facade[Core], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Generator[Result, None, None]:
        return self._executor.stream(core(self._core, *args, **kwargs))

    return _described(method, core, "Generator[{}, None, None]")


def awaiting(
    core: Callable[Concatenate[Core, Parameters], RequestGenerator[Result]],
) -> Callable[Concatenate[AsyncFacade[Core], Parameters], Coroutine[Any, Any, Result]]:
    """Returns an asynchronous method that runs the generator and returns its result."""

    @wraps(core)
    async def method(
        self: AsyncFacade[Core], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        return await self._executor.run(core(self._core, *args, **kwargs))

    return _described(method, core, "{}")


def awaiting_stream(
    core: Callable[Concatenate[Core, Parameters], StreamGenerator[Result]],
) -> Callable[Concatenate[AsyncFacade[Core], Parameters], AsyncGenerator[Result, None]]:
    """Returns a method that returns an asynchronous iterator over the items that the generator
    emits."""

    @wraps(core)
    def method(
        self: AsyncFacade[Core], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> AsyncGenerator[Result, None]:
        return self._executor.stream(core(self._core, *args, **kwargs))

    return _described(method, core, "AsyncGenerator[{}, None]")


Method = TypeVar("Method", bound=Callable[..., Any])


def _described(method: Method, core: Callable[..., Any], returns: str) -> Method:
    """Sets the return type that `help()` shows to the method's own instead of the generator's."""
    signature = inspect.signature(core)
    _, _, item = str(signature.return_annotation).removesuffix("]").partition("[")
    signature = signature.replace(return_annotation=returns.format(item))
    vars(method)["__signature__"] = signature
    return method
