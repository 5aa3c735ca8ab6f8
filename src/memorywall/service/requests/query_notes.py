"""Searches whose vectors may be stored, which searches record in memory and a job stores."""

from __future__ import annotations

import heapq
from hashlib import sha256
from typing import NamedTuple

SAMPLE_SIZE = 256
"""The most vectors of searches of a tenant."""


class QueryNote(NamedTuple):
    """A search that is not stored yet. The first field orders notes: the larger, the sooner it is
    left out.

    subjects: the names of the people that the search was bound to
    """

    rank: int
    id: str
    agent: str
    at: str
    model: str
    subjects: tuple[str, ...]
    vector: bytes


class QueryNotes:
    """Noted searches by tenant, at most `SAMPLE_SIZE` of each. Used on the event loop only."""

    def __init__(self) -> None:
        self._noted: dict[str, list[QueryNote]] = {}

    def add(
        self, tenant: str, query_id: str, agent: str, at: str, model: str,
        subjects: tuple[str, ...], vector: bytes,
    ) -> None:  # fmt: skip
        """Notes a search."""
        note = QueryNote(-rank_of(query_id), query_id, agent, at, model, subjects, vector)
        heap = self._noted.setdefault(tenant, [])
        if len(heap) < SAMPLE_SIZE:
            heapq.heappush(heap, note)
        else:
            heapq.heappushpop(heap, note)

    def drain(self) -> dict[str, list[QueryNote]]:
        """Returns and forgets all notes, by tenant."""
        noted, self._noted = self._noted, {}
        return noted

    def drop(self, tenant: str, agent: str) -> None:
        """Forgets the notes of an agent."""
        kept = [one for one in self._noted.pop(tenant, []) if one.agent != agent]
        heapq.heapify(kept)
        if kept:
            self._noted[tenant] = kept


def rank_of(query_id: str) -> int:
    """Returns the rank of a search in the sample; those with the smallest ranks are kept. A digest
    gives every search the same chance, on every server."""
    return int.from_bytes(sha256(query_id.encode()).digest()[:8])
