"""How much memory an owner uses in a tier."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Unexpired entries, the bytes of their values' JSON text, and how many are pinned."""

    entries: int = 0
    bytes: int = 0
    pinned: int = 0
