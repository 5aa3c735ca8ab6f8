"""Which methods there are, and what each that is not served gets for an answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from typing import Any, get_origin

from openintent import OpenIntentError
from openintent.streaming import SSEStream

from tests.published_client.colours import Client
from tests.published_client.served import NOT_SERVED


async def play(ana: Client, ben: Client, name: str) -> dict[str, Any]:
    published = ana.colour.client_class
    methods = [method for method in dir(published) if not method.startswith("_")]
    return {
        "methods": methods,
        "answers": {
            method: await _answer(ana, getattr(published, method))
            for method in methods
            if method in NOT_SERVED
        },
    }


async def _answer(ana: Client, method: Callable[..., Any]) -> int | None:
    """The status of what a method raises for arguments that are made up."""
    _, *parameters = inspect.signature(method).parameters.values()
    arguments = {
        parameter.name: _make_up(parameter.annotation)
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    }
    try:
        outcome = await getattr(ana, method.__name__)(**arguments)
    except OpenIntentError as error:
        return error.status_code
    if isinstance(outcome, SSEStream):
        with outcome:
            # A stream raises nothing; it begins with an event that holds the status.
            status: int | None = next(iter(outcome)).data.get("status_code")
            return status
    return None


def _make_up(annotation: Any) -> Any:
    kind = get_origin(annotation) or annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    if kind is datetime:
        return datetime.now(UTC)
    return kind() if kind in (dict, list, int, float, bool) else "made-up"
