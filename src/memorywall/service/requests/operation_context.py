"""The context of one operation: its transaction, and the principal and instant it is bound to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from memorywall.policy.decide import decide
from memorywall.records.clock import format_instant
from memorywall.records.decision import Decision, Target, Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryAccessError, MemoryNotFoundError
from memorywall.records.lease import Lease
from memorywall.records.namespace import Namespace
from memorywall.records.principal import Principal
from memorywall.records.tier import Tier
from memorywall.service.requests.services import SharedServices
from memorywall.service.requests.tenant_tiers import TenantTiers
from memorywall.storage.port import Transaction
from memorywall.wire.operation import Operation

Source = TypeVar("Source")
Built = TypeVar("Built")

_BUILT_AT_ONCE = 16


async def _stay_authenticated() -> None:
    """Does nothing: the default for surfaces whose callers cannot lose their authentication."""


class OperationCall(msgspec.Struct):
    """A decoded and authenticated request, as a surface passes it to the runner.

    path: the parameters of the operation's path, by name
    content: the body as it was sent, if there is one
    if_none_match: whether the request must create, as with `If-None-Match: *`
    known: the value of If-None-Match of a conditional read, None without one
    fingerprint: identifies equal requests for an idempotency key
    wants_stream: whether the caller requests a stream instead of a page
    subject: the people that the request is bound to, as in X-User
    session: the session that the request is bound to, as in X-Session-ID
    resume_after: the event after which a stream resumes, None to use the query
    prepared: what the operation has looked up before its transaction, see `BoundFunction.prepare`
    reauthenticate: raises AuthenticationError once the caller's key is revoked
    lasting: set by a read of one entry whose result depends on the caller and on the store only,
        until the entry expires: the entry with its value in clear text; None for other results
    """

    operation: Operation
    principal: Principal
    path: Mapping[str, str] = msgspec.field(default_factory=dict)
    query: Any = None
    body: Any = None
    content: bytes = b""
    if_match: int | None = None
    if_none_match: bool = False
    known: str | None = None
    subject: str | None = None
    session: str | None = None
    idempotency_key: str | None = None
    fingerprint: bytes = b""
    wants_stream: bool = False
    resume_after: int | None = None
    prepared: Any = None
    reauthenticate: Callable[[], Awaitable[None]] = _stay_authenticated
    lasting: Entry | None = None

    @property
    def version(self) -> int:
        """The version in If-Match, for operations that require one."""
        if self.if_match is None:
            raise LookupError("this operation does not require If-Match")
        return self.if_match


class WorkNeededError(Exception):
    """Raised by a function, before its first change, because it takes long. `run_read` and
    `run_write` run it again as a long one, with the result of the work in `OperationContext.done`.

    source: what the work was made of; default: None
    work: the part that needs no transaction, which is done in a thread; default: nothing
    """

    def __init__(self, source: Any = None, work: Callable[[], Any] = lambda: None) -> None:
        super().__init__("this takes too long for a transaction")
        self.source = source
        self.work = work


def hidden_entry() -> MemoryNotFoundError:
    """The refusal of an entry that the principal may not know of: that of a missing one."""
    error = MemoryNotFoundError()
    error.hides_refusal = True
    return error


class OperationContext:
    """The argument of an operation function, bound to a tenant, a principal and an instant.

    service: clock, ids, cipher and settings of the open store
    transaction: bound to the tenant
    moment: the instant of the operation, in milliseconds since the epoch
    now: the same in the stored form
    lease: the live lease of the request's fencing token; None without a token, and for the token
        of no such lease
    is_repeated: whether the result is a stored response, which needs no lease any more
    is_decided: whether an access decision has been taken; see `OperationRunner`
    key_holders: the principals of the tenant's API keys; None before the first use
    namespaces: namespaces that were read for decisions, by name; None before the first one
    tiers: the tiers of the tenant, None before the first use; see `load_tiers`
    session: the entry of the request's session as this transaction has read it at its beginning;
        None outside a session
    evicted: the entries that this operation has evicted from full tiers
    nearly_full: the tier of which this operation has found a capacity nearly reached
    done: the sources and results of work for which the function has raised WorkNeededError
    """

    __slots__ = (
        "done",
        "evicted",
        "is_decided",
        "is_repeated",
        "key_holders",
        "lease",
        "moment",
        "namespaces",
        "nearly_full",
        "now",
        "principal",
        "service",
        "session",
        "tiers",
        "transaction",
    )

    def __init__(
        self,
        service: SharedServices,
        transaction: Transaction,
        principal: Principal,
        moment: int,
        session: Entry | None = None,
        done: Sequence[tuple[Any, Any]] = (),
    ) -> None:
        self.done = done
        self.service = service
        self.transaction = transaction
        self.principal = principal
        self.moment = moment
        self.now = format_instant(moment)
        self.lease: Lease | None = None
        self.is_decided = False
        self.is_repeated = False
        self.session = session
        self.namespaces: dict[str, Namespace | None] | None = None
        self.key_holders: frozenset[str] | None = None
        self.tiers: TenantTiers | None = None
        self.evicted: list[Entry] = []
        self.nearly_full: Tier | None = None

    @property
    def tenant(self) -> str:
        """The tenant of the operation."""
        return self.principal.tenant

    @property
    def is_system(self) -> bool:
        """Whether the principal is the server itself."""
        return self.principal.maintenance is not None

    def take_session(self, session_id: str) -> Entry | None:
        """Returns the entry of the request's session once: the operation may change it afterwards.
        Returns None for another session."""
        entry = self.session
        if entry is None or entry.id != session_id:
            return None
        self.session = None
        return entry

    async def load_tiers(self) -> TenantTiers:
        """The tiers as the settings make them and the tenant narrows them."""
        if self.tiers is None:
            self.tiers = await self.service.tiers.load(self.transaction, self.service.settings)
        return self.tiers

    def require_long_run(self) -> None:
        """Raises WorkNeededError, unless the function runs again as a long one already."""
        if not self.done:
            raise WorkNeededError

    async def build(
        self, function: Callable[[Source], Built], sources: Iterable[Source]
    ) -> list[Built]:
        """Returns what a function makes of each source. Other requests may run between them."""
        built: list[Built] = []
        for source in sources:
            built.append(function(source))
            if len(built) % _BUILT_AT_ONCE == 0:
                await self.transaction.give_way()
        return built

    def decide(self, verb: Verb, target: Target) -> Decision:
        """Returns the access decision with its reason; see `policy.decide`."""
        self.is_decided = True
        return decide(self.principal, verb, target)

    def allows(self, verb: Verb, target: Target) -> bool:
        """Returns whether the principal may do this."""
        return self.decide(verb, target).allowed

    def decide_by_row(self) -> None:
        """Counts as an access decision, for a list that decides about each row and may find no
        row."""
        self.is_decided = True

    def authorize(self, verb: Verb, target: Target) -> None:
        """Raises MemoryAccessError unless the principal may do this, or MemoryNotFoundError if a
        refusal would reveal that the object exists."""
        self.is_decided = True
        decision = decide(self.principal, verb, target)
        if decision.hidden:
            raise hidden_entry()
        if not decision.allowed:
            raise MemoryAccessError(f"not allowed to {verb} this: {decision.reason}")


RecheckFunction = Callable[[OperationContext, OperationCall], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundFunction:
    """A function bound to an operation.

    run: takes an `OperationContext`, or an `OperationTransactions` when `in_session` is true
    in_session: whether the function opens its transactions through its session; default: false
    changes: whether the operation may change the store; default: false
    is_long: whether a call may take more than a few milliseconds of the writer's or the event
        loop's time; None for no
    shows: the ids of the entries in a result; their removal erases the stored response
    recheck: raises an error if the stored response may not be returned to the caller any more
    repeat_verbs: what the caller must be allowed to do with the entries of a stored response
    prepare: looks up, with an `OperationTransactions`, what becomes `OperationCall.prepared`: a
        search cannot run in the transaction of a write
    """

    run: Callable[..., Awaitable[Any]]
    in_session: bool = False
    changes: bool = False
    is_long: Callable[[OperationCall], bool] | None = None
    shows: Callable[[Any], tuple[str, ...]] | None = None
    recheck: RecheckFunction | None = None
    repeat_verbs: tuple[Verb, ...] = (Verb.UPDATE, Verb.READ)
    prepare: Callable[..., Awaitable[Any]] | None = None
