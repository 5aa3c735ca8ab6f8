"""Warns where an entry that was got by name hides another one in a wider tier."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from memorywall.sdk.models import MemoryEntry
from memorywall.wire.entries import ShadowedEntry

_log = logging.getLogger("memorywall.memory")


def warn_of_shadows(entry: MemoryEntry, shadows: Iterable[ShadowedEntry]) -> None:
    """Logs the tiers in which an entry hides another one of its name."""
    tiers = ", ".join(one.memory_type for one in shadows)
    _log.warning(
        "%s/%s is the %s entry; it hides an entry of the same name in: %s. Pass memory_type to"
        " choose.",
        entry.namespace,
        entry.key,
        entry.memory_type,
        tiers,
    )
