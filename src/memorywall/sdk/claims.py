"""`client.claims`: exclusive ownership of keys of shared state for a limited time."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from memorywall.records.errors import (
    FencedError,
    LeaseHeldError,
    MemoryNotFoundError,
    MemorywallError,
)
from memorywall.sdk import retry
from memorywall.sdk.client_state import ClientState, shared_namespace
from memorywall.sdk.effects import Now, Pause, Request, RequestGenerator
from memorywall.sdk.errors import decode
from memorywall.sdk.executors import AwaitingDriver, BlockingDriver
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.fencing import enter, leave
from memorywall.sdk.filters import without_absent
from memorywall.sdk.retry import call
from memorywall.wire.leases import ClaimListResponse, ClaimResponse

_FIRST_WAIT = 0.05
_LONGEST_WAIT = 2.0
_LOST = "this claim is over; what was done under it since may have been done by another as well"


@dataclass(frozen=True, slots=True)
class _Term:
    """The state of a claim: the server's last response, and the local expiry."""

    view: ClaimResponse
    until: float


class Claim:
    """A key of shared state that `client.claims.hold` has claimed.

    The expiry is measured by a clock that starts before the request, so that the holder never
    considers the claim live for longer than the server does. A lost claim stays lost.
    """

    def __init__(
        self,
        state: ClientState,
        namespace: str,
        view: ClaimResponse,
        until: float,
        ttl: int,
        clock: Callable[[], float],
    ) -> None:
        self.ttl = ttl
        self._state = state
        self._namespace = namespace
        self._term = _Term(view, until)
        self._clock = clock
        self._over = False
        self._given_back = False

    def __repr__(self) -> str:
        state = "lost" if self.lost else f"held until {self.expires_at}"
        return f"<Claim {self.key!r} in {self.scope!r}, token {self.token}, {state}>"

    @property
    def id(self) -> str:
        """The claim's id."""
        return self._term.view.id

    @property
    def key(self) -> str:
        """The claimed key."""
        return self._term.view.key

    @property
    def scope(self) -> str:
        """The scope of the key."""
        return self._term.view.scope

    @property
    def token(self) -> int:
        """The fencing token: greater than the token of every earlier claim of the key."""
        return self._term.view.fencing_token

    @property
    def expires_at(self) -> str:
        """The expiry without renewal, by the server's clock."""
        return self._term.view.expires_at

    @property
    def until(self) -> float:
        """The latest possible expiry, by the holder's clock."""
        return self._term.until

    @property
    def lost(self) -> bool:
        """Whether the claim is over, or may be over."""
        if not self._over and self._clock() >= self._term.until:
            self._over = True
        return self._over

    def check(self) -> None:
        """Raises FencedError if the claim is lost."""
        if self.lost:
            raise FencedError(_LOST)

    @property
    def is_released(self) -> bool:
        """Returns whether the holder has left the `with` block."""
        return self._given_back

    def covers(self, state: ClientState, namespace: str, key: str) -> bool:
        """Returns whether a client's writes to this entry use the claim."""
        mine = (self._state, self._namespace, self.key)
        return mine[0] is state and mine[1:] == (namespace, key)

    def extend(self, view: ClaimResponse, until: float) -> None:
        """Records a renewal by the server. A renewal that arrives too late has no effect."""
        if not self.lost:
            self._term = _Term(view, until)

    def lose(self) -> None:
        """Records that the server has ended the claim."""
        self._over = True

    def give_back(self) -> None:
        """Records that the holder has left the `with` block."""
        self._given_back = True


class ClaimsCore:
    """The operations on claims, as request generators.

    jitter: returns a random number from 0 to 1
    """

    def __init__(self, state: ClientState, jitter: Callable[[], float] = random.random) -> None:
        self._state = state
        self._jitter = jitter

    def acquire(
        self,
        key: str,
        ttl: int = 300,
        scope: str = "global",
        *,
        purpose: str | None = None,
        wait: float = 0.0,
    ) -> RequestGenerator[ClaimResponse]:
        """Claims a key of shared state for `ttl` seconds.

        scope: `global`, `team:` and a team's name, or `agent`
        purpose: a description for other agents
        wait: seconds for which to try again while another client holds the key

        Writes under the claim must pass its `fencing_token`; `hold` does this automatically. Raises
        LeaseHeldError, with the current claim as `existing_lease`; MemoryCapacityError,
        MemoryAccessError. If the response is lost, MemoryTransportError is raised, and the key may
        remain claimed until the claim expires, for this client as well, because no client knows the
        token.
        """
        view, _ = yield from self._take(key, ttl, scope, purpose, wait)
        return view

    def renew(
        self, claim: Claim | ClaimResponse | str, ttl: int = 300
    ) -> RequestGenerator[ClaimResponse]:
        """Renews a claim, or the claim with this id, for `ttl` seconds from now. Raises FencedError
        if it is over, ResourceNotFoundError if it was released or another claim followed."""
        begun = yield Now()
        response = yield from retry.send_repeatable(_renewal(_id(claim), ttl))
        view = decode(response, ClaimResponse)
        if isinstance(claim, Claim):
            claim.extend(view, begun + ttl)
        return view

    def release(self, claim: Claim | ClaimResponse | str) -> RequestGenerator[None]:
        """Releases a claim, or the claim with this id. Raises ResourceNotFoundError."""
        return retry.remove("release_claim", claim_id=_id(claim))

    def get(self, claim_id: str) -> RequestGenerator[ClaimResponse]:
        """Returns a claim of any agent. Raises ResourceNotFoundError, MemoryAccessError."""
        return call("get_claim", ClaimResponse, claim_id=claim_id)

    def list(
        self, scope: str | None = None, *, agent_id: str | None = None
    ) -> RequestGenerator[Sequence[ClaimResponse]]:
        """Returns live claims of a scope or of an agent. Default: the client's own."""
        query = {"scope": scope, "agent_id": agent_id}
        return (yield from call("list_claims", ClaimListResponse, query=query)).claims

    def begin(
        self,
        key: str,
        ttl: int,
        scope: str,
        purpose: str | None,
        wait: float,
        clock: Callable[[], float],
    ) -> RequestGenerator[Claim]:
        """Claims a key for `hold`."""
        namespace = yield from shared_namespace(self._state, scope)
        view, until = yield from self._take(key, ttl, scope, purpose, wait)
        return Claim(self._state, namespace, view, until, ttl, clock)

    def keep(self, claim: Claim) -> RequestGenerator[None]:
        """Renews a claim at half of its time until it is released or lost."""
        pause: float | None = None
        while True:
            if pause is None:
                now = yield Now()
                pause = max(0.0, claim.until - claim.ttl / 2 - now)
            yield Pause(pause)
            if claim.is_released or claim.lost:
                return
            begun = yield Now()
            try:
                # One attempt at a time; the remaining time is checked between attempts.
                response = yield _renewal(claim.id, claim.ttl)
                claim.extend(decode(response, ClaimResponse), begun + claim.ttl)
                pause = None
            except (FencedError, MemoryNotFoundError):
                claim.lose()
                return
            except MemorywallError:
                # The next attempt may succeed; the claim is held until its expiry.
                pause = min(claim.ttl / 10, _LONGEST_WAIT) * (0.5 + self._jitter() / 2)

    def end(self, claim: Claim) -> RequestGenerator[None]:
        """Releases a claim if possible. An unreleased claim expires."""
        try:
            # The response has no effect: the claim is over in every case.
            yield from retry.send_if_unsent(
                Request(operation="release_claim", path={"claim_id": claim.id})
            )
        except MemorywallError:
            return

    def _take(
        self, key: str, ttl: int, scope: str, purpose: str | None, wait: float
    ) -> RequestGenerator[tuple[ClaimResponse, float]]:
        """Returns a claim and its expiry by the driver's clock."""
        body = without_absent({"key": key, "scope": scope, "ttl_seconds": ttl, "purpose": purpose})
        request = Request(operation="acquire_claim", body=body)
        begun = yield Now()
        patience = begun + wait
        pauses = retry.backoff(_FIRST_WAIT, _LONGEST_WAIT, self._jitter)
        while True:
            try:
                response = yield from retry.send_if_unsent(request)
                return decode(response, ClaimResponse), begun + ttl
            except LeaseHeldError:
                now = yield Now()
                if now >= patience:
                    raise
            yield Pause(min(patience - now, next(pauses)))
            begun = yield Now()


def _renewal(claim_id: str, ttl: int) -> Request:
    return Request(operation="renew_claim", path={"claim_id": claim_id}, body={"ttl_seconds": ttl})


def _id(claim: Claim | ClaimResponse | str) -> str:
    return claim if isinstance(claim, str) else claim.id


class _ClaimsMethods:
    acquire = method(ClaimsCore.acquire)
    renew = method(ClaimsCore.renew)
    release = method(ClaimsCore.release)
    get = method(ClaimsCore.get)
    list = method(ClaimsCore.list)


class ClaimsClient(_ClaimsMethods, Facade[ClaimsCore]):
    """Claims keys of shared state for a limited time."""

    @contextmanager
    def hold(
        self,
        key: str,
        ttl: int = 30,
        *,
        scope: str = "global",
        renew: bool = True,
        purpose: str | None = None,
        wait: float = 0.0,
    ) -> Iterator[Claim]:
        """Claims a key of shared state for the duration of a `with` block.

        ttl: seconds until the claim expires without renewal
        renew: whether a background thread or task renews the claim at half of that time
        wait: seconds for which to try again while another client holds the key; see `acquire`

        Writes of `client.shared` to this key and scope in the block carry the claim's token. After
        the claim is over they raise FencedError. The token applies to the thread or task that
        entered the block and to the tasks that it starts, not to others that share the client. At
        the end of the block the claim is released; a claim that is lost by then raises no error.
        `claim.lost` and `claim.check()` report the state.
        """
        claim = self.driver.run(self.core.begin(key, ttl, scope, purpose, wait, self.driver.clock))
        stop = threading.Event()
        enter(claim)
        try:
            if renew:
                threading.Thread(
                    target=self._keep, args=(claim, stop), name="memorywall-claim", daemon=True
                ).start()
            yield claim
        finally:
            claim.give_back()
            stop.set()
            leave(claim)
            with _unless_closed(self.driver):
                self.driver.run(self.core.end(claim))

    def _keep(self, claim: Claim, stop: threading.Event) -> None:
        driver = self.driver.with_pause(stop.wait)
        with _unless_closed(driver):
            driver.run(self.core.keep(claim))


class AsyncClaimsClient(_ClaimsMethods, AsyncFacade[ClaimsCore]):
    """Claims keys of shared state for a limited time."""

    @asynccontextmanager
    async def hold(
        self,
        key: str,
        ttl: int = 30,
        *,
        scope: str = "global",
        renew: bool = True,
        purpose: str | None = None,
        wait: float = 0.0,
    ) -> AsyncIterator[Claim]:
        claim = await self.driver.run(
            self.core.begin(key, ttl, scope, purpose, wait, self.driver.clock)
        )
        keeping = asyncio.create_task(self._keep(claim)) if renew else None
        enter(claim)
        try:
            yield claim
        finally:
            claim.give_back()
            leave(claim)
            if keeping is not None:
                keeping.cancel()
            # Cancellation within the block also releases the claim.
            ending = asyncio.create_task(self._end(claim))
            _ending.add(ending)
            ending.add_done_callback(_ending.discard)
            await asyncio.shield(ending)

    hold.__doc__ = ClaimsClient.hold.__doc__

    async def _keep(self, claim: Claim) -> None:
        with _unless_closed(self.driver):
            await self.driver.run(self.core.keep(claim))

    async def _end(self, claim: Claim) -> None:
        with _unless_closed(self.driver):
            await self.driver.run(self.core.end(claim))


@contextmanager
def _unless_closed(driver: BlockingDriver | AwaitingDriver) -> Iterator[None]:
    """Ignores that a client that was closed within the block cannot send the release: the claim
    expires."""
    try:
        yield
    except RuntimeError:
        if not driver.is_closed:
            raise


# The event loop keeps only weak references to tasks.
_ending: set[asyncio.Task[None]] = set()
