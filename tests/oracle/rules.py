"""The access rules as RFC-0015 (sections 2, 6.4 and 9) and the table of decisions tell them.

Written from those texts and not from the system's own policy, in plain dictionaries and loops, so
that a mistake in one of the two shows as a difference. Nothing here is fast and nothing is clever.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

LEVELS = ("none", "read", "write", "admin")
AGENT_TIERS = ("working", "session", "episodic")
SHARED_TIERS = ("semantic", "procedural")
TIERS = AGENT_TIERS + SHARED_TIERS
NEW_NAMESPACE_DEFAULT = "read"

Body = dict[str, Any]


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
    """An entry. `owner` is "" behind a namespace's wall; `body` is how it looks on the wire."""

    tenant: str
    owner: str
    order: int
    expires: int | None
    body: Body


@dataclass(kw_only=True)
class Shared:
    """A namespace of shared memory."""

    default: str
    grants: dict[str, str]
    version: int
    created_at: str
    updated_at: str


@dataclass(kw_only=True)
class World:
    """Everything that is remembered, in both tenants."""

    now: int
    entries: dict[str, Remembered] = field(default_factory=dict)
    namespaces: dict[tuple[str, str], Shared] = field(default_factory=dict)
    events: list[Body] = field(default_factory=list)
    kept: dict[tuple[str, str, str], Body] = field(default_factory=dict)
    made: int = 0

    def living(self, entry_id: str) -> Remembered | None:
        """The entry, unless it is gone or its time is over: swept or not, nobody sees it."""
        entry = self.entries.get(entry_id)
        if entry is None or (entry.expires is not None and entry.expires <= self.now):
            return None
        return entry


def level_in(world: World, caller: Caller, namespace: str) -> str:
    """What the namespace lets the caller do: its own grant, in place of the default."""
    shared = world.namespaces.get((caller.tenant, namespace))
    if shared is None:
        return "none"
    return shared.grants.get(caller.id, shared.default)


def reaches(level: str, needed: str) -> bool:
    """Each level holds the ones before it."""
    return LEVELS.index(level) >= LEVELS.index(needed)


def inside(world: World, caller: Caller, entry: Remembered, needed: str) -> bool:
    """Whether the tier's own rule lets the caller: its owner, or whoever the namespace admits."""
    if caller.tenant != entry.tenant:
        return False
    if entry.body["memory_type"] in AGENT_TIERS:
        return entry.owner == caller.id
    return reaches(level_in(world, caller, entry.body["namespace"]), needed)


def may_read(world: World, caller: Caller, entry: Remembered) -> bool:
    """Both the permission and the tier's rule (section 6.4)."""
    return "memory.read" in caller.permissions and inside(world, caller, entry, "read")


def may_write(world: World, caller: Caller, entry: Remembered) -> bool:
    """Change or delete it: again both."""
    return "memory.write" in caller.permissions and inside(world, caller, entry, "write")


def may_create(world: World, caller: Caller, tier: str, namespace: str) -> bool:
    """Own memory with the permission alone; shared memory where one is a curator, or founds it."""
    if "memory.write" not in caller.permissions:
        return False
    if tier in AGENT_TIERS or (caller.tenant, namespace) not in world.namespaces:
        return True
    return reaches(level_in(world, caller, namespace), "write")


def may_administer(world: World, caller: Caller, namespace: str) -> bool:
    """Manage a namespace's permissions: the permission, and `admin` in it unless it is new.

    The texts give `tenant.admin` no meaning of its own. The system's: any namespace of the tenant,
    and nobody's memory.
    """
    if "tenant.admin" in caller.permissions:
        return True
    if "memory.admin" not in caller.permissions:
        return False
    if (caller.tenant, namespace) not in world.namespaces:
        return True
    return reaches(level_in(world, caller, namespace), "admin")


def may_observe(caller: Caller, agent: str) -> bool:
    """An agent's stream and summary are its own."""
    return "memory.read" in caller.permissions and caller.id == agent


def status_of_get(world: World, caller: Caller, entry_id: str) -> int:
    """200, 404 for what is not there or another tenant's, 403 for what is and is walled off."""
    entry = world.living(entry_id)
    if entry is None or entry.tenant != caller.tenant:
        return 404
    return 200 if may_read(world, caller, entry) else 403


def matches(body: Body, wanted: dict[str, str]) -> bool:
    """Whether an entry meets every condition of a query (section 4.1)."""
    tags = set(body["tags"])
    met: dict[str, Callable[[str], bool]] = {
        "agent_id": lambda text: body["agent_id"] == text,
        "namespace": lambda text: name_matches(body["namespace"], text),
        "key": lambda text: body["key"] == text,
        "memory_type": lambda text: body["memory_type"] == text,
        "tags": lambda text: set(text.split(",")) <= tags,
        "tags_any": lambda text: bool(set(text.split(",")) & tags),
        "scope.task_id": lambda text: body["scope"].get("task_id") == text,
        "scope.intent_id": lambda text: body["scope"].get("intent_id") == text,
        "pinned": lambda text: body["pinned"] == (text == "true"),
        "updated_after": lambda text: body["updated_at"] > text,
        "updated_before": lambda text: body["updated_at"] < text,
    }
    return all(met[name](text) for name, text in wanted.items())


def name_matches(name: str, pattern: str) -> bool:
    """The whole name, or what stands before a `*` at the pattern's end."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def found(world: World, caller: Caller, wanted: dict[str, str]) -> list[tuple[str, Remembered]]:
    """Everything the caller may read that matches, newest first; the rest is left out silently."""
    hits = []
    for entry_id in world.entries:
        entry = world.living(entry_id)
        if entry is not None and may_read(world, caller, entry) and matches(entry.body, wanted):
            hits.append((entry_id, entry))
    hits.sort(key=lambda hit: -hit[1].order)
    return hits


def query_lacks_owner(wanted: dict[str, str]) -> bool:
    """Whether a query must name an agent or a task and does not (sections 4.1 and 8.1)."""
    return (
        wanted.get("memory_type") in AGENT_TIERS
        and "agent_id" not in wanted
        and "scope.task_id" not in wanted
    )


def namespaces_readable(world: World, caller: Caller) -> list[str]:
    """The namespaces whose memory the caller may read."""
    if "memory.read" not in caller.permissions:
        return []
    readable = []
    for tenant, name in sorted(world.namespaces):
        if tenant == caller.tenant and reaches(level_in(world, caller, name), "read"):
            readable.append(name)
    return readable


def namespaces_seen(world: World, caller: Caller) -> dict[str, str]:
    """The namespaces the caller may read or administer, with its own level in each."""
    seen = {}
    for tenant, name in sorted(world.namespaces):
        if tenant == caller.tenant and (
            name in namespaces_readable(world, caller) or may_administer(world, caller, name)
        ):
            seen[name] = level_in(world, caller, name)
    return seen


def status_of_namespace(world: World, caller: Caller, name: str) -> int:
    """What asking for a namespace by its name is answered with."""
    if (caller.tenant, name) not in world.namespaces:
        return 404
    return 200 if name in namespaces_seen(world, caller) else 403


def stream_of(world: World, caller: Caller, agent: str) -> list[Body] | None:
    """What an agent's stream shows the caller, None where it is refused.

    An agent's stream: what happens to its own memory and what it does to shared memory.
    """
    if not may_observe(caller, agent):
        return None
    return [
        event["shown"]
        for event in world.events
        if event["tenant"] == caller.tenant and agent in (event["owner"], event["shared_doer"])
    ]


def summary_of(world: World, caller: Caller, agent: str, capacity: int) -> Body | None:
    """The numbers of an agent's own living memory, None where they are refused."""
    if not may_observe(caller, agent):
        return None
    own: dict[str, list[Body]] = {tier: [] for tier in TIERS}
    for entry_id, entry in world.entries.items():
        owned = entry.tenant == caller.tenant and entry.owner == agent
        if owned and world.living(entry_id) is not None:
            own[entry.body["memory_type"]].append(entry.body)
    working, episodic = own["working"], own["episodic"]
    tasks = {body["scope"]["task_id"] for body in working if "task_id" in body["scope"]}
    ages = sorted(body["created_at"] for body in episodic)
    return {
        "agent_id": agent,
        "working": {
            "entry_count": len(working),
            "total_size_kb": kilobytes(working),
            "tasks_with_memory": sorted(tasks),
        },
        "episodic": {
            "entry_count": len(episodic),
            "capacity": capacity,
            "pinned_count": sum(body["pinned"] for body in episodic),
            "total_size_kb": kilobytes(episodic),
            "oldest_entry": ages[0] if ages else None,
            "newest_entry": ages[-1] if ages else None,
        },
        "semantic_namespaces_accessible": namespaces_readable(world, caller),
    }


def kilobytes(bodies: list[Body]) -> int:
    """The size of all values as compact JSON, rounded up to whole KB."""
    total = 0
    for body in bodies:
        total += len(json.dumps(body["value"], separators=(",", ":"), ensure_ascii=False).encode())
    return -(-total // 1024)
