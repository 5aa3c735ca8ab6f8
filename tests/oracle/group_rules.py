"""What the oracle remembers of groups, and what may be read and written because of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

LEVELS = ("none", "read", "write", "admin")
Person = tuple[str, str]
"""A tenant, and the name of somebody in it."""


@dataclass(kw_only=True)
class Opened:
    """What a namespace allows: everybody, those whom it names, and which groups may read each
    other's past."""

    default: str = "none"
    named: dict[str, str] = field(default_factory=dict)
    pasts: set[str] = field(default_factory=set)


@dataclass(kw_only=True)
class Thing:
    """An entry: what it is, whose it is (nobody's in shared memory), and where it lies."""

    tenant: str
    tier: str
    owner: str
    namespace: str
    intent: str | None = None


@dataclass(kw_only=True)
class Goal:
    """An intent: who made it, and the lines of its access list."""

    tenant: str
    creator: str
    named: list[tuple[str, str]] = field(default_factory=list)


@dataclass(kw_only=True)
class GroupWorld:
    """Everything. Groups and namespaces have the same names in every tenant."""

    members: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    namespaces: dict[tuple[str, str], Opened] = field(default_factory=dict)
    things: dict[str, Thing] = field(default_factory=dict)
    goals: dict[str, Goal] = field(default_factory=dict)

    def groups_of(self, person: Person) -> set[str]:
        """The groups that somebody belongs to now."""
        tenant, name = person
        return {
            group
            for (place, group), people in self.members.items()
            if place == tenant and name in people
        }

    def level(self, person: Person, namespace: str) -> str:
        """Somebody's own line counts before all others, then the best line of one of its groups,
        and what everybody may do where there is neither."""
        opened = self.namespaces[person[0], namespace]
        if person[1] in opened.named:
            return opened.named[person[1]]
        groups = [f"group:{group}" for group in self.groups_of(person)]
        return _best([opened.named[one] for one in groups if one in opened.named]) or opened.default

    def may_read(self, person: Person, thing: Thing) -> bool:
        """Shared memory by its namespace. One's own always. Another's past where the namespace
        opens it to a group of both, unless the reader is kept out of the namespace. What another
        works with, if the intent's list names the reader or one of its groups."""
        if person[0] != thing.tenant:
            return False
        if thing.tier == "semantic":
            return self.level(person, thing.namespace) != "none"
        if person[1] == thing.owner:
            return True
        if thing.tier == "episodic":
            pasts = self.namespaces[person[0], thing.namespace].pasts
            both = self.groups_of(person) & self.groups_of((thing.tenant, thing.owner))
            return bool(pasts & both) and self.level(person, thing.namespace) != "none"
        return thing.intent is not None and self._line(person, self.goals[thing.intent]) != ""

    def may_write(self, person: Person, namespace: str) -> bool:
        """To shared memory."""
        return self.level(person, namespace) in ("write", "admin")

    def may_see(self, person: Person, goal: Goal) -> bool:
        """An intent and its log."""
        if person[0] != goal.tenant:
            return False
        return person[1] == goal.creator or self._line(person, goal) != ""

    def readable(self, person: Person) -> set[str]:
        """The ids of all entries that somebody may read."""
        return {name for name, thing in self.things.items() if self.may_read(person, thing)}

    def _line(self, person: Person, goal: Goal) -> str:
        own = {person[1], *(f"group:{group}" for group in self.groups_of(person))}
        return _best([level for name, level in goal.named if name in own])


def _best(levels: Iterable[str]) -> str:
    return max(levels, key=LEVELS.index, default="")
