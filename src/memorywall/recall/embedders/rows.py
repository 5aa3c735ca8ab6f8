"""Vectors side by side, each of length one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]


def unit_rows(rows: npt.NDArray[Any]) -> Rows:
    """Each row scaled to length one; one of zeros, or with what is no finite number, is zeros."""
    # Lengths are taken in float64: squares of large float32 values would overflow.
    wide = rows.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    lengths[~np.isfinite(lengths)] = 0
    wide[lengths[:, 0] == 0] = 0
    np.divide(wide, lengths, out=wide, where=lengths > 0)
    return wide.astype(np.float32)
