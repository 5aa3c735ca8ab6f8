"""`client.claims`: exclusive ownership of keys of shared state, for a while, in no colour."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
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
from memorywall.sdk.filters import without_absent
from memorywall.sdk.retry import call
from memorywall.wire.leases import ClaimListResponse, ClaimResponse

_FIRST_WAIT = 0.05
_LONGEST_WAIT = 2.0
_LOST = "this claim is over; what was done under it since may have been done by another as well"


@dataclass(frozen=True, slots=True)
class _Term:
    """How a claim stands: what the server last said of it, and when its time is over here."""

    view: ClaimResponse
    until: float


class Claim:
    """A key of shared state that is held by `client.claims.hold`.

    It is judged by a clock that was started before the server was asked, so that its holder never
    believes to hold it longer than the server does. Once lost it stays lost.
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
        """What is claimed."""
        return self._term.view.key

    @property
    def scope(self) -> str:
        """The scope of shared state it is in."""
        return self._term.view.scope

    @property
    def token(self) -> int:
        """The fencing token: greater than that of everyone who held it before."""
        return self._term.view.fencing_token

    @property
    def expires_at(self) -> str:
        """Until when it lasts by the server's clock, unless it is renewed."""
        return self._term.view.expires_at

    @property
    def until(self) -> float:
        """The same by the clock of its holder, at the latest."""
        return self._term.until

    @property
    def lost(self) -> bool:
        """Whether it is held no more, or may be held no more."""
        if not self._over and self._clock() >= self._term.until:
            self._over = True
        return self._over

    def check(self) -> None:
        """Raises FencedError when the claim is lost."""
        if self.lost:
            raise FencedError(_LOST)

    @property
    def is_released(self) -> bool:
        """Whether its holder has left the `with` block."""
        return self._given_back

    def covers(self, state: ClientState, namespace: str, key: str) -> bool:
        """Whether a client's writes to this entry are made under the claim."""
        mine = (self._state, self._namespace, self.key)
        return mine[0] is state and mine[1:] == (namespace, key)

    def extend(self, view: ClaimResponse, until: float) -> None:
        """The server has let it last longer. What came too late is of no use any more."""
        if not self.lost:
            self._term = _Term(view, until)

    def lose(self) -> None:
        """The server has said that it is over."""
        self._over = True

    def give_back(self) -> None:
        """Its holder is through with it."""
        self._given_back = True


class ClaimsCore:
    """The operations on claims, as scripts for a driver.

    jitter: a number from 0 to 1, another one each time
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
        purpose: what for, for others to read
        wait: seconds for which to try again while another holds it

        Writes under it pass its `fencing_token` on: `hold` does all of that by itself. Raises
        LeaseHeldError, with what is held as `existing_lease`; MemoryCapacityError,
        MemoryAccessError.
        If the reply is lost, MemoryTransportError is raised and the key may stay claimed until its
        time is over, for this client as well: nobody knows the token then.
        """
        view, _ = yield from self._take(key, ttl, scope, purpose, wait)
        return view

    def renew(
        self, claim: Claim | ClaimResponse | str, ttl: int = 300
    ) -> RequestGenerator[ClaimResponse]:
        """Lets a claim, or the one with this id, last `ttl` seconds from now. Raises FencedError
        when it is over, ResourceNotFoundError when it was given back or another came after it."""
        begun = yield Now()
        response = yield from retry.again(_renewal(_id(claim), ttl))
        view = decode(response, ClaimResponse)
        if isinstance(claim, Claim):
            claim.extend(view, begun + ttl)
        return view

    def release(self, claim: Claim | ClaimResponse | str) -> RequestGenerator[None]:
        """Gives a claim, or the one with this id, back. Raises ResourceNotFoundError."""
        return retry.remove("release_claim", claim_id=_id(claim))

    def get(self, claim_id: str) -> RequestGenerator[ClaimResponse]:
        """A claim of anybody's. Raises ResourceNotFoundError, MemoryAccessError."""
        return call("get_claim", ClaimResponse, claim_id=claim_id)

    def list(
        self, scope: str | None = None, *, agent_id: str | None = None
    ) -> RequestGenerator[Sequence[ClaimResponse]]:
        """What is claimed now: in a scope, or by an agent, by default the client's own."""
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
        """Renews a claim whenever half of its time is over, until it is given back or lost."""
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
                # One attempt at a time: whether there is time for another is asked in between.
                response = yield _renewal(claim.id, claim.ttl)
                claim.extend(decode(response, ClaimResponse), begun + claim.ttl)
                pause = None
            except (FencedError, MemoryNotFoundError):
                claim.lose()
                return
            except MemorywallError:
                # It may be heard the next time; until its time is over the claim is held.
                pause = min(claim.ttl / 10, _LONGEST_WAIT) * (0.5 + self._jitter() / 2)

    def end(self, claim: Claim) -> RequestGenerator[None]:
        """Gives a claim back as far as that is possible. What is not given back runs out."""
        try:
            # What the server answers is all the same: given back now or lost before, it is over.
            yield from retry.if_unsent(
                Request(operation="release_claim", path={"claim_id": claim.id})
            )
        except MemorywallError:
            return

    def _take(
        self, key: str, ttl: int, scope: str, purpose: str | None, wait: float
    ) -> RequestGenerator[tuple[ClaimResponse, float]]:
        """A claim, and when its time is over by the driver's clock."""
        body = without_absent({"key": key, "scope": scope, "ttl_seconds": ttl, "purpose": purpose})
        request = Request(operation="acquire_claim", body=body)
        begun = yield Now()
        patience = begun + wait
        pause = _FIRST_WAIT
        while True:
            try:
                response = yield from retry.if_unsent(request)
                return decode(response, ClaimResponse), begun + ttl
            except LeaseHeldError:
                now = yield Now()
                if now >= patience:
                    raise
            yield Pause(min(patience - now, pause * (0.5 + self._jitter() / 2)))
            pause = min(2 * pause, _LONGEST_WAIT)
            begun = yield Now()


def _renewal(claim_id: str, ttl: int) -> Request:
    return Request(operation="renew_claim", path={"claim_id": claim_id}, body={"ttl_seconds": ttl})


def _id(claim: Claim | ClaimResponse | str) -> str:
    return claim if isinstance(claim, str) else claim.id
