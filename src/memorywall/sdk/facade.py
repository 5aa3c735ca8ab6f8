"""Turns a generator function into a method of either colour, with its parameters and its text."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from memorywall.sdk.drivers import AsyncDriver, Driver
from memorywall.sdk.steps import Script, StreamScript

Logic = TypeVar("Logic")
Logic_co = TypeVar("Logic_co", covariant=True)
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Facade(Generic[Logic_co]):
    """Some logic and the driver that runs it before a method returns."""

    def __init__(self, logic: Logic_co, driver: Driver) -> None:
        self._logic = logic
        self._driver = driver


class AsyncFacade(Generic[Logic_co]):
    """Some logic and the driver that runs it while a method is awaited."""

    def __init__(self, logic: Logic_co, driver: AsyncDriver) -> None:
        self._logic = logic
        self._driver = driver


def blocking(
    logic: Callable[Concatenate[Logic, Parameters], Script[Result]],
) -> Callable[Concatenate[Facade[Logic], Parameters], Result]:
    """A method that returns the script's result."""

    @wraps(logic)
    def method(
        self: Facade[Logic], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        return self._driver.run(logic(self._logic, *args, **kwargs))

    return _described(method, logic, "{}")


def blocking_stream(
    logic: Callable[Concatenate[Logic, Parameters], StreamScript[Result]],
) -> Callable[Concatenate[Facade[Logic], Parameters], Generator[Result, None, None]]:
    """A method that returns an iterator over what the script emits."""

    @wraps(logic)
    def method(
        self: Facade[Logic], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Generator[Result, None, None]:
        return self._driver.stream(logic(self._logic, *args, **kwargs))

    return _described(method, logic, "Generator[{}, None, None]")


def awaiting(
    logic: Callable[Concatenate[Logic, Parameters], Script[Result]],
) -> Callable[Concatenate[AsyncFacade[Logic], Parameters], Coroutine[Any, Any, Result]]:
    """A method whose awaited result is the script's."""

    @wraps(logic)
    async def method(
        self: AsyncFacade[Logic], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        return await self._driver.run(logic(self._logic, *args, **kwargs))

    return _described(method, logic, "{}")


def awaiting_stream(
    logic: Callable[Concatenate[Logic, Parameters], StreamScript[Result]],
) -> Callable[Concatenate[AsyncFacade[Logic], Parameters], AsyncGenerator[Result, None]]:
    """A method that returns an asynchronous iterator over what the script emits."""

    @wraps(logic)
    def method(
        self: AsyncFacade[Logic], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> AsyncGenerator[Result, None]:
        return self._driver.stream(logic(self._logic, *args, **kwargs))

    return _described(method, logic, "AsyncGenerator[{}, None]")


Method = TypeVar("Method", bound=Callable[..., Any])


def _described(method: Method, logic: Callable[..., Any], returns: str) -> Method:
    """Makes `help()` tell the method's own return type, not the script's."""
    signature = inspect.signature(logic)
    _, _, item = str(signature.return_annotation).removesuffix("]").partition("[")
    signature = signature.replace(return_annotation=returns.format(item))
    vars(method)["__signature__"] = signature
    return method
