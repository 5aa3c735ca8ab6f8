"""Counts of refusals, for metrics and audit."""

from __future__ import annotations

from collections import Counter
from threading import Lock

from memorywall.records.errors import MemorywallError


class RefusalCounter:
    """Counts refused requests of this process, by operation and error code.

    Principals, tenants and names are no labels, so that the size does not grow with their number.
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = Lock()

    def note(self, operation: str, error: MemorywallError) -> None:
        """Counts one refusal."""
        with self._lock:
            self._counts[operation, error.code] += 1

    def counts(self) -> dict[tuple[str, str], int]:
        """The number of refused requests since the start, by (operation, error code)."""
        return dict(self._counts)
