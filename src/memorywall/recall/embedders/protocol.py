"""The interface of embedders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    # The base install has no numpy; only open embedders need it.
    import numpy as np
    import numpy.typing as npt


class Embedder(Protocol):
    """Converts texts to vectors whose dot product is the similarity of their meanings.

    model: the id of the stored vectors: form, weights and number of dimensions. Embedders with the
        same id return the same vectors, and vectors of different ids are never compared.
    dimensions: the length of a vector
    is_local: whether texts are embedded in this process, in some milliseconds each
    A vector depends only on its own text.
    """

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def is_local(self) -> bool: ...

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """One row per text, in order, scaled to length one; zeros for an empty text.

        The call blocks, so use a thread; several threads may call it concurrently. Long texts are
        truncated. Raises UnavailableError; its message never repeats a text.
        """
        ...

    def close(self) -> None:
        """Releases its resources; a waiting call raises UnavailableError."""
        ...
