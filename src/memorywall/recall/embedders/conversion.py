"""Conversion of texts to inputs of embedders, and of their outputs to unit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]


def unit_rows(rows: npt.NDArray[Any]) -> Rows:
    """Each row scaled to length one; rows of zeros or with numbers that are not finite are
    zeros."""
    # Lengths are computed in float64, because squares of large float32 values overflow.
    wide = rows.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    lengths[~np.isfinite(lengths)] = 0
    wide[lengths[:, 0] == 0] = 0
    np.divide(wide, lengths, out=wide, where=lengths > 0)
    return wide.astype(np.float32)


def prepare_texts(texts: Sequence[str], longest: int) -> list[str]:
    """Each text truncated to `longest` characters, without unpaired surrogates; "" for a blank
    text.

    Texts are truncated early, because a vector represents only the beginning of a text, and the
    time of the tokenizer grows with the length.
    """
    return [_encodable(text[:longest]).strip() for text in texts]


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # Pairs of surrogates become their character; single ones become a replacement character.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
