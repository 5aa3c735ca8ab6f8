"""An embedder that needs no weights: texts that share words are alike."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from hashlib import blake2b
from re import findall

import numpy as np
import numpy.typing as npt

from memorywall.records.errors import UnavailableError

DIMENSIONS = 64
_KNOWN = (
    *("kitten", "puppy", "sofa", "window", "tree", "brown", "black", "animal", "budget", "refund"),
    *("invoice", "ada", "grace", "monday", "march", "volcano", "train", "boxes", "cartons"),
)
"""Words that have a dimension of their own; the others share what is left."""
_SHARED_FROM = 24


class WordEmbedder:
    """Gives each word a dimension, and a text the sum of its words.

    name: stands in the id of the model, and makes its vectors others than those of another name
    failures: how many calls fail from now on
    """

    def __init__(self, name: str = "words") -> None:
        self.name = name
        self.is_local = False
        self.failures = 0
        self.texts: list[str] = []
        self.calls = 0
        self.held = threading.Event()
        self.held.set()

    @property
    def model(self) -> str:
        return f"test:{self.name}@{DIMENSIONS}"

    @property
    def dimensions(self) -> int:
        return DIMENSIONS

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """One row for each text. Waits while `held` is not set."""
        assert self.held.wait(30), "nobody let the embedder go on"
        self.calls += 1
        if self.failures:
            self.failures -= 1
            raise UnavailableError("the embedder of the tests is to fail")
        self.texts.extend(texts)
        rows = np.zeros((len(texts), DIMENSIONS), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in findall(r"\w+", text.lower()):
                row[self._dimension(word)] += 1
            length = float(np.linalg.norm(row))
            if length:
                row /= length
        return rows

    def _dimension(self, word: str) -> int:
        if word in _KNOWN:
            return (_KNOWN.index(word) + len(self.name)) % _SHARED_FROM
        digest = blake2b(f"{self.name}:{word}".encode(), digest_size=2).digest()
        return _SHARED_FROM + int.from_bytes(digest) % (DIMENSIONS - _SHARED_FROM)

    def close(self) -> None:
        """Nothing is held."""
