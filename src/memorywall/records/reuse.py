"""Histograms of the time until the next use of entries, from which lifetimes can be derived."""

from __future__ import annotations

import msgspec

MOST_BUCKETS = 22
_MINUTE = 60_000


class ReuseHistogram(msgspec.Struct, frozen=True, kw_only=True):
    """The intervals between uses of the entries of a namespace.

    counts: the number of intervals by kind ("" for free JSON) and bucket; see `bucket_of`. Buckets
        at the end without intervals are left out.
    """

    tenant: str
    namespace: str
    counts: dict[str, list[int]] = {}


def bucket_of(milliseconds: int) -> int:
    """Returns the bucket of an interval: 0 for less than a minute, else the bucket n has intervals
    from 2^(n-1) minutes on and below 2^n minutes; the last one has all longer intervals."""
    return min(max(0, milliseconds // _MINUTE).bit_length(), MOST_BUCKETS - 1)


def add_interval(counts: dict[str, list[int]], kind: str, bucket: int, number: int = 1) -> None:
    """Adds a number of intervals of a bucket, in place."""
    row = counts.setdefault(kind, [])
    row.extend([0] * (bucket + 1 - len(row)))
    row[bucket] += number
