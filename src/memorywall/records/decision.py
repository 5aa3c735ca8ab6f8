"""What the policy is asked and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memorywall.records.namespace import Namespace
from memorywall.records.tier import Isolation


class Verb(StrEnum):
    """What a principal wants to do."""

    READ = "read"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    OBSERVE = "observe"
    ADMINISTER = "administer"


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What it would be done to; all the facts a decision needs.

    isolation: the wall of the tier it lies in
    owner: the agent whose memory or stream it is, "" behind a namespace's wall
    namespace: the namespace's permissions, None when it does not exist yet
    """

    tenant: str
    isolation: Isolation
    owner: str = ""
    namespace: Namespace | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Allowed or not, why, and whether the refusal must look as if nothing were there."""

    allowed: bool
    reason: str
    hidden: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """How far a listing may go: the memory of these owners and what lies in these namespaces."""

    owners: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.owners and not self.namespaces
