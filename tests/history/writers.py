"""Clients that create, read, change and delete entries as fast as they are answered."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

import msgspec

from tests.history.budget import Budget
from tests.history.line import Channel, Reply, Request, Unanswered
from tests.history.record import Kind, Operation, Outcome, Recorder
from tests.history.values import EntryReply, make_value, seen_in, tag_of

MEMORY = "/api/v1/memory"
_HOT = 0.35


@dataclass(frozen=True, slots=True)
class Spot:
    """A name that entries can have."""

    tier: str
    namespace: str
    key: str
    owner: str = ""

    def __str__(self) -> str:
        return f"{self.tier}:{self.owner}:{self.namespace}:{self.key}"

    def query(self) -> str:
        """The path that finds the entry of this name."""
        owner = f"&agent_id={quote(self.owner)}" if self.owner else ""
        return (
            f"{MEMORY}?namespace={quote(self.namespace, safe='')}&key={quote(self.key)}"
            f"&memory_type={self.tier}{owner}"
        )


class Page(msgspec.Struct):
    """What the checker needs of a page of entries."""

    entries: list[EntryReply]


class Refusal(msgspec.Struct):
    """What the checker needs of a problem document."""

    error: str
    current: EntryReply | None = None


_decode_entry = msgspec.json.Decoder(EntryReply).decode
_decode_page = msgspec.json.Decoder(Page).decode
_decode_refusal = msgspec.json.Decoder(Refusal).decode


@dataclass(slots=True)
class Known:
    """The id and version last heard of for each name, shared by clients so that they meet."""

    places: dict[Spot, tuple[str, int]] = field(default_factory=dict)


class EntryCaller:
    """Sends requests about entries and writes down what comes of them."""

    def __init__(
        self, channel: Channel, recorder: Recorder, known: Known, agent: str, number: int
    ) -> None:
        self._channel = channel
        self._recorder = recorder
        self._known = known
        self._agent = agent
        self._number = number

    async def create(self, spot: Spot, token: int | None = None) -> Operation:
        mark = self._recorder.new_mark(self._number)
        body = {
            "namespace": spot.namespace,
            "key": spot.key,
            "memory_type": spot.tier,
            "value": make_value(mark),
            "tags": [tag_of(mark)],
        }
        request = Request("POST", MEMORY, body, token=token)
        return await self._call(spot, Kind.CREATE, request, mark=mark)

    async def update(
        self, spot: Spot, entry: str, version: int, token: int | None = None
    ) -> Operation:
        mark = self._recorder.new_mark(self._number)
        body = {"value": make_value(mark), "tags": [tag_of(mark)]}
        request = Request("PATCH", f"{MEMORY}/{entry}", body, if_match=version, token=token)
        return await self._call(spot, Kind.UPDATE, request, entry, mark)

    async def delete(
        self, spot: Spot, entry: str, version: int | None, token: int | None = None
    ) -> Operation:
        request = Request("DELETE", f"{MEMORY}/{entry}", if_match=version, token=token)
        return await self._call(spot, Kind.DELETE, request, entry)

    async def read(self, spot: Spot, entry: str) -> Operation:
        return await self._call(spot, Kind.READ, Request("GET", f"{MEMORY}/{entry}"), entry)

    async def find(self, spot: Spot) -> Operation:
        return await self._call(spot, Kind.READ, Request("GET", spot.query()))

    async def _call(
        self, spot: Spot, kind: Kind, request: Request, entry: str = "", mark: str = ""
    ) -> Operation:
        await self._channel.ready()
        operation = self._recorder.begin(
            self._number,
            self._agent,
            kind,
            str(spot),
            entry=entry,
            sent_version=request.if_match,
            mark=mark,
            token=request.token,
        )
        try:
            reply = await self._channel.exchange(request)
        except Unanswered:
            return operation
        operation.returned = self._recorder.now()
        self._take(operation, reply)
        self._learn(spot, operation)
        return operation

    def _take(self, operation: Operation, reply: Reply) -> None:
        if reply.status in (200, 201, 204):
            operation.outcome = Outcome.OK
            if operation.kind is Kind.READ and not operation.entry:
                entries = _decode_page(reply.body).entries
                assert len(entries) <= 1, f"one name has several entries: {reply.body[:500]!r}"
                operation.seen = seen_in(entries[0]) if entries else None
                operation.absent = not entries
            elif operation.kind is not Kind.DELETE:
                operation.seen = seen_in(_decode_entry(reply.body))
            return
        operation.outcome = Outcome.REFUSED
        refusal = _decode_refusal(reply.body)
        operation.reason = refusal.error
        operation.absent = refusal.error == "ENTRY_NOT_FOUND"
        operation.seen = seen_in(refusal.current) if refusal.current is not None else None
        expected = {"ENTRY_NOT_FOUND", "VERSION_MISMATCH", "ENTRY_EXISTS", "FENCED"}
        assert refusal.error in expected, f"{operation.kind}: {reply.status} {reply.body[:500]!r}"

    def _learn(self, spot: Spot, operation: Operation) -> None:
        places, seen = self._known.places, operation.seen
        gone = operation.kind is Kind.DELETE and operation.outcome is Outcome.OK
        if seen is not None:
            place = places.get(spot)
            if place is None or place[0] != seen.entry or place[1] < seen.version:
                places[spot] = seen.entry, seen.version
        elif operation.absent or gone:
            place = places.get(spot)
            if place is not None and place[0] == operation.entry:
                del places[spot]


class Writer:
    """A client with names of its own choice, some of which everybody wants."""

    def __init__(
        self,
        caller: EntryCaller,
        known: Known,
        seed: int,
        hot: Sequence[Spot],
        spread: Sequence[Spot],
    ) -> None:
        self._caller = caller
        self._known = known
        self._random = random.Random(seed)
        self._hot = hot
        self._spread = spread

    async def run(self, budget: Budget) -> None:
        """Works until nothing is left to do."""
        while budget.take():
            chosen = self._hot if self._random.random() < _HOT else self._spread
            await self._step(self._random.choice(chosen))

    async def _step(self, spot: Spot) -> Operation:
        caller, dice = self._caller, self._random.random()
        place = self._known.places.get(spot)
        if dice < 0.04:
            return await caller.find(spot)
        if place is None or dice < 0.07:
            return await caller.create(spot)
        entry, version = place
        if dice < 0.45:
            return await caller.read(spot, entry)
        if dice < 0.49:
            without = self._random.random() < 0.3
            return await caller.delete(spot, entry, None if without else version)
        if dice < 0.55:
            # What a client has kept for too long.
            version = max(1, version - self._random.randint(1, 3))
        return await caller.update(spot, entry, version)
