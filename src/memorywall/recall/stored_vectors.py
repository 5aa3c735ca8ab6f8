"""The stored form of vectors: a signed byte per dimension and a factor, as in the index."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from memorywall.recall.passages import CUT

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.int8]
FORM = f"{CUT}:i8"
"""The name of this form and of the way of cutting. It is part of the id of a model, so that vectors
of another form are made anew."""
FACTOR_BYTES = 4
_LARGEST = 127


def quantize(vectors: Floats) -> tuple[Bytes, Floats]:
    """Vectors with a byte per dimension, and the factor of each."""
    largest = np.abs(vectors).max(axis=1, initial=0)
    factors = np.where(largest > 0, largest / _LARGEST, 1).astype(np.float32)
    numbers = np.rint(vectors / factors[:, None]).astype(np.int8)
    return numbers, np.where(largest > 0, factors, 0).astype(np.float32)


def encode(vectors: Floats) -> list[bytes]:
    """The stored form of each vector; that of several vectors is one after the other."""
    # The documented quality and the limits of similarity were measured with this precision.
    numbers, factors = quantize(vectors.astype(np.float16).astype(np.float32))
    stored = np.hstack([numbers, factors.astype("<f4")[:, None].view(np.int8)])
    return [row.tobytes() for row in stored]


def decode(stored: bytes, dimensions: int) -> tuple[Bytes, Floats]:
    """Vectors that are stored one after the other, with a byte per dimension, and the factor of
    each. A factor that is no number, which only damage makes, is 0: the vector is unknown."""
    rows = np.frombuffer(stored, np.int8).reshape(-1, dimensions + FACTOR_BYTES)
    factors = rows[:, dimensions:].copy().view("<f4")[:, 0]
    return rows[:, :dimensions], np.where(np.isfinite(factors), factors, 0).astype(np.float32)
