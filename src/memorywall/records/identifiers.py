"""Generated ids, and the rule for names that clients choose."""

from __future__ import annotations

import random
from collections.abc import Callable
from threading import Lock
from uuid import UUID

from memorywall.records.clock import Clock

LONGEST_NAME = 256
LONGEST_AGENT = 128
LONGEST_KEY = 512
LONGEST_TAG = 128
MOST_TAGS = 64
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 80
# These characters have the category of letters and marks, but are invisible.
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
_LOW_BITS = (1 << 60) - 1
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]


class IdSource:
    """Generates ULIDs with a prefix. Each id sorts after the id before it.

    random_bits: returns a uniformly random integer of n bits; tests inject their own
    """

    def __init__(self, clock: Clock, random_bits: Callable[[int], int] | None = None) -> None:
        self._clock = clock
        # An id is no secret: it must be unique, not hard to guess.
        self._random_bits = random_bits or random.Random().getrandbits  # noqa: S311
        self._latest = 0
        self._lock = Lock()

    def next_uuid(self) -> str:
        """A new UUID of version 7 (RFC 9562) in its canonical form."""
        now = self._clock.now()
        with self._lock:
            # The lowest 6 of the random bits are not shown, so the number grows by more than those.
            if now > self._latest >> _RANDOM_BITS:
                self._latest = now << _RANDOM_BITS | self._random_bits(_RANDOM_BITS - 1)
            else:
                self._latest += 64 + self._random_bits(24)
            number = self._latest
        shown = number >> 6
        high, low = shown >> 62, shown & (1 << 62) - 1
        fields = (high >> 12) << 16 | 0x7000 | high & 0xFFF
        return str(UUID(int=fields << 64 | 0b10 << 62 | low))

    def next(self, prefix: str) -> str:
        """A new id such as `mem_01J9ZK3V6Q0000000000000000`.

        prefix: the type of the object, such as `mem`
        """
        now = self._clock.now()
        with self._lock:
            if now > self._latest >> _RANDOM_BITS:
                # The top bit stays clear so that counting up cannot run over into the time.
                self._latest = now << _RANDOM_BITS | self._random_bits(_RANDOM_BITS - 1)
            else:
                self._latest += 1 + self._random_bits(24)
            number = self._latest
        pairs, high, low = _PAIRS, number >> 60, number & _LOW_BITS
        return (
            f"{prefix}_{pairs[high >> 60]}{pairs[high >> 50 & 1023]}{pairs[high >> 40 & 1023]}"
            f"{pairs[high >> 30 & 1023]}{pairs[high >> 20 & 1023]}{pairs[high >> 10 & 1023]}"
            f"{pairs[high & 1023]}{pairs[low >> 50]}{pairs[low >> 40 & 1023]}"
            f"{pairs[low >> 30 & 1023]}{pairs[low >> 20 & 1023]}{pairs[low >> 10 & 1023]}"
            f"{pairs[low & 1023]}"
        )


def is_clean(text: str, longest: int) -> bool:
    """Whether `text` may be a name: 1 to `longest` printable characters without outer spaces.

    Control characters, NUL, surrogates, invisible characters and bidirectional format characters
    are not printable. With them, one name could look like another.
    """
    return (
        0 < len(text) <= longest
        and text.isprintable()
        and text == text.strip()
        and (text.isascii() or _BLANK_LETTERS.isdisjoint(text))
    )
