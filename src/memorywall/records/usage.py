"""Usage of memory, and limits of agents."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Counts of unexpired entries.

    entries: the number of entries
    bytes: the bytes of the JSON texts of their values
    pinned: the number of pinned entries
    """

    entries: int = 0
    bytes: int = 0
    pinned: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class NearlyFullMemory:
    """An agent's memory of a tier that is nearly full.

    entries, capacity: numbers of entries
    """

    agent: str
    entries: int
    capacity: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentLimits:
    """The limits of one agent that differ from the defaults.

    episodic_capacity: entries, None for the default
    pinned_namespaces: new episodic entries in these namespaces are pinned
    """

    episodic_capacity: int | None = None
    pinned_namespaces: tuple[str, ...] = ()
