"""The quality of the results of searches over the public API of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from benchmarks.recall.chats import DataSet
from benchmarks.recall.client import Record, ask, fill, in_process, over_http
from benchmarks.recall.directories import (
    DataDirectories,
    DataDirectory,
    running,
    wait_until_embedded,
)
from benchmarks.recall.judging import Judgement, mean_of
from benchmarks.recall.variants import WHOLE, WITHOUT, Variant, label_of, modes_of
from benchmarks.servers import Servers


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """The judgements of every question under one variant."""

    embedder: str
    mode: str
    title: str
    judgements: list[Judgement]

    @property
    def mean(self) -> Judgement:
        """Over all questions."""
        return mean_of(self.judgements)


@dataclass(kw_only=True, slots=True)
class Quality:
    """Everything that was seen on one store.

    seconds: how long it took until everything was embedded, by embedder
    served: by the server, in each mode
    whole, without: in this process, with every signal and without each, by embedder
    """

    store: str
    data: DataSet
    seconds: dict[str, float] = field(default_factory=dict)
    served: list[Series] = field(default_factory=list)
    whole: dict[str, Series] = field(default_factory=dict)
    without: dict[str, list[Series]] = field(default_factory=dict)

    def by_category(self, series: Series) -> Iterator[tuple[str, int, Judgement]]:
        """The mean of each category, with how many questions it has."""
        for category in self.data.categories:
            some = [
                judgement
                for question, judgement in zip(self.data.questions, series.judgements, strict=True)
                if question.category == category
            ]
            yield category, len(some), mean_of(some)

    @property
    def entries(self) -> int:
        """The number of stored entries."""
        return sum(len(chat.entries) for chat in self.data.chats)


def measure_quality(
    data: DataSet,
    embedders: Sequence[str],
    servers: Servers,
    places: DataDirectories,
    store: str,
    *,
    ablations: bool,
    say: Callable[[str], None],
    record: Record | None = None,
) -> Quality:
    """Fills a server with every conversation and asks all questions, under each embedder.

    record: called with each question and its hits; None to record nothing
    """
    quality = Quality(store=store, data=data)
    for embedder in embedders:
        say(f"{data.name}, {store}, {label_of(embedder)}: storing {quality.entries:,} entries")
        place = places.new()
        with running(servers, place, embedder) as server:
            begun = perf_counter()
            asyncio.run(fill(over_http(server), data.chats))
            quality.seconds[embedder] = wait_until_embedded(server) - begun
        # What is found counts as used and then ranks higher; so nothing is question of a store that
        # was question something else before.
        for mode in modes_of(embedder):
            copy = places.copy(place)
            title = f"{label_of(embedder)}, {mode}"
            with running(servers, copy, embedder) as server:
                judgements = asyncio.run(ask(over_http(server), data, mode, title, record))
            quality.served.append(
                Series(embedder=embedder, mode=mode, title=title, judgements=judgements)
            )
            places.remove(copy)
        if ablations:
            _ablate(quality, place, embedder)
        places.remove(place)
    return quality


def _ablate(quality: Quality, place: DataDirectory, embedder: str) -> None:
    """Ranks again without each signal, over the store that a server has filled."""
    quality.whole[embedder] = asyncio.run(_asked(quality, place, embedder, WHOLE))
    quality.without[embedder] = [
        asyncio.run(_asked(quality, place, embedder, variant)) for variant in WITHOUT
    ]


async def _asked(quality: Quality, place: DataDirectory, embedder: str, variant: Variant) -> Series:
    mode = modes_of(embedder)[-1]
    title = f"{label_of(embedder)}, {variant.title}"
    async with in_process(place, embedder, variant) as client:
        judgements = await ask(client, quality.data, mode, title)
    return Series(embedder=embedder, mode=mode, title=variant.title, judgements=judgements)
