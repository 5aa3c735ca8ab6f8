"""Honest histories without a server: many clients, one simulated store, seeded chance.

Every operation is sent, takes effect at one moment, and is answered, each some time after the
other, so that operations overlap as those of real clients do. Now and then the reply is lost, or
the request is, or the simulated server is killed and all that is under way with it.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.history.record import (
    ClaimOperation,
    History,
    Kind,
    Operation,
    Outcome,
    Recorder,
    Seen,
)

_LONGEST_WAY = 60
_FINAL = 9_999


@dataclass(slots=True)
class Stored:
    """An entry as the simulated store has it."""

    entry: str
    version: int
    mark: str

    def seen(self) -> Seen:
        return Seen(self.entry, self.version, self.mark)


@dataclass(slots=True)
class Held:
    """A claim as the simulated store has it."""

    token: int
    holder: str
    expires: int


class SimulatedStore:
    """Does what a server does to entries and claims, one operation after the other."""

    def __init__(self) -> None:
        self.names: dict[str, Stored] = {}
        self.claims: dict[str, Held] = {}
        self._ids = itertools.count(1)
        self._tokens = itertools.count(1)

    def apply(self, operation: Operation, now: int) -> None:
        """Carries it out, and fills in the reply all but for its time."""
        stored = self.names.get(operation.key)
        found = stored is not None and operation.entry in ("", stored.entry)
        operation.outcome = Outcome.REFUSED
        if operation.kind is Kind.READ:
            operation.outcome = Outcome.OK
            operation.absent = not found
            operation.seen = stored.seen() if stored is not None and found else None
        elif operation.kind is not Kind.CREATE and not found:
            operation.reason, operation.absent = "ENTRY_NOT_FOUND", True
        elif self._is_fenced(operation, now):
            operation.reason = "FENCED"
        elif operation.kind is Kind.CREATE:
            self._create(operation, stored)
        elif stored is not None and operation.sent_version != stored.version:
            operation.reason, operation.seen = "VERSION_MISMATCH", stored.seen()
        elif stored is not None:
            self._change(operation, stored)

    def _is_fenced(self, operation: Operation, now: int) -> bool:
        held = self.claims.get(operation.key)
        live = held is not None and now < held.expires
        if operation.token is None:
            return live
        return not (
            held is not None
            and live
            and (held.token, held.holder) == (operation.token, operation.agent)
        )

    def _create(self, operation: Operation, stored: Stored | None) -> None:
        if stored is not None:
            operation.reason, operation.seen = "ENTRY_EXISTS", stored.seen()
            return
        made = Stored(f"mem_{next(self._ids)}", 1, operation.mark)
        self.names[operation.key] = made
        operation.outcome, operation.seen = Outcome.OK, made.seen()

    def _change(self, operation: Operation, stored: Stored) -> None:
        operation.outcome = Outcome.OK
        if operation.kind is Kind.DELETE:
            del self.names[operation.key]
            return
        stored.version += 1
        stored.mark = operation.mark
        operation.seen = stored.seen()

    def apply_claim(self, operation: ClaimOperation, now: int, term: int) -> None:
        """Carries it out, and fills in the reply all but for its time."""
        held = self.claims.get(operation.key)
        live = held is not None and now < held.expires
        operation.outcome = Outcome.OK
        if operation.kind is Kind.ACQUIRE:
            if held is not None and live:
                operation.outcome, operation.reason = Outcome.REFUSED, "LEASE_HELD"
                operation.shown_token, operation.shown_holder = held.token, held.holder
                return
            operation.token = next(self._tokens)
            self.claims[operation.key] = Held(operation.token, operation.agent, now + term)
        elif held is None or not live or held.token != operation.token:
            operation.outcome, operation.reason = Outcome.REFUSED, "FENCED"
        elif operation.kind is Kind.RENEW:
            held.expires = now + term
        else:
            del self.claims[operation.key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is simulated.

    lost: the share of operations whose reply never comes
    kills: how often everything under way is cut off
    """

    seed: int
    clients: int = 12
    operations: int = 600
    names: int = 6
    claims: int = 2
    lost: float = 0.03
    kills: int = 3


class Simulator:
    """Time, which is a plain number, and what happens in it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.random = random.Random(scene.seed)
        self.store = SimulatedStore()
        self.now = 0
        self.recorder = Recorder(lambda: self.now)
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._left = scene.operations
        self._era = 0

    def run(self, steps: Iterable[Callable[[], None]]) -> History:
        """A whole history, with a read of every name at its end.

        steps: what each client does first; it goes on by itself
        """
        for step in steps:
            self.later(self.random.randint(0, _LONGEST_WAY), step)
        length = self.scene.operations * _LONGEST_WAY // self.scene.clients
        for _ in range(self.scene.kills):
            self.later(self.random.randint(1, length), self._kill)
        while self._agenda:
            self.now, _, action = heapq.heappop(self._agenda)
            action()
        for key in sorted({operation.key for operation in self.recorder.history.entries}):
            self._read_at_the_end(key)
        return self.recorder.history

    def take(self) -> bool:
        """Whether there is one more operation to do."""
        self._left -= 1
        return self._left >= 0

    def later(self, delay: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now + delay, next(self._order), action))

    def send(
        self,
        operation: Operation | ClaimOperation,
        apply: Callable[[int], None],
        answered: Callable[[], None],
    ) -> None:
        """Lets an operation take effect and be answered, or not; then goes on with `answered`."""
        era = self._era
        lost = self.random.random() < self.scene.lost

        def take_effect() -> None:
            if self._era != era or (lost and self.random.random() < 0.5):
                self.later(self._way(), answered)
                return
            apply(self.now)
            reply = (operation.outcome, _taken_out(operation))
            self.later(self._way(), lambda: arrive(*reply))

        def arrive(outcome: Outcome, shown: dict[str, object]) -> None:
            if not lost and self._era == era:
                operation.outcome = outcome
                for name, content in shown.items():
                    setattr(operation, name, content)
                operation.returned = self.now
            # What follows from a reply is sent after it.
            self.later(1, answered)

        self.later(self._way(), take_effect)

    def _way(self) -> int:
        return self.random.randint(1, _LONGEST_WAY)

    def _kill(self) -> None:
        self._era += 1

    def _read_at_the_end(self, key: str) -> None:
        self.now += 10
        operation = self.recorder.begin(_FINAL, "final", Kind.READ, key)
        self.store.apply(operation, self.now)
        self.now += 1
        operation.returned = self.now


_REPLY = ("seen", "absent", "reason", "shown_token", "shown_holder")


def _taken_out(operation: Operation | ClaimOperation) -> dict[str, object]:
    """The reply, which nobody has seen before it arrives."""
    names = [name for name in _REPLY if hasattr(operation, name)]
    if isinstance(operation, ClaimOperation) and operation.kind is Kind.ACQUIRE:
        names.append("token")
    shown = {name: getattr(operation, name) for name in names}
    blank: dict[str, object] = {"seen": None, "absent": False, "reason": "", "shown_holder": ""}
    for name in names:
        setattr(operation, name, blank.get(name))
    operation.outcome = Outcome.UNKNOWN
    return shown
