"""Interleaved rounds: every lane gets a short turn, again and again, so noise hits all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from tqdm import tqdm

from benchmarks.generator import Generator
from benchmarks.plan import Direct, Endpoint, LoadResult, Measure, Operation

WARM_UP_SECONDS = 0.3
# Lets a server finish what it does in the background before its neighbour is measured.
REST_SECONDS = 0.1
GROWING = (Operation.CREATE, Operation.BATCH)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """One server with one store, and what it is measured with."""

    name: str
    stock: str
    endpoint: Endpoint
    operations: tuple[Operation, ...]

    def turn(self, operation: Operation, seconds: float) -> Measure:
        """Returns the instructions for the load generator."""
        return Measure(
            stock=self.stock, endpoint=self.endpoint, operation=operation, seconds=seconds
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectLane:
    """The database behind a server, asked for one operation without the server; see `Direct`."""

    name: str
    stock: str
    url: str
    operation: Operation
    group: int = 1
    connections: int = 1
    tenants: int = 1

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The one it is measured with."""
        return (self.operation,)

    def turn(self, operation: Operation, seconds: float) -> Direct:
        """Returns the instructions for the load generator."""
        return Direct(
            stock=self.stock,
            url=self.url,
            operation=operation,
            group=self.group,
            connections=self.connections,
            tenants=self.tenants,
            seconds=seconds,
        )


@dataclass(kw_only=True, slots=True)
class Series:
    """The turns of one operation on one lane; its figures are medians over all but the first.

    The first turn only warms up, but an error in it is an error.
    """

    operation: Operation
    turns: list[LoadResult] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Counted things per second."""
        return self._median(lambda result: result.rate * self.operation.weight)

    @property
    def p50(self) -> float:
        """Milliseconds."""
        return self._median(lambda result: result.p50)

    @property
    def p99(self) -> float:
        """Milliseconds."""
        return self._median(lambda result: result.p99)

    @property
    def errors(self) -> int:
        """Replies that were not the ones expected, and connections that broke."""
        return sum(result.errors for result in self.turns)

    @property
    def first_error(self) -> str:
        """The text of the first error."""
        return next((result.first_error for result in self.turns if result.errors), "")

    def times(self, other: Series) -> float:
        """Returns the ratio to the rate of another lane, from turns of the same round."""
        pairs = zip(self.turns[1:], other.turns[1:], strict=True)
        return median(mine.rate / theirs.rate if theirs.rate else 0.0 for mine, theirs in pairs)

    def _median(self, figure: Callable[[LoadResult], float]) -> float:
        return median(figure(result) for result in self.turns[1:])


Measured = dict[Operation, dict[str, Series]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """The duration of the measurement."""

    rounds: int
    read_seconds: float
    write_seconds: float

    def seconds(self, operation: Operation) -> float:
        """Returns the seconds of a turn: fewer if it enlarges the store, so that the size stays."""
        return self.write_seconds if operation in GROWING else self.read_seconds


def interleave(
    generator: Generator, lanes: Sequence[Lane | DirectLane], effort: Effort
) -> tuple[Measured, dict[str, int]]:
    """Measure every operation on every lane; also tell how many creates each stock was sent."""
    measured: Measured = {}
    created = dict.fromkeys((lane.stock for lane in lanes), 0)
    turns = sum(len(lane.operations) for lane in lanes) * (effort.rounds + 1)
    with tqdm(total=turns, unit=" turns") as progress:
        for operation in Operation:
            taking_part = [lane for lane in lanes if operation in lane.operations]
            series = {lane.name: Series(operation=operation) for lane in taking_part}
            for number in range(effort.rounds + 1):
                seconds = effort.seconds(operation) if number else WARM_UP_SECONDS
                for lane in taking_part:
                    progress.set_description(f"{operation.label}, {lane.name}")
                    result = _turn(generator, lane, operation, seconds)
                    progress.update()
                    if operation is Operation.CREATE and isinstance(lane, Lane):
                        created[lane.stock] += result.requests
                    series[lane.name].turns.append(result)
            measured[operation] = series
    return measured, created


def _turn(
    generator: Generator, lane: Lane | DirectLane, operation: Operation, seconds: float
) -> LoadResult:
    time.sleep(REST_SECONDS)
    return generator.measure(lane.turn(operation, seconds))
