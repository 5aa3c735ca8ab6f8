"""How well an entry is founded (memory wall, 11.5.1: curated before learned before inferred)."""

from __future__ import annotations

from typing import Any, Final

from memorywall.records.entry import Entry

CURATED: Final = 1.0
"""A person who may write to the namespace wrote it."""
VERIFIED: Final = 0.8
"""An agent that may write to the namespace wrote it."""
LEARNED: Final = 0.6
"""An agent wrote it into its own memory."""
INFERRED: Final = 0.4
"""An agent made it from other entries."""

_AUTHORITIES = {"human_curated": CURATED, "verified": VERIFIED}


def trust_of(entry: Entry, value: dict[str, Any]) -> float:
    """From 0 to 1: the standing of who wrote it, times the confidence the value itself gives."""
    provenance = entry.provenance
    if provenance.authority is not None:
        standing = _AUTHORITIES.get(provenance.authority, LEARNED)
    else:
        standing = INFERRED if provenance.derived_from else LEARNED
    return standing * confidence_of(value)


def confidence_of(value: dict[str, Any]) -> float:
    """The `confidence` of a value, 1 where it gives none from 0 to 1."""
    confidence = value.get("confidence")
    if isinstance(confidence, int | float) and not isinstance(confidence, bool):
        return float(confidence) if 0 <= confidence <= 1 else 1.0
    return 1.0
