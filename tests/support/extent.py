"""The extent of the randomised tests.

`make test` repeats recorded cases, the same in every run. `make chaos` (MEMORYWALL_CHAOS=1) tries
new ones, and more of them; it prints the seed, with which MEMORYWALL_SEED repeats a run.
"""

from __future__ import annotations

import os
from secrets import randbits
from typing import TypeVar

from hypothesis import HealthCheck, settings

Extent = TypeVar("Extent")

CHAOS = bool(os.environ.get("MEMORYWALL_CHAOS"))
_MOST_RECORDED = 40
_RECORDED_SEED = 20_260_202

# No time limit for an example: on a busy machine any of them may take long.
_COMMON = settings(
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def use_profile() -> None:
    """Makes Hypothesis try the recorded examples, or new ones in the long version."""
    settings.register_profile("recorded", _COMMON, derandomize=True)
    settings.register_profile("chaos", _COMMON, max_examples=1_000)
    settings.load_profile("chaos" if CHAOS else "recorded")


def examples(long: int) -> int:
    """Returns the number of examples of a test that tries `long` ones in the long version."""
    return long if CHAOS else min(long, _MOST_RECORDED)


def extent(recorded: Extent, *, long: Extent) -> Extent:
    """The size of a test in `make test`, or that in the long version."""
    return long if CHAOS else recorded


def chosen_seed() -> int:
    """The seed of a randomised test, which is printed: the one that MEMORYWALL_SEED names, else a
    new one in the long version and the recorded one in `make test`."""
    seed = int(os.environ.get("MEMORYWALL_SEED") or extent(_RECORDED_SEED, long=randbits(32)))
    print(f"MEMORYWALL_SEED={seed}")
    return seed
