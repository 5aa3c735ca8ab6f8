"""The figures to reach, on 2 cores with 32 connections, and the judgement whether they were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.plan import Operation


class Store(StrEnum):
    """The store of the measured server."""

    SQLITE = "sqlite"
    POSTGRES = "postgres"

    @property
    def label(self) -> str:
        """The name a text shows."""
        return "SQLite" if self is Store.SQLITE else "PostgreSQL"


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """The targets of one operation: the least rates and the largest latency."""

    rate: float
    p99: float | None = None
    times_reference: float | None = None

    def text(self) -> str:
        """The target as a table shows it."""
        parts = [f">= {self.rate:,.0f}/s"]
        if self.p99 is not None:
            parts.append(f"p99 < {self.p99:g} ms")
        if self.times_reference is not None:
            parts.append(f">= {self.times_reference:g}x ref.")
        return ", ".join(parts)

    def verdict(self, rate: float, p99: float, times_reference: float | None) -> str:
        """`yes`, or what is missing."""
        missing = ", ".join(self._misses(rate, p99, times_reference))
        if missing:
            return f"no: {missing}"
        if self.times_reference is not None and times_reference is None:
            return "yes, but not compared"
        return "yes"

    def _misses(self, rate: float, p99: float, times_reference: float | None) -> Iterator[str]:
        if rate < self.rate:
            yield "rate"
        # Written this way round so that a p99 nobody could measure is a miss.
        if self.p99 is not None and not p99 < self.p99:
            yield "p99"
        if (
            self.times_reference is not None
            and times_reference is not None
            and times_reference < self.times_reference
        ):
            yield "reference"


TARGETS = {
    Store.SQLITE: {
        Operation.GET: Target(rate=20_000),
        Operation.QUERY: Target(rate=3_500),
        Operation.PATCH: Target(rate=6_000, times_reference=20),
        Operation.CREATE: Target(rate=6_000, p99=15, times_reference=20),
        Operation.BATCH: Target(rate=10_000),
    },
    Store.POSTGRES: {
        Operation.GET: Target(rate=8_000),
        Operation.QUERY: Target(rate=2_000),
        Operation.CREATE: Target(rate=5_000),
        Operation.BATCH: Target(rate=10_000),
    },
}
"""A batch's rate counts its entries."""
TARGET_SIZE = 100_000
COLD_START_SECONDS = 0.5
IDLE_MEGABYTES = 80
INSTALLED_MEGABYTES = 65
LEAST_SHARE_LEFT = 0.70
"""The least share of the rate at the smallest store that is left at the largest."""
