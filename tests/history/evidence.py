"""What a history tells about one name: which states its entries had, and between which moments.

A state of a name is a version of one of its entries, or the absence after an entry's deletion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.history.anomalies import Breach, Violation
from tests.history.record import NEVER, Kind, Operation, Outcome, Seen


@dataclass(slots=True)
class State:
    """One state, and who tells of it.

    marks: the values it was seen with
    known_from: when it was there at the latest: the earliest return of those who tell of it
    asked_last: it was still there then: the latest invocation of those who tell of it
    takers: acknowledged writes that name it as the state they replace
    """

    marks: set[str] = field(default_factory=set)
    known_from: int = NEVER
    asked_last: int = -1
    asked_by: Operation | None = None
    takers: list[Operation] = field(default_factory=list)

    def tell(self, operation: Operation) -> None:
        self.known_from = min(self.known_from, operation.returned)
        if operation.invoked > self.asked_last:
            self.asked_last = operation.invoked
            self.asked_by = operation


@dataclass(slots=True)
class Life:
    """All that is known of one entry, from its creation to its deletion."""

    entry: str
    states: dict[int, State] = field(default_factory=dict)
    absent: State = field(default_factory=State)
    deletions: list[Operation] = field(default_factory=list)
    perhaps_deleted: list[Operation] = field(default_factory=list)
    perhaps_changed: dict[int, list[Operation]] = field(default_factory=dict)

    def state(self, version: int) -> State:
        return self.states.setdefault(version, State())

    @property
    def last(self) -> int:
        return max(self.states, default=0)

    @property
    def known_from(self) -> int:
        return min((state.known_from for state in self.states.values()), default=NEVER)


@dataclass(slots=True)
class Name:
    """All that is known of one name."""

    key: str
    lives: dict[str, Life] = field(default_factory=dict)
    not_found: list[Operation] = field(default_factory=list)
    perhaps_created: list[Operation] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)

    def life(self, entry: str) -> Life:
        if entry not in self.lives:
            self.lives[entry] = Life(entry)
        return self.lives[entry]

    def in_order(self) -> list[Life]:
        """The entries one after the other: who deletes one has seen it, so each is known of before
        the next can be."""
        seen = [life for life in self.lives.values() if life.states]
        return sorted(seen, key=lambda life: life.known_from)

    def blame(self, breach: Breach, detail: str) -> None:
        self.violations.append(Violation(breach, self.key, detail))


def gather(key: str, operations: Iterable[Operation], writers: Mapping[str, Operation]) -> Name:
    """The evidence on one name; what is wrong by itself is in its `violations` already."""
    name = Name(key)
    placed: dict[str, set[tuple[str, int]]] = {}
    for operation in operations:
        _note_effect(name, operation)
        seen = operation.seen
        if operation.absent:
            if operation.entry:
                name.life(operation.entry).absent.tell(operation)
            else:
                name.not_found.append(operation)
        if seen is not None and _is_credible(name, operation, seen, writers):
            placed.setdefault(seen.mark, set()).add((seen.entry, seen.version))
            state = name.life(seen.entry).state(seen.version)
            state.marks.add(seen.mark)
            state.tell(operation)
    for mark, places in placed.items():
        if len(places) > 1:
            name.blame(Breach.APPLIED_TWICE, f"{mark} is at {sorted(places)}")
    return name


def _note_effect(name: Name, operation: Operation) -> None:
    """What a write says by its outcome alone."""
    kind, unknown = operation.kind, operation.outcome is Outcome.UNKNOWN
    if kind is Kind.READ or operation.outcome is Outcome.REFUSED:
        _check_refusal(name, operation)
        return
    if kind is Kind.CREATE:
        if unknown:
            name.perhaps_created.append(operation)
        return
    life = name.life(operation.entry)
    if kind is Kind.DELETE:
        (life.perhaps_deleted if unknown else life.deletions).append(operation)
    elif unknown:
        assert operation.sent_version is not None, "an update names its version"
        life.perhaps_changed.setdefault(operation.sent_version + 1, []).append(operation)
    if operation.sent_version is not None and not unknown:
        state = life.state(operation.sent_version)
        state.takers.append(operation)
        state.tell(operation)


def _check_refusal(name: Name, operation: Operation) -> None:
    seen = operation.seen
    if operation.reason != "VERSION_MISMATCH" or seen is None:
        return
    if (seen.entry, seen.version) == (operation.entry, operation.sent_version):
        name.blame(Breach.REFUSED_WITHOUT_REASON, describe(operation))


def _is_credible(
    name: Name, operation: Operation, seen: Seen, writers: Mapping[str, Operation]
) -> bool:
    """Whether what was seen can be the work of some write; if not, it is no evidence."""
    if not seen.whole:
        name.blame(Breach.TORN_READ, describe(operation))
        return False
    writer = writers.get(seen.mark)
    if writer is None:
        name.blame(Breach.UNWRITTEN_VALUE, f"{seen.mark}: {describe(operation)}")
        return False
    answered = operation.outcome is Outcome.OK and operation.kind in (Kind.CREATE, Kind.UPDATE)
    if answered and writer is not operation:
        name.blame(Breach.WRONG_REPLY, describe(operation))
    if writer.outcome is Outcome.REFUSED:
        name.blame(Breach.REFUSED_TOOK_EFFECT, f"{describe(writer)} seen by {describe(operation)}")
    elif not _is_place_of(writer, name.key, seen):
        name.blame(Breach.MISPLACED_VALUE, f"{describe(writer)} seen by {describe(operation)}")
    if writer.invoked > operation.returned:
        name.blame(Breach.READ_FROM_FUTURE, f"{describe(writer)} seen by {describe(operation)}")
    return True


def _is_place_of(writer: Operation, key: str, seen: Seen) -> bool:
    if writer.key != key:
        return False
    if writer.kind is Kind.CREATE:
        return seen.version == 1
    assert writer.sent_version is not None, "an update names its version"
    return (seen.entry, seen.version) == (writer.entry, writer.sent_version + 1)


def describe(operation: Operation) -> str:
    """An operation in one line."""
    parts = [
        f"{operation.agent}/{operation.process} {operation.kind}",
        f"sent version {operation.sent_version}" if operation.sent_version is not None else "",
        f"under token {operation.token}" if operation.token is not None else "",
        operation.mark,
        operation.reason or operation.outcome.value,
        f"saw {operation.seen.entry} version {operation.seen.version}" if operation.seen else "",
        f"at {operation.invoked}..{operation.returned}",
    ]
    return " ".join(part for part in parts if part)
