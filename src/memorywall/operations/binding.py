"""Binds functions to the records of the operations table, one to one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

from memorywall.records.decision import Verb
from memorywall.service.requests.operation_context import (
    BoundFunction,
    OperationCall,
    OperationContext,
    RecheckFunction,
)
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.operations import OPERATIONS_BY_NAME

Result = TypeVar("Result")

FUNCTIONS: dict[str, BoundFunction] = {}
"""The bound functions, by the name of their operation. Importing `operations.table` fills it."""


def operation(
    name: str,
    *,
    is_long: Callable[[OperationCall], bool] | None = None,
    shows: Callable[[Any], tuple[str, ...]] | None = None,
    recheck: RecheckFunction | None = None,
    repeat_verbs: tuple[Verb, ...] = (Verb.UPDATE, Verb.READ),
    prepare: Callable[[OperationTransactions], Awaitable[Any]] | None = None,
) -> Callable[
    [Callable[[OperationContext, OperationCall], Awaitable[Result]]],
    Callable[[OperationContext, OperationCall], Awaitable[Result]],
]:
    """Binds a function that runs in the operation's one transaction; see `BoundFunction`."""

    def bind(
        function: Callable[[OperationContext, OperationCall], Awaitable[Result]],
    ) -> Callable[[OperationContext, OperationCall], Awaitable[Result]]:
        _add(
            name,
            run=function,
            is_long=is_long,
            shows=shows,
            recheck=recheck,
            repeat_verbs=repeat_verbs,
            prepare=prepare,
        )
        return function

    return bind


def multi_transaction_operation(
    name: str,
) -> Callable[
    [Callable[[OperationTransactions], Awaitable[Result]]],
    Callable[[OperationTransactions], Awaitable[Result]],
]:
    """Binds a function that opens several transactions, or none, through its argument."""

    def bind(
        function: Callable[[OperationTransactions], Awaitable[Result]],
    ) -> Callable[[OperationTransactions], Awaitable[Result]]:
        _add(name, run=function, in_session=True)
        return function

    return bind


def tenant_setting(
    name: str,
) -> Callable[
    [Callable[[OperationContext, OperationCall], Awaitable[Result]]],
    Callable[[OperationContext, OperationCall], Awaitable[Result]],
]:
    """Binds a function that changes the tiers, the quota or the worthiness of the tenant in one
    transaction. What this process knows of them is read again after it, whatever its end."""

    def bind(
        function: Callable[[OperationContext, OperationCall], Awaitable[Result]],
    ) -> Callable[[OperationContext, OperationCall], Awaitable[Result]]:
        @wraps(function)
        async def run(transactions: OperationTransactions) -> Result:
            try:
                return await transactions.write(function, transactions.call)
            finally:
                transactions.service.tiers.forget(transactions.principal.tenant)

        _add(name, run=run, in_session=True)
        return function

    return bind


def _add(name: str, **properties: Any) -> None:
    """Raises LookupError for an unknown operation name, or a name that already has a function."""
    if name not in OPERATIONS_BY_NAME or name in FUNCTIONS:
        raise LookupError(f"{name} is not an operation without a function")
    FUNCTIONS[name] = BoundFunction(changes=OPERATIONS_BY_NAME[name].changes, **properties)
