"""Counts and latencies of requests, for metrics."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from itertools import accumulate
from threading import Lock
from time import perf_counter
from typing import Self

from memorywall.records.errors import MemorywallError
from memorywall.records.tier import Tier

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds: the upper bounds of the latency histogram. A last bucket has no bound."""

NO_REPLY = 499
"""The status in metrics and logs of a request whose client left before the reply."""


class OperationStatistics:
    """The requests of one operation.

    Plain counters, which the event loop alone changes and a scrape reads.

    in_flight: requests that have begun and not ended
    statuses: ended requests by the status of the reply
    seconds: the sum of all latencies
    """

    __slots__ = ("_buckets", "in_flight", "seconds", "statuses")

    def __init__(self) -> None:
        self.in_flight = 0
        self.statuses: defaultdict[int, int] = defaultdict(int)
        self.seconds = 0.0
        self._buckets = [0] * (len(BOUNDS) + 1)

    def observe(self, status: int, seconds: float) -> None:
        """Counts a request that has ended.

        seconds: the time until the reply began
        """
        self.statuses[status] += 1
        self._buckets[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds

    def measure(self) -> MeasuredRequest:
        """Measures a request during a `with` statement, which sets the status of the reply."""
        return MeasuredRequest(self)

    def cumulative(self) -> list[int]:
        """The number of requests up to each bound, and of all requests."""
        return list(accumulate(self._buckets))


class MeasuredRequest:
    """A context manager: one request of an operation.

    status: the status of the reply; 499 until it is known
    """

    def __init__(self, statistics: OperationStatistics) -> None:
        self._statistics = statistics
        self.status = NO_REPLY

    def __enter__(self) -> Self:
        self._statistics.in_flight += 1
        self._begun = perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self._statistics.in_flight -= 1
        self._statistics.observe(self.status, perf_counter() - self._begun)


class ContextTokens:
    """The tokens of the entries in contexts with feedback in this process.

    shown: those of all of them
    used: those of the ones that the feedback names as used
    """

    __slots__ = ("_lock", "shown", "used")

    def __init__(self) -> None:
        self.shown = self.used = 0
        self._lock = Lock()

    def count(self, shown: int, used: int) -> None:
        """Counts tokens."""
        with self._lock:
            self.shown += shown
            self.used += used


class LoopStatistics:
    """The callbacks of the server's event loop, which alone changes the numbers.

    longest: the most processor time of one, in seconds
    held: how many have used more than they may
    """

    __slots__ = ("held", "longest")

    def __init__(self) -> None:
        self.longest = 0.0
        self.held = 0

    def observe(self, seconds: float, allowed: float) -> None:
        """Counts a callback."""
        self.longest = max(self.longest, seconds)
        self.held += seconds > allowed


class RequestStatistics:
    """The requests of this process by operation.

    Principals, tenants and names are no labels, so that the size does not grow with their number.
    """

    def __init__(self) -> None:
        self._operations = defaultdict[str, OperationStatistics](OperationStatistics)

    def of(self, operation: str) -> OperationStatistics:
        """The statistics of an operation."""
        return self._operations[operation]

    def by_operation(self) -> list[tuple[str, OperationStatistics]]:
        """The operations with a request since the start, sorted by name."""
        return sorted(
            (name, one) for name, one in self._operations.items() if one.statuses or one.in_flight
        )


class RefusalCounter:
    """Counts refused requests of this process, by operation and error code.

    Principals, tenants and names are no labels, so that the size does not grow with their number.
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = Lock()

    def note(self, operation: str, error: MemorywallError) -> None:
        """Counts one refusal."""
        with self._lock:
            self._counts[operation, error.code] += 1

    def counts(self) -> dict[tuple[str, str], int]:
        """The number of refused requests since the start, by (operation, error code)."""
        return dict(self._counts)


class VerdictCounter:
    """Counts the verdicts about texts since the start, by tenant and rule."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = Lock()

    def note(self, tenant: str, rule: str) -> None:
        """Counts one verdict."""
        with self._lock:
            self._counts[tenant, rule] += 1

    def of(self, tenant: str) -> dict[str, int]:
        """The numbers of a tenant, by rule."""
        return {rule: count for (one, rule), count in dict(self._counts).items() if one == tenant}

    def by_rule(self) -> Counter[str]:
        """The numbers of all tenants together, by rule."""
        total: Counter[str] = Counter()
        for (_, rule), count in dict(self._counts).items():
            total[rule] += count
        return total


class FullTiers:
    """Counts writes to nearly full tiers and the entries that they evict, since the start."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.writes: Counter[Tier] = Counter()
        self.evicted: Counter[Tier] = Counter()

    def note(self, tier: Tier, evicted: int) -> None:
        """Counts one write.

        evicted: the number of entries that it has evicted
        """
        with self._lock:
            self.writes[tier] += 1
            self.evicted[tier] += evicted
