"""Requests to the policy and its decisions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from memorywall.records.namespace import Access, Namespace
from memorywall.records.principal import Maintenance
from memorywall.records.tier import Isolation, Tier


class Verb(StrEnum):
    """The action that a principal requests."""

    READ = "read"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    OBSERVE = "observe"
    ADMINISTER = "administer"
    MAINTAIN = "maintain"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkRelations:
    """The relations of a principal to the task or intent that working memory is bound to.

    of_task: whether the memory is bound to a task, and not only to an intent
    is_terminal: whether the task has ended
    assigned: the agent that the task is assigned to, None for no agent or no task
    coordinates: whether the principal coordinates the intent now, and there is a task
    inherits: whether the principal works on a task that inherits the memory of this task
    granted: whether the intent's access list names the principal
    takes_part: whether the principal may write to the intent
    """

    of_task: bool = False
    is_terminal: bool = False
    assigned: str | None = None
    coordinates: bool = False
    inherits: bool = False
    granted: bool = False
    takes_part: bool = False


class Target(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The object of an action, with all facts that a decision needs.

    isolation: the isolation boundary of its tier
    owner: the agent that owns the memory or the stream, "" in a tier that is isolated by namespace
    namespace: the permissions of the namespace, None if it does not exist yet; for another agent's
        memory, None unless they open episodic memory to a group
    creator: the only principal that may create the namespace, "" for any principal
    denied: whether guardrails of the principal deny the namespace
    work: the relations to the task or intent of working memory, None without a known one
    coordinated: whether the principal coordinates a task that the owner has accepted
    owner_groups: for episodic memory, the groups of the owner, as grants name them
    level: the level of the principal in an intent
    subjects: the people that the object is about, in its stored form
    maintenance: the kind of maintenance, for `Verb.MAINTAIN`
    place: the namespace of the object, "" for an object that is in none
    is_filtered: whether the result is filtered by the namespaces that the key is limited to
    tier: the tier of an entry, None for an object that is not one entry
    session: the session of an entry, None for none
    """

    tenant: str
    isolation: Isolation
    owner: str = ""
    namespace: Namespace | None = None
    creator: str = ""
    denied: bool = False
    work: WorkRelations | None = None
    coordinated: bool = False
    owner_groups: frozenset[str] = frozenset()
    level: Access = Access.NONE
    subjects: tuple[str, ...] = ()
    maintenance: Maintenance | None = None
    place: str = ""
    is_filtered: bool = False
    tier: Tier | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """An access decision.

    reason: why, for the message of a refusal
    hidden: whether the refusal must look like a missing object
    """

    allowed: bool
    reason: str
    hidden: bool = False


class VisibilityFilter(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The entries that a list or search may contain: memory of these owners, entries in these
    namespaces, and other agents' memory that is accessible through work.

    tasks: working memory bound to these tasks
    intents: working memory bound to these intents
    coordinated: working memory bound to any task of these intents
    episodic: episodic memory of these agents
    by_group: episodic memory by namespace and agent
    subjects: the stored forms of the names of the subjects that the request is bound to; None for
        a request that is not bound. Each subject of an entry must be among them.
    limited_to: the namespaces that the key is limited to, of every tier; None for no limit
    session: the session that the request is bound to; see `session_binding.belongs_to`. None for a
        request outside of sessions
    session_owners: session memory of these agents, in the session of the request
    """

    owners: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    intents: tuple[str, ...] = ()
    coordinated: tuple[str, ...] = ()
    episodic: tuple[str, ...] = ()
    by_group: tuple[tuple[str, str], ...] = ()
    subjects: tuple[str, ...] | None = None
    limited_to: tuple[str, ...] | None = None
    session: str | None = None
    session_owners: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no entry is visible."""
        nothing_reached = not (self.owners or self.namespaces or self.has_work_access)
        return nothing_reached or self.limited_to == ()

    @property
    def has_work_access(self) -> bool:
        """Whether any other agent's memory is accessible through work, a group or a session."""
        return bool(
            self.tasks
            or self.intents
            or self.coordinated
            or self.episodic
            or self.by_group
            or self.session_owners
        )
