"""`python -m benchmarks.recall.relevance FILE ...`: calibrates the relevance of results.

Each question is asked of its own collection and of another one, where nothing answers it. The
models are fitted once on all sets, which gives the weights of `memorywall.recall.relevance`, and
once for each set without it, which gives the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from benchmarks.recall.chats import Chat, DataSet, read_set
from benchmarks.recall.client import fill, in_process, over_http, post
from benchmarks.recall.directories import (
    DataDirectories,
    DataDirectory,
    running,
    wait_until_embedded,
)
from benchmarks.recall.judging import DEEPEST, judge
from benchmarks.recall.variants import NONE, WHOLE
from benchmarks.servers import Servers
from memorywall.recall import relevance
from memorywall.recall.relevance import ANSWERED, JudgedReply, JudgedResult
from memorywall.records.recall import LONGEST_QUERY, MOST_HITS

Floats = npt.NDArray[np.float64]
_SEED = 7
_JUDGED = 10
_PENALTY = 0.1
_BINS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


class _Asked(NamedTuple):
    """A question that was asked.

    hits: the signals of each of the best results
    gold: 1 for each of them that answers
    reply: the best signals of the reply
    is_own: whether it was asked of its own collection
    recall: R@10 of the reply
    """

    hits: list[list[float]]
    gold: list[float]
    reply: list[float]
    is_own: bool
    recall: float


def main() -> None:
    """Prints the weights and the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", type=Path, help="data sets with questions")
    parser.add_argument("--embedder", default="local", help="or none (default: local)")
    options = parser.parse_args()
    sets = [read_set(file) for file in options.data]
    with tempfile.TemporaryDirectory() as name, Servers(Path(name)) as servers:
        places = DataDirectories(Path(name) / "places")
        asked = [_measure(one, options.embedder, servers, places) for one in sets]
    print("results ", np.round(_fit_hits(asked), 2).tolist())
    print("replies ", np.round(_fit_replies(asked), 2).tolist())
    for number, data in enumerate(sets):
        others = asked[:number] + asked[number + 1 :]
        _report(data.name, asked[number], others or asked, ANSWERED[options.embedder != NONE])


def _measure(
    data: DataSet, embedder: str, servers: Servers, places: DataDirectories
) -> list[_Asked]:
    place = places.new()
    with running(servers, place, embedder) as server:
        asyncio.run(fill(over_http(server), data.chats))
        if embedder != NONE:
            wait_until_embedded(server)
    return asyncio.run(_ask(data, embedder, place))


async def _ask(data: DataSet, embedder: str, place: DataDirectory) -> list[_Asked]:
    chance, found = random.Random(_SEED), []
    judged: list[tuple[Sequence[JudgedResult], JudgedReply]] = []

    def watch(*arguments: Any) -> JudgedReply:
        reply = relevance.judge(*arguments)
        judged.append((reply.kept, reply))
        return reply

    async with in_process(place, embedder, WHOLE) as client:
        with patch("memorywall.recall.search.judge", watch):
            for chat in data.chats:
                foreign = [
                    one for other in data.chats if other is not chat for one in other.questions
                ]
                chance.shuffle(foreign)
                questions = [(one.text, one.gold) for one in chat.questions]
                questions += [(one.text, frozenset()) for one in foreign[: len(questions)]]
                async with client(chat.agent) as agent:
                    for text, gold in questions:
                        limit = MOST_HITS if chat.units else DEEPEST
                        body = {"query": text[:LONGEST_QUERY], "limit": limit}
                        reply = await post(agent, "/api/v1/memory/search", body)
                        keys = [hit["entry"]["key"] for hit in reply["results"]]
                        found.append(_asked(chat, keys, gold, judged[-1][0] if judged else ()))
                        judged.clear()
    return found


def _asked(
    chat: Chat, keys: Sequence[str], gold: frozenset[str], judged: Sequence[JudgedResult]
) -> _Asked:
    best = judged[:_JUDGED]
    recall = judge(chat.found(keys)[:DEEPEST], gold).recall if gold else 0.0
    answers = [float(chat.units.get(key, key) in gold) for key in keys[:_JUDGED]]
    return _Asked([_signals(one) for one in best], answers, _of_reply(best), bool(gold), recall)


def _signals(one: JudgedResult) -> list[float]:
    evidence = one.evidence
    length = math.log1p(len(one.ranked.parsed.weighted)) / 3
    near, meaning = evidence.words_nearby, evidence.meaning or 0.0
    words = [1.0, evidence.words, near, length, float(evidence.author), near * length]
    return [*words, meaning, meaning * length]


def _of_reply(best: Sequence[JudgedResult]) -> list[float]:
    if not best:
        return [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    author = max(float(one.evidence.author) for one in best)
    people = float(any(one.ranked.document.is_named for one in best))
    return [
        1.0,
        max(one.evidence.words for one in best),
        max(one.evidence.words_nearby for one in best),
        author,
        people * (1 - author),
        min(one.ranked.parsed.absent for one in best),
        min(one.ranked.parsed.unknown for one in best),
        max(one.evidence.meaning or 0.0 for one in best),
    ]


def _fit_hits(asked: Sequence[Sequence[_Asked]]) -> Floats:
    rows = [[signals for one in some for signals in one.hits] for some in asked]
    return _fit(rows, [[gold for one in some for gold in one.gold] for some in asked], 1_000)


def _fit_replies(asked: Sequence[Sequence[_Asked]]) -> Floats:
    rows = [[one.reply for one in some] for some in asked]
    return _fit(rows, [[float(one.is_own) for one in some] for some in asked], 300)


def _fit(rows: Sequence[Any], labels: Sequence[Any], weight: float) -> Floats:
    """Logistic regression by Newton's method, in which each set weighs the same."""
    signals, wanted = np.vstack(rows), np.concatenate([np.array(one) for one in labels])
    weights = np.concatenate([np.full(len(one), weight / len(one)) for one in labels])
    penalty = np.diag([1e-3, *[_PENALTY] * (signals.shape[1] - 1)])
    found: Floats = np.zeros(signals.shape[1])
    for _ in range(40):
        chance = _probabilities(signals, found)
        slope = signals.T @ (weights * (wanted - chance)) - penalty @ found
        curve = (signals * (weights * chance * (1 - chance))[:, None]).T @ signals + penalty
        found = found + np.linalg.solve(curve, slope)
    return found


def _probabilities(signals: Floats, weights: Floats) -> Floats:
    chance: Floats = 1 / (1 + np.exp(-signals @ weights))
    return chance


def _report(
    name: str, asked: Sequence[_Asked], others: Sequence[Sequence[_Asked]], cut: float
) -> None:
    """Prints the figures of a set, of models without it."""
    hits = np.array([signals for one in asked for signals in one.hits])
    gold = np.array([one for some in asked for one in some.gold])
    chance = _probabilities(hits, _fit_hits(others))
    replies = _probabilities(np.array([one.reply for one in asked]), _fit_replies(others))
    own = np.array([one.is_own for one in asked])
    recall = np.array([one.recall for one in asked])
    lost = 100 * float((recall * (replies < cut))[own].mean())
    silent = float((replies < cut)[~own].mean()) if (~own).any() else math.nan
    print(f"{name}: R@10 {100 * recall[own].mean():.1f}, {lost:.1f} lost by silence,"
          f" {100 * silent:.0f} % of foreign questions without an answer")  # fmt: skip
    for low, high in pairwise(_BINS):
        some = (chance >= low) & (chance < high)
        if some.any():
            print(f"  relevance {low:.2f} to {high:.2f}: {some.sum():5d} results,"
                  f" {100 * gold[some].mean():3.0f} % answer")  # fmt: skip


if __name__ == "__main__":
    main()
