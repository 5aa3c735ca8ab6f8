"""The clients of the simulator. They choose as the real ones do."""

from __future__ import annotations

from tests.history.record import ClaimOperation, History, Kind, Operation, Outcome
from tests.history.simulator import Scene, Simulator

TERM = 400


def play(scene: Scene) -> History:
    """The history of a scene."""
    simulator = Simulator(scene)
    writers = [Writer(simulator, number) for number in range(scene.clients)]
    claimants = [Claimant(simulator, number + scene.clients) for number in range(scene.clients)]
    return simulator.run(
        [writer.step for writer in writers] + [claimant.step for claimant in claimants]
    )


class Writer:
    """Creates, reads, changes and deletes a few names that all writers share."""

    def __init__(self, simulator: Simulator, number: int) -> None:
        self._simulator = simulator
        self._number = number
        self._agent = f"agent-{number}"
        self._known: dict[str, tuple[str, int]] = {}

    def step(self) -> None:
        if not self._simulator.take():
            return
        operation = self._choose()
        store = self._simulator.store
        self._simulator.send(
            operation, lambda now: store.apply(operation, now), lambda: self._learn(operation)
        )

    def _choose(self) -> Operation:
        chance = self._simulator.random
        key = f"name-{chance.randrange(self._simulator.scene.names)}"
        begin = self._simulator.recorder.begin
        known = self._known.get(key)
        dice = chance.random()
        if known is None or dice < 0.08:
            if known is not None or dice < 0.6:
                mark = self._simulator.recorder.new_mark(self._number)
                return begin(self._number, self._agent, Kind.CREATE, key, mark=mark)
            return begin(self._number, self._agent, Kind.READ, key)
        entry, version = known
        if dice < 0.45:
            return begin(self._number, self._agent, Kind.READ, key, entry=entry)
        if dice < 0.52:
            return begin(
                self._number, self._agent, Kind.DELETE, key, entry=entry, sent_version=version
            )
        mark = self._simulator.recorder.new_mark(self._number)
        return begin(
            self._number,
            self._agent,
            Kind.UPDATE,
            key,
            entry=entry,
            sent_version=version,
            mark=mark,
        )

    def _learn(self, operation: Operation) -> None:
        deleted = operation.kind is Kind.DELETE and operation.outcome is Outcome.OK
        if operation.seen is not None:
            self._known[operation.key] = operation.seen.entry, operation.seen.version
        elif operation.absent or deleted:
            self._known.pop(operation.key, None)
        self.step()


class Claimant:
    """Takes a claim, writes under it, renews it, gives it back; or sleeps over its end and writes
    under it nevertheless."""

    def __init__(self, simulator: Simulator, number: int) -> None:
        self._simulator = simulator
        self._number = number
        self._agent = f"agent-{number}"
        self._token: int | None = None
        self._key = ""
        self._known: dict[str, tuple[str, int]] = {}

    def step(self) -> None:
        if not self._simulator.take():
            return
        chance = self._simulator.random
        if self._token is None:
            self._key = f"claim-{chance.randrange(self._simulator.scene.claims)}"
            if chance.random() < 0.8:
                self._claim(Kind.ACQUIRE)
            else:
                self._write(None)
            return
        dice = chance.random()
        if dice < 0.6:
            self._write(self._token)
        elif dice < 0.75:
            self._claim(Kind.RENEW)
        elif dice < 0.9:
            self._claim(Kind.RELEASE)
        else:
            self._simulator.later(TERM + 50, self._go_on_too_late)

    def _go_on_too_late(self) -> None:
        if self._simulator.random.random() < 0.6:
            self._write(self._token)
        else:
            self._claim(Kind.RENEW)

    def _claim(self, kind: Kind) -> None:
        simulator = self._simulator
        token = None if kind is Kind.ACQUIRE else self._token
        operation = simulator.recorder.begin_claim(
            self._number, self._agent, kind, self._key, token=token
        )
        operation.held_until = operation.invoked + TERM
        simulator.send(
            operation,
            lambda now: simulator.store.apply_claim(operation, now, TERM),
            lambda: self._learn_claim(operation),
        )

    def _learn_claim(self, operation: ClaimOperation) -> None:
        if operation.outcome is Outcome.OK:
            operation.lapsed_by = operation.returned + TERM
        if operation.kind is Kind.ACQUIRE:
            self._token = operation.token
        elif operation.kind is Kind.RELEASE or operation.outcome is Outcome.REFUSED:
            self._token = None
        if operation.reason == "LEASE_HELD":
            self._simulator.later(self._simulator.random.randint(1, TERM), self.step)
        else:
            self.step()

    def _write(self, token: int | None) -> None:
        simulator = self._simulator
        mark = simulator.recorder.new_mark(self._number)
        known = self._known.get(self._key)
        entry, version = known or ("", None)
        operation = simulator.recorder.begin(
            self._number,
            self._agent,
            Kind.UPDATE if known else Kind.CREATE,
            self._key,
            entry=entry,
            sent_version=version,
            mark=mark,
            token=token,
        )
        store = simulator.store
        simulator.send(
            operation, lambda now: store.apply(operation, now), lambda: self._learn(operation)
        )

    def _learn(self, operation: Operation) -> None:
        if operation.seen is not None:
            self._known[operation.key] = operation.seen.entry, operation.seen.version
        elif operation.reason == "FENCED":
            self._token = None
        self.step()
