"""Work that the server does on its own, under system principals with one permission each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from memorywall.records.decision import Target, Verb
from memorywall.records.principal import Maintenance, Principal, PrincipalKind
from memorywall.records.tier import Isolation
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.operation_runner import run_read, run_write

Result = TypeVar("Result")


def system_principal(tenant: str, maintenance: Maintenance) -> Principal:
    """The principal that may only do one kind of maintenance in one tenant."""
    return Principal(
        tenant=tenant,
        id=maintenance.value,
        kind=PrincipalKind.SERVICE,
        permissions=frozenset(),
        maintenance=maintenance,
    )


async def maintain(
    service: SharedServices,
    tenant: str,
    maintenance: Maintenance,
    function: Callable[[OperationContext], Awaitable[Result]],
    *,
    long: bool = False,
) -> Result:
    """Runs a function that writes, as the system principal of this maintenance.

    long: whether the function may take more than a few milliseconds of the writer's time; default:
        false
    """
    authorized = _authorize(maintenance, function)
    return await run_write(service, system_principal(tenant, maintenance), authorized, long=long)


async def inspect(
    service: SharedServices,
    tenant: str,
    maintenance: Maintenance,
    function: Callable[[OperationContext], Awaitable[Result]],
    *,
    long: bool = False,
) -> Result:
    """Runs a function that only reads, as the system principal of this maintenance.

    long: whether the function may take more than a few milliseconds; default: false
    """
    authorized = _authorize(maintenance, function)
    return await run_read(service, system_principal(tenant, maintenance), authorized, long=long)


def _authorize(
    maintenance: Maintenance, function: Callable[[OperationContext], Awaitable[Result]]
) -> Callable[[OperationContext], Awaitable[Result]]:
    """Returns the function preceded by the access decision for its maintenance."""

    async def authorized(context: OperationContext) -> Result:
        target = Target(tenant=context.tenant, isolation=Isolation.AGENT, maintenance=maintenance)
        context.authorize(Verb.MAINTAIN, target)
        return await function(context)

    return authorized
