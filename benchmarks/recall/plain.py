"""Plain methods to compare with: words alone, an embedder alone, and fixed mixtures of the two.

They do not use conversations or dates, and use authors only to remove their names from the query.
The weight of a mixture is chosen on the other data sets, because the questions of the measured one
are not known in use.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
from tabulate import tabulate

from benchmarks.recall.chats import Chat, DataSet
from benchmarks.recall.judging import DEEPEST, Judgement, difference, judge, mean_of
from benchmarks.recall.quality import Quality
from benchmarks.recall.variants import HYBRID
from memorywall.recall.analyzer import Analyzer
from memorywall.recall.embedders import open_embedder
from memorywall.recall.embedders.protocol import Embedder
from memorywall.recall.query_parser import remove_names

_WEIGHTS = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)
"""Of the embedder; 0 is words alone and 1 the embedder alone."""
_SATURATION, _LENGTH_SHARE = 1.2, 0.5
_BATCH = 64
_METADATA = ("author", "date", "role")
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plain:
    """The judgements of every question, by the weight of the embedder."""

    by_weight: dict[float, list[Judgement]]

    def recall(self, weight: float) -> float:
        """The mean R@10 with a weight."""
        return mean_of(self.by_weight[weight]).recall


def measure_plain(data: DataSet, embedder: str, folder: Path) -> Plain:
    """Ranks the entries of each conversation for each of its questions, in this process.

    folder: the cache of vectors
    """
    opened = open_embedder(embedder)
    assert opened is not None, "a plain method by meaning needs an embedder"
    found: dict[float, list[Judgement]] = {weight: [] for weight in _WEIGHTS}
    for chat in data.chats:
        keys = [entry["key"] for entry in chat.entries]
        texts = [_text(entry["value"]) for entry in chat.entries]
        names = _names(chat)
        queries = [remove_names(question.text, names) for question in chat.questions]
        lexical = _words(texts, queries)
        dense = _scaled(
            np.maximum(_vectors(opened, queries, folder) @ _vectors(opened, texts, folder).T, 0)
        )
        for number, question in enumerate(chat.questions):
            for weight, judgements in found.items():
                score = weight * dense[number] + (1 - weight) * lexical[number]
                judgements.append(judge(_best(chat, keys, score), question.gold))
    return Plain(by_weight=found)


def plain_table(found: list[Quality], plain: list[Plain], embedder: str) -> str:
    """Returns R@10 of each method on each set, and the difference from the mixture."""
    rows: list[dict[str, Any]] = []
    for number, (quality, own) in enumerate(zip(found, plain, strict=True)):
        wanted = (embedder, HYBRID)
        ours = next(one for one in quality.served if (one.embedder, one.mode) == wanted)
        others = [other for at, other in enumerate(plain) if at != number] or [own]
        mixtures = [weight for weight in _WEIGHTS if 0 < weight < 1]
        weight = max(mixtures, key=lambda each: fmean(other.recall(each) for other in others))
        rows.append(
            {
                "R@10": quality.data.name,
                "words alone": f"{100 * own.recall(0.0):.1f}",
                f"{embedder} alone": f"{100 * own.recall(1.0):.1f}",
                "mixture": f"{100 * own.recall(weight):.1f} (weight {weight})",
                "ours": f"{100 * ours.mean.recall:.1f}",
                "difference from the mixture": str(
                    difference(own.by_weight[weight], ours.judgements)
                ),
            }
        )
    return tabulate(rows, headers="keys", tablefmt="simple", disable_numparse=True)


def _best(chat: Chat, keys: list[str], score: Floats) -> list[str]:
    order = np.argsort(-score, kind="stable")
    return chat.found(keys[at] for at in order if score[at] > 0)[:DEEPEST]


def _words(texts: list[str], queries: list[str]) -> Floats:
    """BM25 over the terms of the project's analyser; the best of each query is 1."""
    analyzer = Analyzer()
    analyzed = [analyzer.of(text) for text in texts]
    lengths = np.array([length for _, length in analyzed], float)
    norm = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * lengths / (lengths.mean() or 1))
    postings: dict[str, list[tuple[int, int]]] = {}
    for number, (terms, _) in enumerate(analyzed):
        for term, count in Counter(terms).items():
            postings.setdefault(term, []).append((number, count))
    scores = np.zeros((len(queries), len(texts)))
    for at, query in enumerate(queries):
        for term in set(analyzer.of(query)[0]):
            matches = postings.get(term, [])
            rarity = math.log(1 + (len(texts) - len(matches) + 0.5) / (len(matches) + 0.5))
            for number, count in matches:
                scores[at, number] += rarity * count / (count + norm[number])
    return _scaled(scores)


def _names(chat: Chat) -> list[str]:
    """Returns the names of the authors, longest first; texts do not contain them."""
    authors = {str(entry["value"].get("author") or "") for entry in chat.entries}
    names = authors | {author.partition(" ")[0] for author in authors}
    return sorted(names - {"", "user", "assistant"}, key=lambda name: (-len(name), name))


def _text(value: dict[str, Any]) -> str:
    """Returns the text of an entry, with the captions of pictures."""
    return "\n".join(str(part) for name, part in value.items() if name not in _METADATA)


def _vectors(embedder: Embedder, texts: list[str], folder: Path) -> Floats:
    """One row of length one for each text."""
    digest = blake2b("\0".join((embedder.model, *texts)).encode(errors="replace"), digest_size=16)
    file = folder / f"{digest.hexdigest()}.npy"
    if file.exists():
        known: Floats = np.load(file)
        return known
    parts = [embedder.embed(texts[at : at + _BATCH]) for at in range(0, len(texts), _BATCH)]
    vectors = np.concatenate([np.asarray(part, float) for part in parts])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Floats = vectors / np.where(lengths > 0, lengths, 1)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(file, scaled)
    return scaled


def _scaled(scores: Floats) -> Floats:
    best = scores.max(axis=1, keepdims=True)
    scaled: Floats = scores / np.where(best > 0, best, 1)
    return scaled
