"""The speed of searches, their memory, and the speed of embedding."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from benchmarks.footprint import resident_megabytes
from benchmarks.recall.directories import (
    DataDirectories,
    Running,
    backlog,
    running,
    wait_until_embedded,
)
from benchmarks.recall.invented import put_invented_vectors, write_segments
from benchmarks.recall.load_connections import Latency, fill, search, search_at_once
from benchmarks.recall.variants import NONE, label_of
from benchmarks.servers import Servers

ALL = "owner-of-all"
THOUSAND = 1_000
SMALL = tuple(f"owner-of-thousand-{number}" for number in range(5))
CLIENTS = 8
EMBEDDED_AT_MOST = 10_000
"""Larger stores get invented vectors, unless all is to be embedded."""
_WARM_UP = 30
_WRITES = 50
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """The extent of a measurement."""

    requests: int = 400
    seconds: float = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Embedded:
    """The embedding of the entries that a server had at its start."""

    embedder: str
    texts: int
    seconds: float
    processor_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Speed:
    """The results at one size under one embedder.

    one: within the agent that owns everything; small: within agents of a thousand entries each
    after_write: within the one, each search right after an entry was created
    rate: searches a second with several clients, within the one
    first: seconds the first search within the one took, which loads the index from its segments
    megabytes_before, megabytes: of the server, before the first search and after those within the
        one
    invented: whether the vectors are
    """

    size: int
    embedder: str
    one: Latency
    small: Latency
    after_write: Latency
    rate: float
    first: float
    megabytes_before: float
    megabytes: float
    invented: bool


@dataclass(kw_only=True, slots=True)
class Speeds:
    """Everything that was seen."""

    store: str
    seen: list[Speed] = field(default_factory=list)
    embedded: list[Embedded] = field(default_factory=list)


def measure_speed(
    sizes: Sequence[int],
    embedders: Sequence[str],
    servers: Servers,
    places: DataDirectories,
    store: str,
    effort: Effort,
    *,
    embed_all: bool,
    say: Callable[[str], None],
) -> Speeds:
    """Fills a store of each size and searches in it, under each embedder."""
    speeds = Speeds(store=store)
    for size in sizes:
        say(f"{store}: filling a store with {size:,} entries of one agent")
        place = places.new()
        with running(servers, place, NONE) as server:
            fill(server, [(ALL, size), *((agent, THOUSAND) for agent in SMALL)])
        asyncio.run(write_segments(place))
        for embedder in embedders:
            say(f"{store}: searching in {size:,} entries, {label_of(embedder)}")
            # The vectors of two models are never kept beside each other for long.
            copy = places.copy(place)
            invented = embedder != NONE and size > EMBEDDED_AT_MOST and not embed_all
            if invented:
                asyncio.run(put_invented_vectors(copy, embedder, (ALL, *SMALL)))
            with running(servers, copy, embedder) as server:
                if embedder != NONE and not invented:
                    speeds.embedded.append(_embed(server, embedder))
                speeds.seen.append(_search(server, size, embedder, effort, invented=invented))
            places.remove(copy)
        places.remove(place)
    return speeds


def _search(server: Running, size: int, embedder: str, effort: Effort, *, invented: bool) -> Speed:
    before = resident_megabytes(server.pid)
    first = search(server, [ALL], 1, 0)
    search(server, [ALL], _WARM_UP, 1)
    one = search(server, [ALL], effort.requests, 2)
    rate = search_at_once(server, ALL, CLIENTS, effort.seconds).rate
    megabytes = resident_megabytes(server.pid)
    after_write = search(server, [ALL], min(_WRITES, effort.requests), 3, write=True)
    # What is larger than the setting allows is let go when somebody else searches, so this is last.
    search(server, SMALL, _WARM_UP, 4)
    small = search(server, SMALL, effort.requests, 5)
    return Speed(
        size=size,
        embedder=embedder,
        one=one,
        small=small,
        after_write=after_write,
        rate=rate,
        first=first.p50 / 1000,
        megabytes_before=before,
        megabytes=megabytes,
        invented=invented,
    )


def _embed(server: Running, embedder: str) -> Embedded:
    """Waits until a server has embedded what it began to embed when it started."""
    texts, begun, used = backlog(server), perf_counter(), processor_seconds(server.pid)
    ended = wait_until_embedded(server)
    return Embedded(
        embedder=embedder,
        texts=texts,
        seconds=ended - begun,
        processor_seconds=processor_seconds(server.pid) - used,
    )


def processor_seconds(pid: int) -> float:
    """Returns the processor time of all threads of a process."""
    # The name of the program, in brackets, may hold anything.
    figures = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(figures[11]) + int(figures[12])) / _TICKS
