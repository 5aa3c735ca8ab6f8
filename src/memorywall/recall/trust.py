"""The trust in an entry (memory wall, 11.5.1: curated before learned before inferred)."""

from __future__ import annotations

from typing import Any, Final

from memorywall.records.entry import Entry

CURATED: Final = 1.0
"""The trust in an entry that a user wrote to a namespace."""
VERIFIED: Final = 0.8
"""The trust in an entry that an agent wrote to a namespace."""
LEARNED: Final = 0.6
"""The trust in an entry of an agent's own memory."""
INFERRED: Final = 0.4
"""The trust in an entry that an agent derived from other entries."""

_AUTHORITIES = {"human_curated": CURATED, "verified": VERIFIED}


def trust_of(entry: Entry, value: dict[str, Any]) -> float:
    """The trust from 0 to 1: that of the writer, multiplied by the `confidence` of the value."""
    provenance = entry.provenance
    if provenance.authority is not None:
        standing = _AUTHORITIES.get(provenance.authority, LEARNED)
    else:
        standing = INFERRED if provenance.derived_from else LEARNED
    return standing * confidence_of(value)


def confidence_of(value: dict[str, Any]) -> float:
    """The `confidence` of a value; 1 without a number from 0 to 1."""
    confidence = value.get("confidence")
    if isinstance(confidence, int | float) and not isinstance(confidence, bool):
        return float(confidence) if 0 <= confidence <= 1 else 1.0
    return 1.0
