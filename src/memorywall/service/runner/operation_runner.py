"""Runs the operations of every surface.

An operation is one record of the operations table in `wire/` and one function that is bound to the
record. The runner opens the transaction, binds the context, checks the idempotency key, runs the
function, refuses to commit without an access decision, and counts refusals.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import msgspec

from memorywall.records.errors import (
    AuthenticationError,
    FencedError,
    MemoryAccessError,
    MemoryNotFoundError,
    StorageFullError,
    UndecidedOperationError,
)
from memorywall.records.principal import Principal
from memorywall.service.access.forgotten_subjects import refuse_forgotten
from memorywall.service.access.known_names import as_known
from memorywall.service.access.session_binding import bind_request, take_part
from memorywall.service.requests.fencing import load_lease, require_lease
from memorywall.service.requests.operation_context import (
    BoundFunction,
    OperationCall,
    OperationContext,
    WorkNeededError,
)
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.idempotency import run_idempotent
from memorywall.storage.port import Transaction, TransactionFunction
from memorywall.wire.entries import WRITE_QUERIES
from memorywall.wire.results import HttpResponse

Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")
_MOST_INLINE = 16 * 1024
"""Bytes of a body whose checks may take a few milliseconds. Those of the largest value, against
schemas and for personal data, take more."""
_REFUSALS = (MemoryAccessError, FencedError, AuthenticationError)


class OperationTransactions:
    """The argument of an operation function that needs several transactions, or none.

    Each transaction of the session is bound and checked like that of any operation.

    index: the search index; this layer does not know its type
    """

    __slots__ = ("call", "index", "principal", "service")

    def __init__(self, service: SharedServices, call: OperationCall, index: object = None) -> None:
        self.service = service
        self.index = index
        self.call = call
        self.principal = call.principal

    async def read(
        self,
        function: Callable[Concatenate[OperationContext, Parameters], Awaitable[Result]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Runs a function in a read-only transaction."""
        return await run_read(self.service, self.principal, lambda c: function(c, *args, **kwargs))

    async def read_long(
        self,
        function: Callable[Concatenate[OperationContext, Parameters], Awaitable[Result]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Runs a function like `read`, without delaying others."""
        return await run_read(
            self.service, self.principal, lambda c: function(c, *args, **kwargs), long=True
        )

    async def write(
        self,
        function: Callable[Concatenate[OperationContext, Parameters], Awaitable[Result]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Runs a function in a write transaction and returns after the commit."""
        return await run_write(self.service, self.principal, lambda c: function(c, *args, **kwargs))

    async def write_long(
        self,
        function: Callable[Concatenate[OperationContext, Parameters], Awaitable[Result]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Runs a function like `write`, without delaying short writes."""
        return await run_write(
            self.service, self.principal, lambda c: function(c, *args, **kwargs), long=True
        )


class SearchIndex(Protocol):
    """The methods of a search index that the runner calls."""

    async def make_findable(self, tenant: str, entry_ids: Sequence[str]) -> None:
        """Returns when a search finds these entries; raises EntryNotIndexedError."""


class OperationRunner:
    """Runs the operation functions over one open store.

    functions: the bound functions by the name of their operation
    index: the search index, None without search
    """

    def __init__(
        self,
        service: SharedServices,
        functions: Mapping[str, BoundFunction],
        index: SearchIndex | None = None,
    ) -> None:
        self.service = service
        self._functions = functions
        self._index = index

    def is_one_transaction(self, call: OperationCall) -> bool:
        """Whether a call is one transaction and nothing else."""
        bound = self._functions[call.operation.name]
        return not bound.in_session and bound.prepare is None and not _waits(call)

    async def run(self, call: OperationCall) -> Any:
        """Runs a call and returns a wire struct, None, an `HttpResponse` or a `ResultStream`.

        Raises the errors of the operation, see `Operation.errors`.
        """
        bound, service = self._functions[call.operation.name], self.service
        principal = call.principal
        try:
            # A public operation has no principal.
            if principal is not None and not principal.id.isascii() and principal.is_named:
                call = msgspec.structs.replace(call, principal=await as_known(service, principal))
            if principal is not None and (
                call.subject is not None
                or call.session is not None
                or principal.limited_to
                or principal.session is not None
            ):
                call = await bind_request(service, call)
            if bound.in_session:
                return await bound.run(OperationTransactions(service, call, self._index))
            if bound.prepare is not None:
                transactions = OperationTransactions(service, call, self._index)
                prepared = await bound.prepare(transactions)
                call = msgspec.structs.replace(call, prepared=prepared)
            long = len(call.content) > _MOST_INLINE
            if bound.is_long is not None:
                long = long or bound.is_long(call)
            if not bound.changes:
                return await run_read(service, call.principal, bound.run, call, long=long)
            result = await self._write(bound, call, long=long)
            if _waits(call):
                await self._make_findable(bound, call, result)
            return result
        except _REFUSALS as error:
            self.service.refusals.note(call.operation.name, error)
            raise
        except MemoryNotFoundError as error:
            if error.hides_refusal:
                self.service.refusals.note(call.operation.name, error)
            raise

    async def _make_findable(self, bound: BoundFunction, call: OperationCall, result: Any) -> None:
        """Returns when a search finds the entries of a committed write."""
        if self._index is None or bound.shows is None:
            return
        if isinstance(result, HttpResponse):
            # The response was stored for an Idempotency-Key, so it is JSON already.
            result = msgspec.json.decode(result.body, type=call.operation.reply)
        await self._index.make_findable(call.principal.tenant, bound.shows(result))

    async def _write(self, bound: BoundFunction, call: OperationCall, *, long: bool) -> Any:
        service, principal = self.service, call.principal
        if call.idempotency_key is None:
            return await run_write(service, principal, bound.run, call, long=long)
        return await run_write(service, principal, run_idempotent, call, bound, long=long)


def _waits(call: OperationCall) -> bool:
    """Whether a write waits until a search finds its entries."""
    return type(call.query) in WRITE_QUERIES and call.query.wait_for is not None


async def run_read(
    service: SharedServices,
    principal: Principal,
    function: Callable[..., Awaitable[Result]],
    *arguments: Any,
    long: bool = False,
) -> Result:
    """Runs a function on one snapshot, bound to the principal and its tenant. It takes the context
    before `arguments`.

    long: whether the function may take more than a few milliseconds; default: false
    """
    done: list[tuple[Any, Any]] = []
    script = _bind(service, principal, function, *arguments, done=done)
    while True:
        try:
            return await service.store.read(principal.tenant, script, long=long or bool(done))
        except WorkNeededError as needed:
            done.append((needed.source, await service.store.compute(needed.work)))


async def run_write(
    service: SharedServices,
    principal: Principal,
    function: Callable[..., Awaitable[Result]],
    *arguments: Any,
    long: bool = False,
) -> Result:
    """Runs a function in a transaction, bound to the principal and its tenant. It takes the context
    before `arguments`.

    long: whether the function may take more than a few milliseconds of the writer's time; default:
        false
    Raises UndecidedOperationError without a commit if the function has taken no access decision.
    """
    done: list[tuple[Any, Any]] = []
    script = _bind(service, principal, function, *arguments, done=done)
    # A long write runs in a thread of its own, and most of a write to PostgreSQL is a wait for it.
    is_short = not long and service.settings.database_url is None
    while True:
        try:
            with service.writes if is_short and not done else nullcontext():
                return await service.store.write(principal.tenant, script, long=long or bool(done))
        except WorkNeededError as needed:
            done.append((needed.source, await service.store.compute(needed.work)))
        except StorageFullError as error:
            service.room.note_refusal(error)
            raise


def _bind(
    service: SharedServices,
    principal: Principal,
    function: Callable[..., Awaitable[Result]],
    *arguments: Any,
    done: Sequence[tuple[Any, Any]] = (),
) -> TransactionFunction[Result]:
    """Binds a function, which takes the context before `arguments`.

    done: see `OperationContext`
    """

    async def script(transaction: Transaction) -> Result:
        # The instant is read while the tenant's writes are serialized, in the order of commits.
        moment, caller, head = service.clock.now(), principal, None
        if principal.session is not None:
            caller, head = await take_part(service, transaction, principal, moment)
        context = OperationContext(service, transaction, caller, moment, head, done)
        if caller.fencing_token is not None:
            await load_lease(context, caller.fencing_token)
        result = await function(context, *arguments)
        if not context.is_decided:
            raise UndecidedOperationError("no access decision was taken; nothing was done")
        if caller.fencing_token is not None and not context.is_repeated:
            require_lease(context)
        if caller.said_at is not None and not context.is_repeated:
            await refuse_forgotten(context, caller.subjects or ())
        if context.nearly_full is not None:
            service.full_tiers.note(context.nearly_full, len(context.evicted))
        return result

    return script
