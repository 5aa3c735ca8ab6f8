"""Exact numbers of tokens, with the extra `memorywall[tokens]`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

from memorywall.tokens.estimate import TokenCounter, estimate

Vocabulary = Literal["o200k_base", "cl100k_base"]


class ExactCounter:
    """Counts the tokens of a text exactly as soon as the vocabulary is loaded, which takes some
    seconds; estimates them before that and without the extra.

    vocabulary: `o200k_base` or `cl100k_base`; default: `o200k_base`
    """

    def __init__(self, vocabulary: Vocabulary = "o200k_base") -> None:
        self.vocabulary = vocabulary
        self._count: Callable[[str], int] | None = None
        self._loader: threading.Thread | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the vocabulary is loaded."""
        return self._count is not None

    def start(self) -> None:
        """Loads the vocabulary in a thread; harmless when repeated."""
        if self._loader is None:
            self._loader = threading.Thread(target=self.load, name="tokens", daemon=True)
            self._loader.start()

    def load(self) -> None:
        """Loads the vocabulary in this thread; without the extra the counter goes on estimating."""
        try:
            import quicktok
        except ImportError:
            return
        encoding = quicktok.get_encoding(self.vocabulary)
        # A text that holds the name of a special token is a text, so it is encoded as one.
        self._count = lambda text: len(encoding.encode_ordinary(text))

    def __call__(self, text: str) -> int:
        """Returns the number of tokens of a text."""
        return estimate(text) if self._count is None else self._count(text)


def counter(name: str) -> TokenCounter:
    """Returns the counter with this name, `estimate` or a vocabulary.

    Raises KeyError for another name.
    """
    return COUNTERS[name]


COUNTERS: dict[str, TokenCounter] = {
    "estimate": estimate,
    "o200k_base": ExactCounter("o200k_base"),
    "cl100k_base": ExactCounter("cl100k_base"),
}
"""The counters of a server, by name. A vocabulary is loaded when it is first asked for."""
