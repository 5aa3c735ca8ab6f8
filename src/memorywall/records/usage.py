"""How much memory is used, and how much one agent may use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Unexpired entries, the bytes of their values' JSON text, and how many are pinned."""

    entries: int = 0
    bytes: int = 0
    pinned: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentLimits:
    """What is set for one agent apart from the defaults.

    episodic_capacity: entries, None for the default
    pinned_namespaces: episodic entries made in these are pinned
    """

    episodic_capacity: int | None = None
    pinned_namespaces: tuple[str, ...] = ()
