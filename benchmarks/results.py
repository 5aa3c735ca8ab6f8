"""All that one run found out."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.footprint import ColdStart
from benchmarks.plan import CONNECTIONS, Operation
from benchmarks.rounds import DirectLane, Effort, Measured
from benchmarks.targets import Store
from benchmarks.work import WorkFigures

RAW = "raw ASGI"
REFERENCE = "reference"
ONE_AGENT = "one agent"
TWO_SERVERS = "two servers"


def size_name(entries: int) -> str:
    """The name of the lane whose store holds so many entries."""
    return f"{entries:,} entries"


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """Under which circumstances the figures came about."""

    store: Store
    store_version: str
    effort: Effort
    sizes: tuple[int, ...]
    headline: int
    file_system: str
    synced_appends: float

    def text(self) -> str:
        """One paragraph for people."""
        effort = self.effort
        return (
            f"{self.store.label} {self.store_version}, Python {platform.python_version()},"
            f" {os.cpu_count()} cores,"
            f" {CONNECTIONS} connections, medians of {effort.rounds} interleaved rounds of"
            f" {effort.read_seconds:g} s (creates and batches {effort.write_seconds:g} s). Data on"
            f" {self.file_system}: {self.synced_appends:,.0f} appends with fdatasync per second"
            " from one writer."
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """The figures.

    starts, loaded_megabytes: by kind of server
    matches: how many entries each of some sampled queries matched, by lane
    created: how many entries the measured creates added, by store
    work: claims, completion of tasks, resumption
    direct: the lanes that asked the database without a server
    """

    setting: Setting
    measured: Measured
    starts: dict[str, ColdStart]
    loaded_megabytes: dict[str, float]
    matches: dict[str, list[int]]
    created: dict[str, int]
    work: WorkFigures
    direct: list[DirectLane] = field(default_factory=list)
    installed_megabytes: float | None = None
    notes: list[str] = field(default_factory=list)

    def errors(self) -> Iterator[str]:
        """One line for every lane and operation with errors in it."""
        for operation, lanes in self.measured.items():
            for lane, series in lanes.items():
                if series.errors:
                    yield (
                        f"{operation.label}, {lane}: {series.errors} errors,"
                        f" the first: {series.first_error}"
                    )

        if self.work.errors:
            yield f"claims: {self.work.errors} errors, the first: {self.work.first_error}"

    def headline_lanes(self, operation: Operation) -> list[str]:
        """The lanes of our server that the main table shows for an operation."""
        names = (size_name(self.setting.headline), ONE_AGENT, TWO_SERVERS)
        return [name for name in names if name in self.measured[operation]]
