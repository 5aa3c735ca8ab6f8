"""Numbers of documents in the columns of a segment, as numbers in a shard."""

from __future__ import annotations

import msgspec
import numpy as np

from memorywall.recall.segment_columns import Lists

_NOTHING = -1


def shift_numbers(numbers: bytes, base: int) -> bytes:
    """Numbers of neighbours, increased by `base`; missing neighbours stay missing."""
    column = np.frombuffer(numbers, np.int32)
    return np.where(column == _NOTHING, column, column + np.int32(base)).tobytes()


def move_lists(lists: Lists, distance: int) -> Lists:
    """Lists whose numbers are increased by `distance`."""
    numbers = np.frombuffer(lists.numbers, np.uint32) + np.uint32(distance)
    return msgspec.structs.replace(lists, numbers=numbers.tobytes())
