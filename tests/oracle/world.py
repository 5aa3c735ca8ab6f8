"""What the oracle remembers of the system's world, in plain dictionaries."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

Body = dict[str, Any]
Content = TypeVar("Content")


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who a request is made for.

    label: tells callers apart in failure messages
    id: the agent, user or service the request speaks for
    actor: the principal of the key, which differs from `id` where the key acts for another
    kind: what `id` counts as; whoever is acted for is an agent
    slot: the key it is sent with
    permissions: those the request has, which for a key that acts for another are its permissions
        over memory and none over the tenant
    """

    label: str
    tenant: str
    id: str
    actor: str
    kind: str
    slot: str
    permissions: frozenset[str]


@dataclass(kw_only=True)
class Remembered:
    """An entry. `owner` is "" behind a namespace's boundary; `body` is how it looks on the
    wire, and `origins` are those of its earlier versions."""

    tenant: str
    owner: str
    order: int
    expires: int | None
    body: Body
    origins: dict[int, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class Shared:
    """A namespace of shared memory."""

    default: str
    grants: dict[str, str]
    version: int
    created_at: str
    updated_at: str


@dataclass(kw_only=True)
class Line:
    """A line of an intent's access list. `expires`: from when it counts no more."""

    id: str
    agent: str
    level: str
    expires: int | None


@dataclass(kw_only=True)
class Intent:
    """What work is for. `open`: whether everybody of the tenant takes part."""

    tenant: str
    id: str
    order: int
    creator: str
    open: bool = False
    lines: list[Line] = field(default_factory=list)
    guardrails: Body | None = None


@dataclass(kw_only=True)
class Job:
    """A task. `accepted`: whether the agent it is assigned to has taken it up by itself.

    giver: who assigned it; archives: whether its policy wants an archive
    """

    tenant: str
    id: str
    intent: str
    order: int
    status: str = "ready"
    assigned: str | None = None
    giver: str | None = None
    accepted: bool = False
    parent: str | None = None
    inherits: bool = False
    archives: bool = True
    attempt: int = 1


@dataclass(kw_only=True)
class Hold:
    """A lease that nobody has ended, lapsed or not. `place` and `name`: what it is over."""

    tenant: str
    id: str
    token: int
    kind: str
    place: str
    name: str
    holder: str
    expires: int


@dataclass(kw_only=True)
class Overseer:
    """A coordinator, past or present; its authority is the hold with its token.

    accepted: whether it has acted as such by itself
    """

    tenant: str
    id: str
    intent: str
    agent: str
    token: int
    interval: int
    accepted: bool = False


@dataclass(kw_only=True)
class World:
    """Everything that is remembered, in both tenants.

    holds: by tenant and token
    under: the fencing token the present request carries
    digests: what stands for a subject's name beside what is sealed, by tenant and name
    """

    now: int
    entries: dict[str, Remembered] = field(default_factory=dict)
    namespaces: dict[tuple[str, str], Shared] = field(default_factory=dict)
    events: list[Body] = field(default_factory=list)
    kept: dict[tuple[str, str, str], Body] = field(default_factory=dict)
    intents: dict[str, Intent] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    holds: dict[tuple[str, int], Hold] = field(default_factory=dict)
    overseers: dict[str, Overseer] = field(default_factory=dict)
    claims: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    made: int = 0
    under: int | None = None
    digests: dict[tuple[str, str], str] = field(default_factory=dict)

    def living(self, entry_id: str) -> Remembered | None:
        """The entry, unless it is gone or its time is over: swept or not, nobody sees it."""
        entry = self.entries.get(entry_id)
        if entry is None or (entry.expires is not None and entry.expires <= self.now):
            return None
        return entry

    def trial(self) -> World:
        """A world in which memory may be written to see what comes of it. Its log is empty."""
        return replace(
            self,
            entries=_copied(self.entries),
            namespaces=_copied(self.namespaces),
            kept=_copied(self.kept),
            events=[],
        )


def _copied(content: Content) -> Content:
    """A deep copy; several times as fast as `copy.deepcopy`."""
    copied: Content = pickle.loads(pickle.dumps(content, pickle.HIGHEST_PROTOCOL))
    return copied
