"""What the policy is asked and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memorywall.records.namespace import Access, Namespace
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
class Work:
    """What the asker has to do with the task or intent that working memory is bound to.

    of_task: whether it is bound to a task, and not to an intent alone
    is_over: whether the task is over
    assigned: the agent it is assigned to at present, None for nobody or where there is no task
    coordinates: whether the asker coordinates the intent now, and there is a task
    inherits: whether the asker works on a task that inherits this one's memory
    granted: whether the intent's access list names the asker
    takes_part: whether the asker may write to the intent
    """

    of_task: bool = False
    is_over: bool = False
    assigned: str | None = None
    coordinates: bool = False
    inherits: bool = False
    granted: bool = False
    takes_part: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What it would be done to; all the facts a decision needs.

    isolation: the wall of the tier it lies in
    owner: the agent whose memory or stream it is, "" behind a namespace's wall
    namespace: the namespace's permissions, None when it does not exist yet
    founder: who alone may be the first to write to the namespace, "" for anyone
    barred: whether guardrails the asker works under keep it from the namespace
    work: what working memory is bound to, None for nothing that is known
    coordinated: whether the asker coordinates a task that the owner has taken up
    level: behind an intent's wall, what the asker's part in it allows
    """

    tenant: str
    isolation: Isolation
    owner: str = ""
    namespace: Namespace | None = None
    founder: str = ""
    barred: bool = False
    work: Work | None = None
    coordinated: bool = False
    level: Access = Access.NONE


@dataclass(frozen=True, slots=True)
class Decision:
    """Allowed or not, why, and whether the refusal must look as if nothing were there."""

    allowed: bool
    reason: str
    hidden: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """How far a listing may go: the memory of these owners, what lies in these namespaces, and
    other agents' memory as far as work opens it.

    tasks: working memory bound to these tasks
    intents: working memory bound to these intents
    coordinated: working memory bound to any task of these intents
    episodic: episodic memory of these agents
    """

    owners: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    intents: tuple[str, ...] = ()
    coordinated: tuple[str, ...] = ()
    episodic: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it reaches nothing."""
        return not (self.owners or self.namespaces or self.opened)

    @property
    def opened(self) -> bool:
        """Whether work opens any other agent's memory."""
        return bool(self.tasks or self.intents or self.coordinated or self.episodic)
