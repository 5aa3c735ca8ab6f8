"""Vectors of recent searches: a sample by which an index or an embedder can be judged."""

from __future__ import annotations

import msgspec

from memorywall.records.sealed import SealedPart


class QueryVector(msgspec.Struct, frozen=True, kw_only=True):
    """The vector of one query. Its text is stored nowhere.

    agent_id: the agent that searched, with whose data key the vector is sealed
    at: the instant of the search
    model: the model of the vector
    subjects: digests of the people that the search was bound to
    vector: half-precision numbers, little-endian, in base64
    """

    tenant: str
    id: str
    agent_id: str
    at: str
    model: str
    subjects: tuple[str, ...] = ()
    vector: str = ""
    sealed: SealedPart | None = None
