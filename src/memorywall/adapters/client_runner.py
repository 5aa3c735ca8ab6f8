"""Runs the request generators of adapters with a client of either colour, in both ways."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from memorywall.sdk.client_state import subject_header
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.executors import AwaitingDriver, BlockingDriver

if TYPE_CHECKING:
    # Whoever has a client has imported it; the import of an adapter need not take as long.
    from memorywall.sdk.client import AsyncClient, Client

Result = TypeVar("Result")
AnyDriver = TypeVar("AnyDriver", BlockingDriver, AwaitingDriver)


class ClientRunner:
    """Runs request generators for frameworks whose objects have blocking and asynchronous methods.

    client: a `Client`, which asynchronous calls use in a thread, or an `AsyncClient`, which
        blocking calls use on its event loop, from another thread than that of the loop
    """

    def __init__(self, client: Client | AsyncClient) -> None:
        driver = getattr(client, "driver", None)
        if driver is None:
            raise TypeError(
                "this needs a client of memorywall: memorywall.open(path), or"
                " memorywall.Client(url, key) for a server"
            )
        self._driver: BlockingDriver | AwaitingDriver = driver
        self._loop = None if isinstance(self._driver, BlockingDriver) else _running_loop()

    def run(self, script: RequestGenerator[Result], user: str | None = None) -> Result:
        """Returns the result of a generator.

        user: the person that its requests are bound to; None for those of the client
        Raises RuntimeError on the event loop of an `AsyncClient`, where waiting stops the loop.
        """
        if isinstance(self._driver, BlockingDriver):
            return _bound(self._driver, user).run(script)
        if self._loop is not None and self._loop is _running_loop():
            raise RuntimeError(
                "a blocking method was called on the event loop of its client; await the"
                " asynchronous one, such as `aget` for `get`"
            )
        if self._loop is not None and self._loop.is_running():
            return asyncio.run_coroutine_threadsafe(self.await_(script, user), self._loop).result()
        return asyncio.run(self.await_(script, user))

    async def await_(self, script: RequestGenerator[Result], user: str | None = None) -> Result:
        """The same without blocking the event loop."""
        if isinstance(self._driver, BlockingDriver):
            return await asyncio.to_thread(self.run, script, user)
        self._loop = asyncio.get_running_loop()
        return await _bound(self._driver, user).run(script)


def both_ways(function: Callable[..., RequestGenerator[Any]]) -> tuple[Any, Any]:
    """Returns a blocking and an asynchronous method that run a generator method.

    function: a method of a class with `runner`, a `ClientRunner`, and with `user_of`, which returns
        the person that a call is bound to from the arguments of the method
    """

    @wraps(function)
    def run(self: Any, /, *args: Any, **options: Any) -> Any:
        return self.runner.run(function(self, *args, **options), self.user_of(*args, **options))

    @wraps(function)
    async def await_(self: Any, /, *args: Any, **options: Any) -> Any:
        script = function(self, *args, **options)
        return await self.runner.await_(script, self.user_of(*args, **options))

    name = function.__name__.lstrip("_")
    run.__name__, await_.__name__ = name, f"a{name}"
    return run, await_


def _bound(driver: AnyDriver, user: str | None) -> AnyDriver:
    return driver if user is None else driver.for_subject(subject_header([user]))


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
