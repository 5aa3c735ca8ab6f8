"""Runs a core of generator functions both ways: in blocking and in asynchronous methods.

A core is a class of generator functions that yield requests and return results (`effects.py`). It
is written once. `method` makes a method of one of its functions; the class that has the methods is
combined with `Facade` and with `AsyncFacade`:

    class NotesCore:
        def __init__(self, memory: MemoryCore) -> None:
            self._memory = memory

        def add(self, key: str, text: str) -> RequestGenerator[MemoryEntry]:
            return (yield from self._memory.put("notes", key, {"text": text}, "semantic"))

    class NotesMethods:
        add = method(NotesCore.add)

    class Notes(NotesMethods, Facade[NotesCore]): ...

    class AsyncNotes(NotesMethods, AsyncFacade[NotesCore]): ...

    Notes(NotesCore(client.memory.core), client.driver).add("a", "text")

The methods have the parameters and the docstrings of the functions. All clients of the SDK are made
in this way, so `client.memory.core` and `client.driver` exist in `Client`, `AsyncClient`, and in
the clients of `memorywall.open`.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from functools import cache, cached_property, wraps
from types import MethodType, UnionType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from memorywall.records.argument_names import current_names, unknown_names
from memorywall.sdk.effects import RequestGenerator, StreamGenerator
from memorywall.sdk.executors import AwaitingDriver, BlockingDriver
from memorywall.sdk.values import checked_list

Core = TypeVar("Core")
Core_co = TypeVar("Core_co", covariant=True)
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Facade(Generic[Core_co]):
    """The blocking methods of a core.

    core: the object whose generator functions the methods run
    driver: sends the requests of the generators, such as that of a client
    """

    def __init__(self, core: Core_co, driver: BlockingDriver) -> None:
        self.core = core
        self.driver = driver


class AsyncFacade(Generic[Core_co]):
    """The asynchronous methods of a core.

    core: the object whose generator functions the methods run
    driver: sends the requests of the generators, such as that of a client
    """

    def __init__(self, core: Core_co, driver: AwaitingDriver) -> None:
        self.core = core
        self.driver = driver


class _BothWays(Generic[Core, Parameters, Result]):
    """A function of a core as an attribute of a class: a blocking method in a Facade, and an
    asynchronous one in an AsyncFacade."""

    def __init__(self, function: Callable[Concatenate[Core, Parameters], Any]) -> None:
        self._function = function

    @cached_property
    def _blocking(self) -> Callable[..., Any]:
        return _show_return_type(_make_blocking(self._function), self._function, "{}")

    @cached_property
    def _awaiting(self) -> Callable[..., Any]:
        return _show_return_type(_make_awaiting(self._function), self._function, "{}")

    def __get__(self, owner: Any, kind: type) -> Any:
        function = self._awaiting if issubclass(kind, AsyncFacade) else self._blocking
        return function if owner is None else MethodType(function, owner)


class Method(_BothWays[Core, Parameters, Result]):
    """A method that returns the result of a generator; see `method`."""

    if TYPE_CHECKING:

        @overload
        def __get__(self, owner: None, kind: type) -> Callable[..., Any]: ...
        @overload
        def __get__(self, owner: Facade[Core], kind: type) -> Callable[Parameters, Result]: ...
        @overload
        def __get__(
            self, owner: AsyncFacade[Core], kind: type
        ) -> Callable[Parameters, Coroutine[Any, Any, Result]]: ...
        def __get__(self, owner: Any, kind: type) -> Any: ...


class StreamMethod(_BothWays[Core, Parameters, Result]):
    """A method that returns an iterator over the items that a generator emits; see
    `stream_method`."""

    @cached_property
    def _blocking(self) -> Callable[..., Any]:
        return _show_return_type(
            _make_streaming(self._function), self._function, "Generator[{}, None, None]"
        )

    @cached_property
    def _awaiting(self) -> Callable[..., Any]:
        return _show_return_type(
            _make_streaming(self._function), self._function, "AsyncGenerator[{}, None]"
        )

    if TYPE_CHECKING:

        @overload
        def __get__(self, owner: None, kind: type) -> Callable[..., Any]: ...
        @overload
        def __get__(
            self, owner: Facade[Core], kind: type
        ) -> Callable[Parameters, Generator[Result, None, None]]: ...
        @overload
        def __get__(
            self, owner: AsyncFacade[Core], kind: type
        ) -> Callable[Parameters, AsyncGenerator[Result, None]]: ...
        def __get__(self, owner: Any, kind: type) -> Any: ...


def method(
    function: Callable[Concatenate[Core, Parameters], RequestGenerator[Result]],
) -> Method[Core, Parameters, Result]:
    """Returns a method that runs a generator and returns its result: at once in a Facade, as a
    coroutine in an AsyncFacade.

    function: a function of the core, with the parameters and the docstring of the method
    """
    return Method(function)


def stream_method(
    function: Callable[Concatenate[Core, Parameters], StreamGenerator[Result]],
) -> StreamMethod[Core, Parameters, Result]:
    """Returns a method that returns an iterator over the items that a generator emits (`Emit`): a
    generator in a Facade, an asynchronous one in an AsyncFacade.

    function: a function of the core, with the parameters and the docstring of the method
    """
    return StreamMethod(function)


def _make_blocking(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(self: Facade[Any], /, *args: Any, **options: Any) -> Any:
        options = named_options(function, options)
        _check_lists(function, (self, *args), options)
        return self.driver.run(_begin(function, self.core, args, options))

    return run


def _make_awaiting(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def run(self: AsyncFacade[Any], /, *args: Any, **options: Any) -> Any:
        options = named_options(function, options)
        _check_lists(function, (self, *args), options)
        return await self.driver.run(_begin(function, self.core, args, options))

    return run


def _make_streaming(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def stream(self: Facade[Any] | AsyncFacade[Any], /, *args: Any, **options: Any) -> Any:
        options = named_options(function, options)
        _check_lists(function, (self, *args), options)
        return self.driver.stream(_begin(function, self.core, args, options))

    return stream


def _show_return_type(
    made: Callable[..., Any], function: Callable[..., Any], returns: str
) -> Callable[..., Any]:
    """Sets the return type that `help()` shows to the method's own instead of the generator's."""
    signature = inspect.signature(function)
    _, _, item = str(signature.return_annotation).removesuffix("]").partition("[")
    signature = signature.replace(return_annotation=returns.format(item))
    vars(made)["__signature__"] = signature
    return made


_PEOPLE = frozenset({"user", "user_id", "about"})


def named_options(
    function: Callable[..., Any], options: dict[str, Any], name: str | None = None
) -> dict[str, Any]:
    """Returns named arguments of a function of a core, with present names in place of earlier ones.

    name: how the client names the method, for the message; default: the name of the function

    Raises TypeError for an argument that the function does not have, RequestError for one that is
    given by two names with different values.
    """
    known = _names_of(function)
    if known is None or options.keys() <= known:
        return options
    options = current_names(options, known) or options
    if unknown := sorted(options.keys() - known):
        shown = name or function.__name__
        is_user = not _PEOPLE.isdisjoint(unknown) and _PEOPLE.isdisjoint(known)
        hint = "; `client.for_user(user)` makes a client for one person" if is_user else ""
        raise TypeError(f"{shown}(): {unknown_names('arguments', unknown, known)}{hint}")
    return options


@cache
def _names_of(function: Callable[..., Any]) -> frozenset[str] | None:
    """Returns the names of the arguments that a function of a core takes by name; None if it takes
    any."""
    found = set[str]()
    hints = typing.get_type_hints(function)
    for name, one in inspect.signature(function).parameters.items():
        if one.kind is one.VAR_KEYWORD:
            if typing.get_origin(hints.get(name)) is not typing.Unpack:
                return None
            found |= typing.get_type_hints(typing.get_args(hints[name])[0]).keys()
        elif one.kind not in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL):
            found.add(name)
    return frozenset(found - {"self"})


def _begin(
    function: Callable[..., Any], core: object, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Calls a function of a core. Raises TypeError in the words of the method for arguments that do
    not fit: the function has the name of a class that callers do not see."""
    try:
        return function(core, *args, **options)
    except TypeError:
        try:
            inspect.signature(function).bind(core, *args, **options)
        except TypeError as error:
            raise TypeError(f"{function.__name__}(): {error}") from None
        raise


_LISTS = frozenset({"Iterable", "Sequence", "Collection", "list", "tuple"})


def _check_lists(
    function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> None:
    """Raises ValidationError for a text where a method takes a list: its characters would be the
    elements, such as people or capabilities.

    function: the one of the core, whose signature tells which arguments are lists
    args, options: its positional arguments, `self` included, and the named ones
    """
    for name, position in _lists_of(function):
        given = args[position] if position < len(args) else options.get(name)
        if isinstance(given, str | bytes):
            checked_list(name, given)


@cache
def _lists_of(function: Callable[..., Any]) -> tuple[tuple[str, int], ...]:
    """Returns the parameters of a function that take a list and not one text, with their positions;
    those of `**options` have the position of `options`."""
    hints = typing.get_type_hints(function)
    found: list[tuple[str, int]] = []
    for position, name in enumerate(inspect.signature(function).parameters):
        named = {name: hints.get(name)}
        if typing.get_origin(named[name]) is typing.Unpack:
            named = typing.get_type_hints(typing.get_args(named[name])[0])
        found += [(one, position) for one, hint in named.items() if _is_list(hint)]
    return tuple(found)


def _is_list(hint: Any) -> bool:
    is_union = typing.get_origin(hint) in (typing.Union, UnionType)
    kinds = typing.get_args(hint) if is_union else (hint,)
    names = {getattr(typing.get_origin(kind), "__name__", "") for kind in kinds}
    return str not in kinds and not names.isdisjoint(_LISTS)
