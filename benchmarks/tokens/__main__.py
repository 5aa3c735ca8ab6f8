"""`make bench-tokens`: the errors of the estimate of tokens; `--calibrate` fits it first."""

from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import UTC, datetime

import numpy as np
import quicktok
from tabulate import tabulate

from benchmarks.tokens.corpus import ROOT, Corpus, load
from memorywall.tokens.pieces import FEATURES, features_of, split

_VOCABULARY = "o200k_base"
_PATH = ROOT / "src/memorywall/tokens/coefficients.json"
_PULL = 0.05
"""The weight of the number of tokens that a feature has without data."""
_LEAST = 200
"""The tokens from which a single text must not be estimated too low."""


def calibrate(margin: float) -> None:
    """Fits the tokens of each feature by least squares of relative errors, where each kind of
    text counts by the square root of its number of texts, and writes them."""
    exact = quicktok.get_encoding(_VOCABULARY)
    rows, weights = [], []
    for texts in load(held_out=False).values():
        for text in texts:
            found: Counter[str] = Counter()
            for piece in split(text):
                found.update(features_of(piece))
            weight = len(texts) ** -0.5
            rows.append([found[name] * weight / exact.count(text) for name in FEATURES])
            weights.append(weight)
    usual = np.array(list(FEATURES.values()))
    matrix = np.vstack([rows, np.eye(len(FEATURES)) * _PULL])
    wanted = np.concatenate([weights, usual * _PULL])
    positive = np.ones(len(FEATURES), dtype=bool)
    while True:
        fitted = np.zeros(len(FEATURES))
        fitted[positive] = np.linalg.lstsq(matrix[:, positive], wanted, rcond=None)[0]
        if (fitted >= 0).all():
            break
        positive &= fitted > 0
    tokens = {name: round(float(value), 3) for name, value in zip(FEATURES, fitted, strict=True)}
    data = {
        "vocabulary": _VOCABULARY,
        "date": datetime.now(UTC).date().isoformat(),
        "margin": margin,
        "tokens": tokens,
    }
    _PATH.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def report(corpus: Corpus) -> str:
    """Returns a table of estimated over exact tokens, with a row for each kind of text."""
    from memorywall.tokens.estimate import estimate

    exact = quicktok.get_encoding(_VOCABULARY)
    rows = []
    for kind, texts in corpus.items():
        counts = np.array([[estimate(text), exact.count(text)] for text in texts], dtype=float)
        ratio = counts[:, 0] / counts[:, 1]
        long = ratio[counts[:, 1] >= _LEAST]
        rows.append([kind, len(texts), counts[:, 0].sum() / counts[:, 1].sum(), ratio.mean(),
                     long.min() if len(long) else None, int((long < 0.95).sum())])  # fmt: skip
    names = ["texts", "number", "total", "mean", f"least from {_LEAST}", "below 0.95"]
    return tabulate(rows, names, floatfmt=".3f", tablefmt="github")


if __name__ == "__main__":
    if "--calibrate" in sys.argv:
        calibrate(float(sys.argv[sys.argv.index("--calibrate") + 1]))
    for held_out in (False, True):
        print("\n## " + ("Held out" if held_out else "Calibration") + "\n")
        print(report(load(held_out)))
