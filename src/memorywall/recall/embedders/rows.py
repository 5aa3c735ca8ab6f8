"""Matrices of unit vectors."""

from __future__ import annotations

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
