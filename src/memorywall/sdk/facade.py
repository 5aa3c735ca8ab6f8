"""Converts a generator function into a sync or async method with the same parameters and
docstring."""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from functools import cache, wraps
from types import UnionType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from memorywall.sdk.effects import RequestGenerator, StreamGenerator
from memorywall.sdk.executors import AwaitingDriver, BlockingDriver
from memorywall.sdk.values import checked_list

Core = TypeVar("Core")
Core_co = TypeVar("Core_co", covariant=True)
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


_LISTS = frozenset({"Iterable", "Sequence", "Collection", "list", "tuple"})


def check_lists(
    core: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> None:
    """Raises ValidationError for a text where a method takes a list: its characters would be the
    elements, such as people or capabilities.

    core: the function whose signature tells which arguments are lists
    args, options: its positional arguments, `self` included, and the named ones
    """
    for name, place in _lists_of(core):
        given = args[place] if place < len(args) else options.get(name)
        if isinstance(given, str | bytes):
            checked_list(name, given)


@cache
def _lists_of(core: Callable[..., Any]) -> tuple[tuple[str, int], ...]:
    """Returns the parameters of a function that take a list and not one text, with their places;
    those of `**options` have the place of `options`."""
    hints = typing.get_type_hints(core)
    found: list[tuple[str, int]] = []
    for place, name in enumerate(inspect.signature(core).parameters):
        named = {name: hints.get(name)}
        if typing.get_origin(named[name]) is typing.Unpack:
            named = typing.get_type_hints(typing.get_args(named[name])[0])
        found += [(one, place) for one, hint in named.items() if _is_list(hint)]
    return tuple(found)


def _is_list(hint: Any) -> bool:
    is_union = typing.get_origin(hint) in (typing.Union, UnionType)
    kinds = typing.get_args(hint) if is_union else (hint,)
    names = {getattr(typing.get_origin(kind), "__name__", "") for kind in kinds}
    return str not in kinds and not names.isdisjoint(_LISTS)


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
        check_lists(core, (self, *args), kwargs)
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
        check_lists(core, (self, *args), kwargs)
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
        check_lists(core, (self, *args), kwargs)
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
        check_lists(core, (self, *args), kwargs)
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
