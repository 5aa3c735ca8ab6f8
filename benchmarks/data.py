"""The data of the benchmark: who owns how many entries, with which tags and values.

Everything is drawn from seeded generators, so two runs send the same requests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import comb
from random import Random

from benchmarks.plan import Shape

ENTRIES_PER_AGENT = 10_000
MATCHES_PER_QUERY = 14
ENTRIES_PER_TASK = 50
NAMESPACES = 16
NUMBER_BASE = 1_000_000_000
DRAWN_TAGS = 1 << 17
SEED = 15

_ENTRY = (
    b'{%s"namespace":"bench.%02d","key":"key_%010d","value":%s,"memory_type":"working",'
    b'"tags":[%s],"scope":{"task_id":"task_%08d"}}'
)


def shape_of(entries: int, entries_per_agent: int = ENTRIES_PER_AGENT) -> Shape:
    """Spread a store of about `entries` over agents of equal size.

    What one agent owns does not grow with the store, so a query matches as many entries in a
    large store as in a small one, and a difference in rate is the store's own doing.
    """
    per_agent = min(entries, entries_per_agent)
    vocabulary = 3
    while comb(vocabulary, 2) * MATCHES_PER_QUERY < per_agent:
        vocabulary += 1
    return Shape(
        agents=max(1, entries // per_agent), entries_per_agent=per_agent, vocabulary=vocabulary
    )


def agent_name(agent: int) -> bytes:
    """The id of an agent; all ids have one length."""
    return b"agent_%06d" % agent


class Source:
    """An endless supply of new entries. All bodies have the same length."""

    def __init__(self, shape: Shape) -> None:
        self._tags = _drawn_tags(shape.vocabulary)
        self._made = 0

    def entry(self, more: bytes = b"") -> bytes:
        """The body of the next create; `more` are further fields, each ending in a comma."""
        number = self._made
        self._made = number + 1
        return _ENTRY % (
            more,
            number % NAMESPACES,
            number,
            value(number),
            self._tags[number % DRAWN_TAGS],
            number // ENTRIES_PER_TASK,
        )


@cache
def _drawn_tags(vocabulary: int) -> list[bytes]:
    """Tags of many entries, drawn beforehand: the generator shares the machine with the server."""
    chance = Random(SEED).random
    return [b'"%s","%s"' % two_tags(chance, vocabulary) for _ in range(DRAWN_TAGS)]


def two_tags(chance: Callable[[], float], vocabulary: int) -> tuple[bytes, bytes]:
    """Two different tags, every pair as likely as any other."""
    first = int(chance() * vocabulary)
    second = (first + 1 + int(chance() * (vocabulary - 1))) % vocabulary
    return b"tag%04d" % first, b"tag%04d" % second


def value(number: int) -> bytes:
    """A value of about 100 bytes, as an agent in the middle of a batch might keep it."""
    count = NUMBER_BASE + number
    return (
        b'{"total":2000000000,"completed":%d,"last_id":"inv_%d","errors":[],'
        b'"resumed":false,"share":0.25}' % (count, count)
    )
