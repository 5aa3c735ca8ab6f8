"""Gives the vectors of any model the range of cosines that the rules of recall are made for.

Models differ in the cosines of texts that have nothing in common: about 0 for some, .7 and more for
others, whose vectors share a direction. Rules that compare cosines with a number, such as the one
for two notes that say the same, would take strangers for copies there. This embedder subtracts the
mean vector of texts on different matters, which is that direction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from threading import Lock

import numpy as np

from memorywall.recall.embedders.conversion import Rows, unit_rows
from memorywall.recall.embedders.protocol import Embedder

_UNRELATED = (
    "The kettle is on the stove.",
    "Prices of apples rose last autumn.",
    "She painted the fence green.",
    "A train leaves every hour.",
    "The contract ends in March.",
    "My brother plays the violin.",
    "Restart the server after the update.",
    "He is allergic to nuts.",
    "The museum is closed on Mondays.",
    "We chose the blue wallpaper.",
    "Rain is expected in the north.",
    "The invoice was sent twice.",
    "A fox crossed the road at night.",
    "Please shorten the second paragraph.",
    "The battery lasts nine hours.",
    "They moved to a smaller flat.",
    "The recipe needs two lemons.",
    "Our team lost the final.",
    "The law was changed in spring.",
    "I forgot the password again.",
)
"""Sentences on different matters."""


class CenteredEmbedder:
    """An embedder whose vectors have the mean of unrelated texts subtracted, with a text before
    each query and each document, for models that were trained with such.

    embedder: computes the vectors; closed with this one
    query_prefix: the text before a query, such as `query: `; default: none
    document_prefix: the text before a document, such as `passage: `; default: none
    """

    def __init__(
        self, embedder: Embedder, *, query_prefix: str = "", document_prefix: str = ""
    ) -> None:
        self._embedder = embedder
        self._query_prefix = query_prefix
        self._document_prefix = document_prefix
        self._lock = Lock()
        self._mean: Rows | None = None
        self.dimensions = embedder.dimensions
        self.is_local = embedder.is_local
        parts = ("centered", *_UNRELATED, document_prefix)
        self.model = (
            f"{embedder.model}:{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:8]}"
        )

    def embed(self, texts: Sequence[str]) -> Rows:
        """The vectors of documents. Raises UnavailableError."""
        return self._centered(texts, self._document_prefix)

    def embed_queries(self, texts: Sequence[str]) -> Rows:
        """The vectors of queries. Raises UnavailableError."""
        return self._centered(texts, self._query_prefix)

    def close(self) -> None:
        """Closes the embedder."""
        self._embedder.close()

    def _centered(self, texts: Sequence[str], prefix: str) -> Rows:
        rows = self._embedder.embed([prefix + text if text.strip() else "" for text in texts])
        is_known = rows.any(axis=1, keepdims=True)
        centered: Rows = (rows - self._mean_of_unrelated()) * is_known
        return unit_rows(centered)

    def _mean_of_unrelated(self) -> Rows:
        # When the first text is embedded: a service need not answer when the server starts.
        with self._lock:
            if self._mean is None:
                unrelated = [self._document_prefix + text for text in _UNRELATED]
                self._mean = np.mean(self._embedder.embed(unrelated), axis=0)
            return self._mean
