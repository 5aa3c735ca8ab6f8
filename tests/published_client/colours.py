"""Both colours of the published client behind one face, so that a scene is written once.

Runs in the client's own environment. Remembers which methods were called: that a method is driven
is not only said.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any

from openintent import AsyncOpenIntentClient, OpenIntentClient, OpenIntentError


class Colour(StrEnum):
    """Which of the two client classes is driven."""

    BLOCKING = "blocking"
    ASYNC = "async"

    @property
    def client_class(self) -> type[OpenIntentClient] | type[AsyncOpenIntentClient]:
        """The class that the package publishes for it."""
        return OpenIntentClient if self is Colour.BLOCKING else AsyncOpenIntentClient


class Client:
    """A published client every method of which is awaited, whatever its colour."""

    def __init__(self, colour: Colour, url: str, agent: str, key: str, calls: set[str]) -> None:
        self.colour = colour
        self.agent = agent
        self.calls = calls
        self.published = colour.client_class(base_url=url, api_key=key, agent_id=agent)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self.published, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            self.calls.add(name)
            outcome = method(*arguments, **named)
            return await outcome if inspect.isawaitable(outcome) else outcome

        return call


async def refused(call: Awaitable[Any]) -> dict[str, Any]:
    """What the client raised for a call that the server must refuse."""
    try:
        outcome = await call
    except OpenIntentError as error:
        return {
            "error": type(error).__name__,
            "status": error.status_code,
            "message": error.message,
            "current_version": getattr(error, "current_version", None),
            "existing_lease": getattr(error, "existing_lease", None),
            "body": error.response,
        }
    raise AssertionError(f"this was not refused, it answered {outcome!r}")
