"""What each write does to the world the oracle keeps, or why it is refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from memorywall.records.clock import format_instant
from tests.oracle.derivation import drops_an_inherited_subject, set_subjects, sign
from tests.oracle.rules import (
    AGENT,
    AGENT_TIERS,
    STATE,
    begins_with,
    found,
    may_administer,
    may_create,
    may_read,
    may_write,
    query_lacks_owner,
)
from tests.oracle.work_rules import OVER, bound_to, hold_over, is_live, may_bind
from tests.oracle.world import Body, Caller, Remembered, Shared, World


class Refused(Exception):
    """The write is refused and changes nothing.

    current: the entry a 409 shows, None where the caller may not read it
    index: the failing element of a batch
    """

    def __init__(self, status: int, current: Body | None = None) -> None:
        self.status = status
        self.current = current
        self.index: int | None = None
        super().__init__(f"refused with {status}")


def create(world: World, caller: Caller, draft: Body, entry_id: str) -> Body:
    """Makes an entry; `entry_id` is the one thing the system chooses."""
    refuse_at_sight(caller, draft)
    tier, namespace = draft["memory_type"], draft["namespace"]
    if not may_create(world, caller, tier, namespace):
        raise Refused(403)
    shared = tier not in AGENT_TIERS
    if shared and (caller.tenant, namespace) not in world.namespaces:
        found_namespace(world, caller, namespace)
    scope = bind(world, caller, tier, draft.get("scope", {}), draft.get("ttl"))
    guard(world, caller, {**draft, "scope": scope})
    sources = known_sources(world, caller, draft)
    owner = "" if shared else caller.id
    holder = holder_of(world, caller.tenant, owner, draft)
    if holder is not None and world.living(holder) is not None:
        raise Refused(409, shown_to(world, caller, world.entries[holder]))
    if holder is not None:
        expire(world, holder)
    world.made += 1
    now = format_instant(world.now)
    body = {
        "id": entry_id,
        "agent_id": caller.id,
        "namespace": namespace,
        "key": draft["key"],
        "value": draft["value"],
        "memory_type": tier,
        "scope": scope,
        "tags": list(dict.fromkeys(draft.get("tags", []))),
        "ttl": draft.get("ttl"),
        "version": 1,
        "pinned": draft.get("pinned", False),
        "priority": draft.get("priority", "normal"),
        "sensitivity": draft.get("sensitivity", "internal"),
        "created_at": now,
        "updated_at": now,
        "created_by": caller.id,
    }
    entry = Remembered(tenant=caller.tenant, owner=owner, order=world.made, expires=None, body=body)
    set_expiry(world, entry)
    sign(world, caller, entry, sources)
    set_subjects(world, entry, draft.get("subjects", []), sources)
    world.entries[entry_id] = entry
    note(world, "memory.created", entry, caller)
    return body


def update(world: World, caller: Caller, entry_id: str, version: int, change: Body) -> Body:
    """Replaces the fields that are given."""
    entry = known(world, caller, entry_id)
    if not may_write(world, caller, entry):
        raise Refused(403)
    if entry.body["version"] != version:
        raise Refused(409, shown_to(world, caller, entry))
    guard(world, caller, entry.body)
    scope = entry.body["scope"]
    ttl, new_scope = change.get("ttl", entry.body["ttl"]), change.get("scope", scope)
    if new_scope != scope or ttl == "task_lifetime" != entry.body["ttl"]:
        scope = bind(world, caller, entry.body["memory_type"], new_scope, ttl)
        guard(world, caller, {**entry.body, "scope": scope})
    sources, old = known_sources(world, caller, change), entry.body
    if drops_an_inherited_subject(world, entry, change):
        raise Refused(422)
    entry.origins[version] = old["provenance"]["origin"]
    entry.body = {
        **entry.body,
        **{name: part for name, part in change.items() if name != "derived_from"},
        "scope": scope,
        "version": version + 1,
        "updated_at": format_instant(world.now),
    }
    entry.body["tags"] = list(dict.fromkeys(entry.body["tags"]))
    if "ttl" in change:
        set_expiry(world, entry)
    sign(world, caller, entry, sources, old)
    set_subjects(world, entry, change.get("subjects", old.get("subjects", [])), sources)
    note(world, "memory.updated", entry, caller, previous=version)
    return entry.body


def delete(world: World, caller: Caller, entry_id: str, version: int | None) -> None:
    """Removes one entry."""
    entry = known(world, caller, entry_id)
    if not may_write(world, caller, entry):
        raise Refused(403)
    if version is not None and entry.body["version"] != version:
        raise Refused(409, shown_to(world, caller, entry))
    guard(world, caller, entry.body)
    remove(world, entry_id)
    note(world, "memory.deleted", entry, caller)


def delete_matching(world: World, caller: Caller, wanted: dict[str, str]) -> int:
    """Removes what matches and what the caller may both see and delete; a filter only narrows."""
    if query_lacks_owner(wanted):
        raise Refused(400)
    hits = [hit for hit in found(world, caller, wanted) if may_write(world, caller, hit[1])]
    for _, entry in hits:
        guard(world, caller, entry.body)
    for entry_id, entry in hits:
        remove(world, entry_id)
        note(world, "memory.deleted", entry, caller)
    return len(hits)


def write_batch(world: World, caller: Caller, elements: list[Body], ids: list[str]) -> list[Body]:
    """All of the elements, or `Refused` with the index of the first that fails.

    What can be refused at sight is, before anything is looked up. Elements follow one another, so
    one may meet what another has made; the caller hands in a world that may be thrown away.
    """
    for index, element in enumerate(elements):
        with naming(index):
            if "id" not in element:
                refuse_at_sight(caller, element)
    written: list[Body] = []
    for index, element in enumerate(elements):
        with naming(index):
            try:
                written.append(write_element(world, caller, element, ids[index]))
            except Refused as refused:
                current = refused.current
                if current is not None and current["id"] in {one["id"] for one in written}:
                    # The batch clashes with itself and is undone: nothing is in that state.
                    refused.current = None
                raise
    return written


@contextmanager
def naming(index: int) -> Iterator[None]:
    """Puts the index of the failing element on a refusal."""
    try:
        yield
    except Refused as refused:
        refused.index = index
        raise


def write_element(world: World, caller: Caller, element: Body, entry_id: str) -> Body:
    """One element of a batch: with `id` an update, otherwise a create."""
    if "id" not in element:
        return copy.deepcopy(create(world, caller, element, entry_id))
    change = {name: part for name, part in element.items() if name not in ("id", "version")}
    return copy.deepcopy(update(world, caller, element["id"], element["version"], change))


def set_permissions(
    world: World, caller: Caller, name: str, change: Body, version: int | None
) -> Shared:
    """Replaces a namespace's default, its grants or both; founds one that is new. An agent's own
    scope has nothing to set: nobody can be let in."""
    if name.startswith(AGENT):
        raise Refused(422)
    if not may_administer(world, caller, name):
        raise Refused(403)
    old = world.namespaces.get((caller.tenant, name))
    if version is not None and (old is None or old.version != version):
        raise Refused(409)
    shared = old if old is not None else found_namespace(world, caller, name)
    if old is not None:
        shared.version += 1
    shared.updated_at = format_instant(world.now)
    shared.default = change.get("default", shared.default)
    if "allow" in change:
        shared.grants = {grant["agent"]: grant["access"] for grant in change["allow"]}
    return shared


def sweep(world: World) -> None:
    """The server's own round: everything whose time is over goes, oldest expiry first."""
    over = [
        (entry.expires, entry_id)
        for entry_id, entry in world.entries.items()
        if entry.expires is not None and world.living(entry_id) is None
    ]
    for _, entry_id in sorted(over):
        expire(world, entry_id)


def expire(world: World, entry_id: str) -> None:
    """Ends an entry by the server's own hand."""
    entry = remove(world, entry_id)
    note(world, "memory.expired", entry, None)


def remove(world: World, entry_id: str) -> Remembered:
    """Takes the entry away, and with it what was kept of it."""
    for kept in world.kept.values():
        if entry_id in kept["ids"]:
            kept["erased"] = True
    return world.entries.pop(entry_id)


def refuse_at_sight(caller: Caller, draft: Body) -> None:
    """What a create is refused for without a look at the world."""
    if draft.get("agent_id", caller.id) != caller.id:
        raise Refused(403)
    if draft["memory_type"] in AGENT_TIERS and "memory.write" not in caller.permissions:
        raise Refused(403)


def found_namespace(world: World, caller: Caller, name: str) -> Shared:
    """A new namespace: its founder administers it."""
    now = format_instant(world.now)
    default, own = begins_with(name)
    shared = Shared(
        default=default,
        grants={} if own == "none" else {caller.id: own},
        version=1,
        created_at=now,
        updated_at=now,
    )
    world.namespaces[caller.tenant, name] = shared
    return shared


def bind(world: World, caller: Caller, tier: str, scope: Body, ttl: str | None) -> Body:
    """The scope, with the intent of its task. A task that is known belongs to one intent. Nothing
    can last as long as a task that is over."""
    job, intent = bound_to(world, caller.tenant, scope)
    named = bound_to(world, caller.tenant, {"intent_id": scope.get("intent_id", "")})[1]
    if job is not None and scope.get("intent_id", job.intent) != job.intent:
        raise Refused(422)
    if job is None and "task_id" in scope and named is not None:
        raise Refused(422)
    if not may_bind(world, caller, tier, scope):
        raise Refused(403)
    if job is not None and job.status in OVER and ttl == "task_lifetime":
        raise Refused(422)
    return scope if job is None or intent is None else {**scope, "intent_id": intent.id}


def guard(world: World, caller: Caller, body: Body) -> None:
    """What is written under a lease is written by its holder, while it lasts, or not at all. A task
    stays guarded by a lapsed lease until that is ended or taken anew."""
    token = world.under
    held = None if token is None else world.holds.get((caller.tenant, token))
    if token is not None and (held is None or held.holder != caller.id or not is_live(world, held)):
        raise Refused(409)
    if body["memory_type"] == "working":
        job, _ = bound_to(world, caller.tenant, body["scope"])
        lease = None
        if job is not None:
            lease = hold_over(world, caller.tenant, "task", job.intent, job.id)
        if lease is not None and lease.token != token:
            raise Refused(409)
    if body["memory_type"] == STATE:
        claim = hold_over(world, caller.tenant, "claim", body["namespace"], body["key"])
        if claim is not None and is_live(world, claim) and claim.token != token:
            raise Refused(409)


def known_sources(world: World, caller: Caller, fields: Body) -> list[Body]:
    """What was read before: each must be the caller's to read and have had that version. What is
    not there and what is walled off are one and the same."""
    sources: list[Body] = list(fields.get("derived_from", []))
    for source in sources:
        entry = world.living(source["id"])
        if entry is None or not may_read(world, caller, entry):
            raise Refused(422)
        if source["version"] > entry.body["version"]:
            raise Refused(422)
    return sources


def known(world: World, caller: Caller, entry_id: str) -> Remembered:
    """A living entry of the caller's own tenant."""
    entry = world.living(entry_id)
    if entry is None or entry.tenant != caller.tenant:
        raise Refused(404)
    return entry


def holder_of(world: World, tenant: str, owner: str, draft: Body) -> str | None:
    """Who has the unique name of a draft, expired or not."""
    for entry_id, entry in world.entries.items():
        same = all(entry.body[name] == draft[name] for name in ("memory_type", "namespace", "key"))
        if same and (entry.tenant, entry.owner) == (tenant, owner):
            return entry_id
    return None


def shown_to(world: World, caller: Caller, entry: Remembered) -> Body | None:
    """The entry as a 409 shows it to those who may read it."""
    return entry.body if may_read(world, caller, entry) else None


def set_expiry(world: World, entry: Remembered) -> None:
    """Counts the `ttl` from now."""
    ttl = entry.body["ttl"]
    entry.expires = None
    if ttl is not None and ttl.startswith("duration:PT"):
        entry.expires = world.now + round(float(ttl[len("duration:PT") : -1]) * 1000)
    entry.body["expires_at"] = None if entry.expires is None else format_instant(entry.expires)


def note(
    world: World, kind: str, entry: Remembered, caller: Caller | None, previous: int | None = None
) -> None:
    """Adds what happened to the log; values never stand in it."""
    body = entry.body
    data: dict[str, Any] = {
        "entry_id": body["id"],
        **{name: body[name] for name in ("namespace", "key", "memory_type", "version", "tags")},
    }
    if previous is not None:
        data["previous_version"] = previous
    shown: Body = {
        "type": kind,
        "agent_id": entry.owner or (caller.id if caller is not None else body["agent_id"]),
        "actor": caller.actor if caller is not None else "system",
        "data": data,
        "timestamp": format_instant(world.now),
    }
    for name in ("task_id", "intent_id"):
        if name in body["scope"]:
            shown[name] = body["scope"][name]
    doer = caller.id if caller is not None and entry.owner == "" else ""
    world.events.append(
        {"tenant": entry.tenant, "owner": entry.owner, "shared_doer": doer, "shown": shown}
    )
