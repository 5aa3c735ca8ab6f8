"""What an entry inherits, and what its provenance says: rules written without memorywall's code."""

from __future__ import annotations

from tests.oracle.world import Body, Caller, Remembered, World

VERSIONED_TIERS = ("semantic", "procedural")


def set_subjects(world: World, entry: Remembered, given: list[str], sources: list[Body]) -> None:
    """Whom the entry is about: those given, and those its sources are about. Of a sealed source a
    digest stands for each name, unless the name itself is there."""
    subjects = list(dict.fromkeys(given))
    known = {world.digests[entry.tenant, name] for name in subjects if name[0] != "~"}
    for source in sources:
        read = world.entries[source["id"]].body
        sealed = read["sensitivity"] in ("confidential", "restricted")
        for name in read.get("subjects", ()):
            stored = world.digests.get((entry.tenant, name), name) if sealed else name
            if stored not in subjects and stored not in known:
                subjects.append(stored)
    names = {world.digests.get((entry.tenant, name)) for name in subjects}
    subjects = [name for name in subjects if name not in names]
    entry.body.pop("subjects", None)
    if subjects:
        entry.body["subjects"] = subjects


def drops_an_inherited_subject(world: World, entry: Remembered, change: Body) -> bool:
    """Whether a change of a derived entry leaves out a person that it is about."""
    if "subjects" not in change or "derived_from" not in entry.body["provenance"]:
        return False
    given = set(change["subjects"])
    given |= {world.digests.get((entry.tenant, name), name) for name in given}
    return not given.issuperset(entry.body.get("subjects", ()))


def sign(
    world: World, caller: Caller, entry: Remembered, sources: list[Body], old: Body | None = None
) -> None:
    """What the server says of who wrote an entry last, and of where its value comes from. What
    leaves the value as it is leaves that as it is, and only a person raises an origin.

    old: the entry before an update
    """
    own = {"user": "user", "agent": "agent", "service": "tool"}[caller.kind]
    if caller.kind == "service" and "memory.admin" in caller.permissions:
        own = "agent"
    before: Body = {} if old is None else old["provenance"]
    provenance: Body = {"principal": caller.actor, "kind": caller.kind}
    if world.under is not None:
        provenance["fencing_token"] = world.under
    kept = sources or before.get("derived_from")
    if kept:
        provenance["derived_from"] = kept
    if entry.owner == "":
        entry.body["curated_by"] = caller.id
    origins = [_origin_then(world, source) for source in sources]
    if old is not None and old["value"] == entry.body["value"]:
        origins.append(before["origin"])
        for name in ("task", "authority"):
            if name in before:
                provenance[name] = before[name]
    else:
        origins.append(own)
        if old is not None and own != "user":
            origins.append(before["origin"])
        if "task_id" in entry.body["scope"]:
            provenance["task"] = entry.body["scope"]["task_id"]
        if entry.owner == "":
            provenance["authority"] = "human_curated" if caller.kind == "user" else "agent_learned"
    if kept and provenance.get("authority") == "agent_learned":
        provenance["authority"] = "inferred"
    provenance["origin"] = min(origins, key=("tool", "agent", "user").index)
    entry.body["provenance"] = provenance


def _origin_then(world: World, source: Body) -> str:
    """The lowest origin of a source: now, and at the version that was read, where it is kept."""
    entry = world.entries[source["id"]]
    origins = [str(entry.body["provenance"]["origin"])]
    if entry.body["memory_type"] in VERSIONED_TIERS and source["version"] in entry.origins:
        origins.append(entry.origins[source["version"]])
    return min(origins, key=("tool", "agent", "user").index)
