"""Every surface on which memory can be seen, compared with the oracle for one caller."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from memorywall.records.clock import format_instant
from tests.http.checks import MEMORY
from tests.oracle.callers import AGENTS
from tests.oracle.rules import (
    STATE,
    TIERS,
    found,
    is_about,
    matches,
    namespaces_seen,
    query_lacks_owner,
    status_of_get,
    status_of_namespace,
    stream_of,
    summary_of,
)
from tests.oracle.session import NAMESPACES, SUBJECTS, Session, agree, namespace_view
from tests.oracle.wire import part, send, server_sent_events
from tests.oracle.work_ledger import SEALED
from tests.oracle.world import Body, Caller

KEYS = ("k1", "k2")
TAGS = ("red", "green", "blue")
SEARCHED = "harbour"
"""A word of every value."""
_CAPACITY = 1_000


async def look_everywhere(session: Session, caller: Caller, random: Random) -> None:
    """All surfaces, one after the other."""
    await look_at_entries(session, caller, random)
    for _ in range(3):
        await look_at_query(session, caller, random_filter(session, random), random)
    await look_bound(session, caller, random)
    await look_at_search(session, caller, None)
    await look_at_export(session, caller, random)
    await look_at_namespaces(session, caller)
    others = random.sample([agent for agent in AGENTS if agent != caller.id], 2)
    for agent in (caller.id, *others):
        await look_at_agent(session, caller, agent, random)


async def look_at_entries(session: Session, caller: Caller, random: Random) -> None:
    """GET of every id there ever was, in both tenants; of some, where the session says so."""
    ids = session.ids
    if session.most_looked_at < len(ids):
        ids = random.sample(ids, session.most_looked_at)
    for entry_id in (*ids, "mem_00000000000000000000000000"):
        answer = await session.ask(caller, "GET", f"/api/v1/memory/{entry_id}")
        status = status_of_get(session.world, caller, entry_id)
        agree(caller, f"GET {entry_id} status", answer.status, status)
        if status == 200:
            agree(caller, f"GET {entry_id}", answer.json, session.world.entries[entry_id].body)
        else:
            code = "ACCESS_DENIED" if status == 403 else "ENTRY_NOT_FOUND"
            agree(caller, f"GET {entry_id} error", answer.json["error"], code)


async def look_bound(session: Session, caller: Caller, random: Random) -> None:
    """GET of some ids, a query and an export in requests that are bound to people; what may not be
    bound is refused."""
    subjects = random.sample(SUBJECTS, random.randint(1, len(SUBJECTS)))
    headers = {"X-Subject": ", ".join(subjects)}
    where = f"bound to {subjects}"
    for entry_id in random.sample(session.ids, min(5, len(session.ids))):
        path = f"/api/v1/memory/{entry_id}"
        answer = await session.ask(caller, "GET", path, headers=headers)
        status = status_of_get(session.world, caller, entry_id, subjects)
        agree(caller, f"GET {entry_id} {where} status", answer.status, status)
        if status == 200:
            agree(caller, f"GET {entry_id}", answer.json, session.world.entries[entry_id].body)
    wanted = random_filter(session, random)
    if len(subjects) == 1:
        # A request that is bound to one person means the namespace of this person by a name.
        wanted.pop("namespace", None)
    hits = [entry.body for _, entry in found(session.world, caller, wanted, subjects)]
    if not query_lacks_owner(wanted):
        asked = {**wanted, "limit": "1000"}
        answer = await session.ask(caller, "GET", "/api/v1/memory", query=asked, headers=headers)
        expected = {"entries": hits, "total": len(hits), "limit": 1000, "offset": 0}
        agree(caller, f"query {asked} {where}", answer.json, expected)
    answer = await session.ask(
        caller, "GET", "/api/v1/memory/export", query=wanted, headers=headers
    )
    # An export of people has what is about them, and not what is about nobody.
    about = [
        entry.body
        for _, entry in found(session.world, caller, wanted, subjects)
        if any(is_about(session.world, entry, person) for person in subjects)
    ]
    agree(caller, f"export {wanted} {where}", answer.lines, about)
    await look_at_search(session, caller, subjects)
    for path in (f"/api/v1/agents/{caller.id}/events", "/api/v1/memory/namespaces"):
        answer = await session.ask(caller, "GET", path, headers=headers)
        agree(caller, f"{path} {where}", answer.status, 403)


async def look_at_query(
    session: Session, caller: Caller, wanted: dict[str, str], random: Random
) -> None:
    """GET /memory: entries, their order, the page and the total."""
    limit, offset = random.choice((1, 2, 100, 1000)), random.choice((0, 0, 0, 1, 3))
    asked = {**wanted, "limit": str(limit), "offset": str(offset)}
    answer = await session.ask(caller, "GET", "/api/v1/memory", query=asked)
    where = f"query {asked}"
    if query_lacks_owner(wanted):
        agree(caller, where, answer.status, 400)
        return
    hits = [entry.body for _, entry in found(session.world, caller, wanted)]
    agree(caller, f"{where} status", answer.status, 200)
    agree(caller, f"{where} total", answer.json["total"], len(hits))
    expected = {"total": len(hits), "limit": limit, "offset": offset}
    expected["entries"] = hits[offset : offset + limit]  # type: ignore[assignment]
    agree(caller, where, answer.json, expected)


async def look_at_search(session: Session, caller: Caller, subjects: list[str] | None) -> None:
    """POST /memory/search: what is found and counted, and what the highlight and the explanation of
    each result say.

    subjects: the people that the request is bound to, None for no binding
    """
    headers = {} if subjects is None else {"X-Subject": ", ".join(subjects)}
    asked = {"query": SEARCHED, "limit": 100, "explain": True}
    answer = await session.ask(
        caller, "POST", f"{MEMORY}/search", headers=headers, content=json.dumps(asked).encode()
    )
    where = f"search bound to {subjects}"
    agree(caller, f"{where} status", answer.status, 200)
    readable = {
        entry_id: entry.body
        for entry_id, entry in found(session.world, caller, {}, subjects)
        if entry.body["sensitivity"] not in SEALED
    }
    # A search returns at most 100 entries.
    results = answer.json["results"]
    shown = {one["entry"]["id"]: one["entry"] for one in results}
    agree(caller, f"{where} searched", answer.json["searched"], len(readable))
    agree(caller, f"{where} count", len(results), min(len(readable), 100))
    agree(caller, where, shown, {one: readable.get(one) for one in shown})
    for one in results:
        value, explain = one["entry"]["value"], one["explain"]
        agree(caller, f"{where} terms", explain["terms"], [SEARCHED])
        agree(caller, f"{where} link", explain["link"] in (None, *readable), True)
        highlight = one.get("highlight")
        agree(caller, f"{where} highlight", highlight is not None, len(value["text"]) > 1_000)
        if highlight is not None:
            # A passage that begins with the marker is none of a single field.
            whole = f"marker: {value['marker']} {value['text']}"
            text = whole if highlight["field"] is None else value[highlight["field"]]
            part = text[highlight["start"] : highlight["end"]].strip()
            agree(caller, f"{where} highlight", highlight["text"], part)


async def look_at_export(session: Session, caller: Caller, random: Random) -> None:
    """GET /memory/export: everything, and everything that meets a filter and follows an id."""
    wanted = random_filter(session, random)
    before = random.choice(session.ids) if session.ids and random.random() < 0.3 else None
    for conditions, start in (({}, None), (wanted, before)):
        asked = conditions if start is None else {**conditions, "before": start}
        answer = await session.ask(caller, "GET", "/api/v1/memory/export", query=asked)
        expected = [
            entry.body
            for entry_id, entry in found(session.world, caller, conditions)
            if start is None or entry_id < start
        ]
        agree(caller, f"export {asked} status", answer.status, 200)
        agree(caller, f"export {asked}", answer.lines, expected)


async def look_at_namespaces(session: Session, caller: Caller) -> None:
    """The list of namespaces, and each by its name."""
    answer = await session.ask(caller, "GET", "/api/v1/memory/namespaces")
    seen = namespaces_seen(session.world, caller)
    briefs = [{"namespace": name, "access": level} for name, level in seen.items()]
    expected = {"namespaces": briefs, "total": len(briefs)}
    agree(caller, "namespaces", (answer.status, answer.json), (200, expected))
    for name in session.places:
        answer = await session.ask(caller, "GET", f"/api/v1/memory/namespaces/{part(name)}")
        status = status_of_namespace(session.world, caller, name)
        agree(caller, f"namespace {name} status", answer.status, status)
        if status == 200:
            view = namespace_view(session.world, caller, name)
            agree(caller, f"namespace {name}", answer.json, view)


async def look_at_agent(session: Session, caller: Caller, agent: str, random: Random) -> None:
    """An agent's list, summary and stream."""
    path = f"/api/v1/agents/{agent}"
    answer = await session.ask(caller, "GET", f"{path}/memory", query={"limit": "1000"})
    expected = [e.body for _, e in found(session.world, caller, {"agent_id": agent})]
    agree(caller, f"list of {agent}", (answer.status, answer.json), (200, expected))

    answer = await session.ask(caller, "GET", f"{path}/memory/summary")
    summary = summary_of(session.world, caller, agent, _CAPACITY)
    agree(caller, f"summary of {agent} status", answer.status, 403 if summary is None else 200)
    if summary is not None:
        agree(caller, f"summary of {agent}", answer.json, summary)

    await look_at_stream(session, caller, agent, random)


async def look_at_stream(session: Session, caller: Caller, agent: str, random: Random) -> None:
    """An agent's events as a page and as Server-Sent Events, whole and from some event on."""
    path = f"/api/v1/agents/{agent}/events"
    stream = stream_of(session.world, caller, agent)
    page = await session.ask(caller, "GET", path, query={"limit": "1000"})
    live = await session.ask(caller, "GET", path, headers={"Accept": "text/event-stream"})
    if stream is None:
        agree(caller, f"events of {agent}", (page.status, live.status), (403, 403))
        return
    agree(caller, f"events of {agent} status", (page.status, live.status), (200, 200))
    events = page.json["events"]
    agree(caller, f"events of {agent}", memory_events(caller, events, agent), stream)
    places = [event["seq"] for event in events]
    agree(caller, f"places in the stream of {agent}", places, sorted(set(places)))
    agree(caller, f"next of {agent}", page.json["next"], places[-1] if places else 0)
    agree(caller, f"live events of {agent}", server_sent_events(live.text), events)
    if not places:
        return
    after = random.choice(places)
    rest = [event for event in events if event["seq"] > after]
    page = await session.ask(caller, "GET", path, query={"limit": "1000", "after": str(after)})
    agree(caller, f"events of {agent} after {after}", page.json["events"], rest)
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    live = await session.ask(caller, "GET", path, headers=headers)
    agree(caller, f"live events of {agent} after {after}", server_sent_events(live.text), rest)


def memory_events(caller: Caller, events: list[Body], agent: str) -> list[Body]:
    """What events say of memory. Whatever else stands in an agent's stream concerns the agent."""
    rest = [told(event) for event in events if not event["type"].startswith("memory.")]
    agree(caller, f"whom the events of {agent} concern", {agent, *_agents_of(rest)}, {agent})
    return [told(event) for event in events if event["type"].startswith("memory.")]


def _agents_of(events: list[Body]) -> set[str]:
    return {event["agent_id"] for event in events}


def told(event: Body) -> dict[str, Any]:
    """What an event says, once its second set of names has been found to say the same."""
    words = dict(event)
    for one, other in (("event_type", "type"), ("payload", "data"), ("created_at", "timestamp")):
        assert words.pop(one) == words[other]
    assert words.pop("id") == f"evt_{words.pop('seq')}"
    return words


def random_filter(session: Session, random: Random) -> dict[str, str]:
    """Some conditions of a query, often ones that something meets."""
    bodies = [entry.body for entry in session.world.entries.values()]
    instants = [body["updated_at"] for body in bodies] or [format_instant(session.world.now)]
    choices: dict[str, tuple[str, ...]] = {
        "agent_id": AGENTS,
        "namespace": (*NAMESPACES, "plans*", "ops*", "*", "nowhere", "shared/*"),
        "key": KEYS,
        "memory_type": (*TIERS, STATE),
        "tags": (*TAGS, "red,green"),
        "tags_any": (*TAGS, "green,blue"),
        "scope.task_id": session.task_names,
        "scope.intent_id": session.intent_names,
        "pinned": ("true", "false"),
        "subject": SUBJECTS,
        "updated_after": tuple(instants),
        "updated_before": tuple(instants),
    }
    names = random.sample(sorted(choices), random.choice((0, 1, 1, 1, 2, 3)))
    wanted = {name: random.choice(choices[name]) for name in names}
    if bodies and random.random() < 0.5:
        # Conditions taken from one entry are met by at least that one.
        body = random.choice(bodies)
        wanted = {name: str(body[name]) for name in ("memory_type", "agent_id")}
        assert matches(body, wanted)
    return wanted


async def meet_refusal(
    session: Session, headers: dict[str, str], status: int, caller: Caller
) -> None:
    """Every surface refuses these headers and shows nothing."""
    entry = session.ids[-1] if session.ids else "mem_00000000000000000000000000"
    agent = f"/api/v1/agents/{caller.id}"
    draft = {"namespace": "plans", "key": "k1", "value": {}, "memory_type": "semantic"}
    for method, path, extra, content in (
        ("GET", f"/api/v1/memory/{entry}", {}, b""),
        ("GET", "/api/v1/memory", {}, b""),
        ("GET", "/api/v1/memory/export", {}, b""),
        ("GET", "/api/v1/memory/namespaces", {}, b""),
        ("GET", "/api/v1/memory/namespaces/plans", {}, b""),
        ("GET", f"{agent}/memory", {}, b""),
        ("GET", f"{agent}/memory/summary", {}, b""),
        ("GET", f"{agent}/events", {}, b""),
        ("GET", f"{agent}/events", {"Accept": "text/event-stream"}, b""),
        ("POST", "/api/v1/memory", {}, json.dumps(draft).encode()),
        ("PATCH", f"/api/v1/memory/{entry}", {"If-Match": "1"}, b'{"tags":[]}'),
        ("DELETE", f"/api/v1/memory/{entry}", {}, b""),
    ):
        answer = await send(
            session.app, method, path, headers={**headers, **extra}, content=content
        )
        agree(caller, f"{method} {path} under {sorted(headers)}", answer.status, status)
        agree(caller, f"{method} {path} content", "<<" in answer.text, False)
