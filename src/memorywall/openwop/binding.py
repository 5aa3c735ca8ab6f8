"""Binds functions to the operations of OpenWOP, one to one, and refuses those of families that are
off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

from memorywall.openwop.families import refuse_unless_offered
from memorywall.operations.binding import FUNCTIONS
from memorywall.service.requests.operation_context import BoundFunction, OperationCall
from memorywall.wire.openwop import OPENWOP_BY_NAME

Function = TypeVar("Function", bound=Callable[..., Awaitable[Any]])


def route(
    *names: str, is_long: bool = False, shows: Callable[[Any], tuple[str, ...]] | None = None
) -> Callable[[Function], Function]:
    """Binds a function that runs in one transaction.

    names: the operations that it serves
    is_long: whether it may take more than a few milliseconds; default: false
    shows: see `BoundFunction`
    """
    return _bind(names, is_long=(lambda call: True) if is_long else None, shows=shows)


def multi_transaction_route(*names: str) -> Callable[[Function], Function]:
    """Binds a function that opens several transactions, or none, through its argument."""
    return _bind(names, in_session=True)


def _bind(names: tuple[str, ...], **properties: Any) -> Callable[[Function], Function]:
    """Raises LookupError for an unknown name, or one that has a function."""

    def bind(function: Function) -> Function:
        @wraps(function)
        async def offered(context: Any, *call: OperationCall) -> Any:
            name = (call[0] if call else context.call).operation.name
            refuse_unless_offered(context.service.settings, name)
            return await function(context, *call)

        for name in names:
            if name not in OPENWOP_BY_NAME or name in FUNCTIONS:
                raise LookupError(f"{name} is not an operation without a function")
            changes = OPENWOP_BY_NAME[name].changes
            FUNCTIONS[name] = BoundFunction(run=offered, changes=changes, **properties)
        return function

    return bind
