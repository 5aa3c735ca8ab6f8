"""The access rules as RFC-0015 (sections 2, 6.4 and 9) and the table of decisions tell them.

Written from those texts and not from the system's own policy, in plain dictionaries and loops, so
that a mistake in one of the two shows as a difference. Nothing here is fast and nothing is clever.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection

from tests.oracle.work_rules import barred, opened_by_work, owner_may_write, reaches
from tests.oracle.world import Body, Caller, Remembered, World

AGENT_TIERS = ("working", "session", "episodic")
SHARED_TIERS = ("semantic", "procedural")
TIERS = AGENT_TIERS + SHARED_TIERS
STATE = "shared"
"""The tier of what agents share while they work; its namespaces are scopes."""
GLOBAL, TEAM, AGENT = "shared/global", "shared/team/", "shared/agent/"
NEW_NAMESPACE_DEFAULT = "read"


def level_in(world: World, caller: Caller, namespace: str) -> str:
    """What the namespace lets the caller do: its own grant, in place of the default."""
    shared = world.namespaces.get((caller.tenant, namespace))
    if shared is None:
        return "none"
    return shared.grants.get(caller.id, shared.default)


def inside(world: World, caller: Caller, entry: Remembered, needed: str) -> bool:
    """Whether the tier's own rule lets the caller: its owner, whoever work lets read it, or whoever
    the namespace admits."""
    if caller.tenant != entry.tenant:
        return False
    body = entry.body
    if body["memory_type"] not in AGENT_TIERS:
        return admits(world, caller, body["namespace"], needed)
    if needed == "read":
        return entry.owner == caller.id or opened_by_work(world, caller, entry)
    bound = body["scope"] if body["memory_type"] == "working" else {}
    return entry.owner == caller.id and owner_may_write(world, caller, bound, creating=False)


def admits(world: World, caller: Caller, namespace: str, needed: str) -> bool:
    """Whether the namespace lets the caller, and the guardrails it works under do too."""
    level = level_in(world, caller, namespace)
    return reaches(level, needed) and not barred(world, caller, namespace)


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
    if tier in AGENT_TIERS:
        return True
    if (caller.tenant, namespace) not in world.namespaces:
        return may_found(caller, namespace) and not barred(world, caller, namespace)
    return admits(world, caller, namespace, "write")


def may_found(caller: Caller, namespace: str) -> bool:
    """Anybody is the first in a namespace, but for an agent's own scope."""
    return not namespace.startswith(AGENT) or namespace == AGENT + caller.id


def begins_with(namespace: str) -> tuple[str, str]:
    """What a new namespace lets everybody, and what its founder besides. The global scope belongs
    to nobody and lets all write; a team's is closed; an agent's own is closed for good."""
    if namespace == GLOBAL:
        return "write", "none"
    if namespace.startswith(TEAM):
        return "none", "admin"
    if namespace.startswith(AGENT):
        return "none", "write"
    return NEW_NAMESPACE_DEFAULT, "admin"


def may_administer(world: World, caller: Caller, namespace: str) -> bool:
    """Manage a namespace's permissions: the permission, and `admin` in it unless it is new.

    The texts give `tenant.admin` no meaning of its own. The system's: any namespace of the tenant,
    and nobody's memory; and nobody else administers the global scope of shared state.
    """
    if "tenant.admin" in caller.permissions:
        return True
    if "memory.admin" not in caller.permissions or namespace == GLOBAL:
        return False
    if (caller.tenant, namespace) not in world.namespaces:
        return True
    return reaches(level_in(world, caller, namespace), "admin")


def may_observe(caller: Caller, agent: str) -> bool:
    """An agent's stream and summary are its own."""
    return "memory.read" in caller.permissions and caller.id == agent


def status_of_get(
    world: World, caller: Caller, entry_id: str, bound: Collection[str] | None = None
) -> int:
    """200, 404 for what is not there, another tenant's or about others than the request is bound
    to, 403 for what is and is walled off."""
    entry = world.living(entry_id)
    if entry is None or entry.tenant != caller.tenant:
        return 404
    if bound is not None and not is_about_nobody_but(world, entry, bound):
        return 404
    return 200 if may_read(world, caller, entry) else 403


def is_about(world: World, entry: Remembered, subject: str) -> bool:
    """Whether a person is among those the entry is about, by name or by what stands for it."""
    names = {subject, world.digests.get((entry.tenant, subject), subject)}
    return not names.isdisjoint(entry.body.get("subjects", ()))


def is_about_nobody_but(world: World, entry: Remembered, subjects: Collection[str]) -> bool:
    """Whether each person that the entry is about is one of these."""
    names = {*subjects, *(world.digests.get((entry.tenant, one), one) for one in subjects)}
    return names.issuperset(entry.body.get("subjects", ()))


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


def found(
    world: World, caller: Caller, wanted: dict[str, str], bound: Collection[str] | None = None
) -> list[tuple[str, Remembered]]:
    """Everything the caller may read that matches, newest first; the rest is left out silently.

    bound: the subjects that the request is bound to
    """
    hits = []
    conditions = {name: text for name, text in wanted.items() if name != "subject"}
    for entry_id in world.entries:
        entry = world.living(entry_id)
        if entry is None or not may_read(world, caller, entry):
            continue
        if not matches(entry.body, conditions):
            continue
        if "subject" in wanted and not is_about(world, entry, wanted["subject"]):
            continue
        if bound is None or is_about_nobody_but(world, entry, bound):
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
        if tenant == caller.tenant and admits(world, caller, name, "read"):
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
        without_snapshot(event["shown"])
        for event in world.events
        if event["tenant"] == caller.tenant and agent in (event["owner"], event["shared_doer"])
    ]


def without_snapshot(shown: Body) -> Body:
    """An archive as an agent's own stream tells of it: how much it was and nothing of it."""
    if shown["type"] != "memory.archived":
        return shown
    return {**shown, "data": {"entries_archived": shown["data"]["entries_archived"]}}


def summary_of(world: World, caller: Caller, agent: str, capacity: int) -> Body | None:
    """The numbers of an agent's own living memory, None where they are refused."""
    if not may_observe(caller, agent):
        return None
    own: dict[str, list[Body]] = {tier: [] for tier in (*TIERS, STATE)}
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
