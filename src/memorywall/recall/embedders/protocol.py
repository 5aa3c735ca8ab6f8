"""What turns texts into vectors, as the rest of recall sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    # The base install has no numpy; only the embedders that are opened need it.
    import numpy as np
    import numpy.typing as npt


class Embedder(Protocol):
    """Turns texts into vectors whose dot product tells how near their meanings are.

    `model` is the id under which vectors are kept. It names the kind, the weights and the number of
    dimensions; two embedders with one id give the same vectors, and vectors of two ids never mix.
    A vector depends on its own text only, never on what was embedded beside it.
    """

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """One row for each text, in order, of length one; all zeros for a text with nothing in it.

        It blocks, so call it in a thread; several threads may call it at once. Any string will do:
        a long text stands for its beginning. Raises UnavailableError when the vectors cannot be
        had now; it never repeats a text.
        """
        ...

    def close(self) -> None:
        """Lets go of what it holds; a call that waits meanwhile raises UnavailableError."""
        ...
