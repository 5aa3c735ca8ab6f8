"""Writes that return when a search finds their entries (`wait_for="indexed"`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar

import msgspec

from memorywall.sdk.effects import Request, RequestGenerator
from memorywall.wire.entries import WRITE_QUERIES

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
WaitFor = Literal["indexed"]


def may_wait(
    method: Callable[Parameters, RequestGenerator[Result]],
) -> Callable[Parameters, RequestGenerator[Result]]:
    """Adds the argument `wait_for` of a method to the writes that the method sends."""

    @wraps(method)
    def waiting(*args: Parameters.args, **kwargs: Parameters.kwargs) -> RequestGenerator[Result]:
        wait_for = kwargs.pop("wait_for", None)
        steps = method(*args, **kwargs)
        return steps if wait_for is None else _with_wait(steps, str(wait_for))

    return waiting


def _with_wait(steps: RequestGenerator[Result], wait_for: str) -> RequestGenerator[Result]:
    """The same steps, where each write has the query parameter."""
    answer: Any = None
    error: Exception | None = None
    while True:
        try:
            step = steps.send(answer) if error is None else steps.throw(error)
        except StopIteration as done:
            result: Result = done.value
            return result
        if isinstance(step, Request) and step.record.query in WRITE_QUERIES:
            step = msgspec.structs.replace(step, query={**step.query, "wait_for": wait_for})
        answer, error = None, None
        try:
            answer = yield step
        except Exception as raised:
            error = raised
