"""Sums over the marked documents of a shard.

Long lists are summed with numpy where it is loaded, because such a sum in Python takes longer than
the ranking.
"""

from __future__ import annotations

import sys
from array import array
from itertools import compress

_FEW = 200


def count_marked(marks: bytearray, numbers: array[int], shift: int = 0) -> int:
    """The number of marked documents among `numbers`.

    marks: 1 for each marked document
    numbers: numbers of documents, of 4 bytes, after this many low bits of something else
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or len(numbers) < _FEW:
        return sum(marks[number >> shift] for number in numbers)
    documents = numpy.frombuffer(numbers, numpy.uint32) >> shift
    return int(numpy.count_nonzero(numpy.frombuffer(marks, numpy.uint8)[documents]))


def sum_marked(marks: bytearray, values: array[int]) -> int:
    """The sum of the values of the marked documents.

    values: one for each document, of 4 bytes
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or len(values) < _FEW:
        return sum(compress(values, marks))
    marked = numpy.frombuffer(marks, numpy.bool_)
    return int(numpy.frombuffer(values, numpy.int32)[marked].sum(dtype=numpy.int64))
