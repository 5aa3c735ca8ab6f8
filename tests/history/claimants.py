"""Clients that take claims, write under them, and do all that a bad holder does."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from tests.history.budget import Budget
from tests.history.line import Channel, Reply, Request, Unanswered
from tests.history.record import ClaimOperation, Kind, Outcome, Recorder
from tests.history.writers import EntryCaller, Known, Spot

CLAIMS = "/api/v1/claims"
GLOBAL = "shared/global"
TTL = 1
_OVER = {"FENCED", "NOT_FOUND"}


class ClaimReply(msgspec.Struct):
    """What the checker needs of a claim in a reply."""

    id: str
    agent_id: str
    fencing_token: int
    expires_at: str
    acquired_at: str
    renewed_at: str


class Refusal(msgspec.Struct):
    """What the checker needs of a problem document."""

    error: str
    existing_lease: ClaimReply | None = None


_decode_claim = msgspec.json.Decoder(ClaimReply).decode
_decode_refusal = msgspec.json.Decoder(Refusal).decode


class Terms(Protocol):
    """From the server's time to that of the history: when a claim ends, at least and at most."""

    def begun(self, operation: ClaimOperation) -> None:
        """Sets `held_until` of an acquisition or renewal that may take effect from now on."""
        ...

    def answered(self, operation: ClaimOperation, claim: ClaimReply) -> None:
        """Sets `lapsed_by` of one that did, and `held_until` if only now it is known."""
        ...

    async def outlast(self, claim: ClaimReply | None) -> None:
        """Comes back when the claim, or any that is held now, is over unless renewed."""
        ...


@dataclass(slots=True)
class Tokens:
    """The tokens last given for each name, for clients that use what is not theirs."""

    given: dict[Spot, int] = field(default_factory=dict)


class ClaimCaller:
    """Sends requests about claims and writes down what comes of them."""

    def __init__(
        self, channel: Channel, recorder: Recorder, terms: Terms, agent: str, number: int
    ) -> None:
        self._channel = channel
        self._recorder = recorder
        self._terms = terms
        self._agent = agent
        self._number = number

    async def acquire(self, spot: Spot) -> ClaimReply | None:
        body = {"key": spot.key, "scope": "global", "ttl_seconds": TTL}
        return await self._call(spot, Kind.ACQUIRE, Request("POST", CLAIMS, body))

    async def renew(self, spot: Spot, claim: ClaimReply) -> ClaimReply | None:
        request = Request("PATCH", f"{CLAIMS}/{claim.id}", {"ttl_seconds": TTL})
        return await self._call(spot, Kind.RENEW, request, claim.fencing_token)

    async def release(self, spot: Spot, claim: ClaimReply) -> None:
        request = Request("DELETE", f"{CLAIMS}/{claim.id}")
        await self._call(spot, Kind.RELEASE, request, claim.fencing_token)

    async def _call(
        self, spot: Spot, kind: Kind, request: Request, token: int | None = None
    ) -> ClaimReply | None:
        await self._channel.ready()
        operation = self._recorder.begin_claim(
            self._number, self._agent, kind, str(spot), token=token
        )
        if kind is not Kind.RELEASE:
            self._terms.begun(operation)
        try:
            reply = await self._channel.exchange(request)
        except Unanswered:
            return None
        operation.returned = self._recorder.now()
        return self._take(operation, reply)

    def _take(self, operation: ClaimOperation, reply: Reply) -> ClaimReply | None:
        if reply.status in (200, 201):
            claim = _decode_claim(reply.body)
            assert claim.agent_id == self._agent, reply.body
            assert operation.token in (None, claim.fencing_token), reply.body
            operation.outcome, operation.token = Outcome.OK, claim.fencing_token
            self._terms.answered(operation, claim)
            return claim
        if reply.status == 204:
            operation.outcome = Outcome.OK
            return None
        operation.outcome = Outcome.REFUSED
        refusal = _decode_refusal(reply.body)
        operation.reason = refusal.error
        expected = {"LEASE_HELD"} if operation.kind is Kind.ACQUIRE else _OVER
        assert refusal.error in expected, f"{operation.kind}: {reply.status} {reply.body[:500]!r}"
        if operation.kind is Kind.ACQUIRE:
            assert refusal.existing_lease is not None, reply.body
            operation.shown_token = refusal.existing_lease.fencing_token
            operation.shown_holder = refusal.existing_lease.agent_id
        return None


class Claimant:
    """One client of an agent. Mostly it behaves: takes a claim, writes, renews, gives it back."""

    def __init__(
        self,
        claims: ClaimCaller,
        entries: EntryCaller,
        known: Known,
        tokens: Tokens,
        terms: Terms,
        seed: int,
        spots: Sequence[Spot],
        rest: Callable[[float], Awaitable[None]],
    ) -> None:
        self._claims = claims
        self._entries = entries
        self._known = known
        self._tokens = tokens
        self._terms = terms
        self._random = random.Random(seed)
        self._spots = spots
        self._rest = rest

    async def run(self, budget: Budget) -> None:
        """Works until nothing is left to do."""
        while budget.take():
            spot = self._random.choice(self._spots)
            dice = self._random.random()
            if dice < 0.12:
                await self._write(spot, None)
            elif dice < 0.22:
                await self._write(spot, self._any_token(spot))
            elif dice < 0.3:
                await self._entries.find(spot)
            else:
                await self._compete(spot, budget)

    def _any_token(self, spot: Spot) -> int | None:
        """The token of whoever has the claim, or had it; or that of quite another claim."""
        given = self._tokens.given
        other = self._random.choice(self._spots)
        return given.get(other if self._random.random() < 0.3 else spot)

    async def _compete(self, spot: Spot, budget: Budget) -> None:
        claim = await self._claims.acquire(spot)
        if claim is None:
            await self._rest(self._random.uniform(0.005, 0.08))
            return
        self._tokens.given[spot] = claim.fencing_token
        await self._work(spot, claim, budget)
        dice = self._random.random()
        if dice < 0.04:
            # It crashes: nobody gives the claim back, and it has to end by itself.
            return
        if dice < 0.12:
            # It is paused for too long, does not notice, and goes on as before.
            await self._terms.outlast(claim)
            await self._work(spot, claim, budget)
        await self._claims.release(spot, claim)

    async def _work(self, spot: Spot, claim: ClaimReply, budget: Budget) -> None:
        for _ in range(self._random.randint(1, 8)):
            if not budget.take():
                return
            if self._random.random() < 0.2:
                await self._claims.renew(spot, claim)
            else:
                await self._write(spot, claim.fencing_token)

    async def _write(self, spot: Spot, token: int | None) -> None:
        place = self._known.places.get(spot)
        if place is None:
            await self._entries.create(spot, token)
        elif self._random.random() < 0.06:
            await self._entries.delete(spot, *place, token)
        else:
            await self._entries.update(spot, *place, token)


async def finish(
    claims: ClaimCaller, entries: EntryCaller, spot: Spot, terms: Terms, known: Known
) -> None:
    """In the end every claim can be had, at the latest when the one in the way has ended, and the
    entry is as it was last written."""
    claim = await claims.acquire(spot)
    if claim is None:
        await terms.outlast(None)
        claim = await claims.acquire(spot)
    assert claim is not None, f"{spot} is held by nobody who still works"
    await entries.find(spot)
    if spot in known.places:
        await entries.read(spot, known.places[spot][0])
