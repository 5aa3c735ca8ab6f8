"""A random walk: sessions, their participants and a group change, and somebody looks everywhere."""

from __future__ import annotations

from random import Random
from typing import Any

import httpx

from memorywall.records.principal import Permission
from tests.oracle.conversation_rules import (
    BOUND_TIERS,
    OPEN_TO_ALL,
    OPEN_TO_GROUP,
    Conversation,
    ConversationWorld,
    Note,
)
from tests.oracle.session import Disagreement
from tests.support.service import RunningService, draft

PEOPLE = ("ada", "bob", "carol")
SUBJECTS = (None, None, "ann", "ben")
MEMORY, SESSIONS = "/api/v1/memory", "/api/v1/sessions"
MEMBERS = "/api/v1/groups/red/members"
_KINDLESS = ("working", "session", "episodic", "semantic")


class ConversationWalk:
    """Does the same to the service and to the world of the oracle, and compares them."""

    def __init__(self, service: RunningService, random: Random) -> None:
        self.world = ConversationWorld()
        self._random = random
        self._service = service
        self._clients: dict[str, httpx.AsyncClient] = {}
        self._made = 0

    async def begin(self) -> None:
        """Everybody has a past and a session; a namespace is open to all and one to a group."""
        for name in PEOPLE:
            self._clients[name] = await self._service.agent(name)
        self._chief = await self._service.agent("chief", permissions=tuple(Permission))
        _expect(await self._chief.put("/api/v1/groups/red", json={}), 200)
        line = {"agent": "group:red", "access": "read", "episodic": True}
        for name, default, allow in ((OPEN_TO_GROUP, "none", [line]), (OPEN_TO_ALL, "write", [])):
            body = {"permissions": {"default": default, "allow": allow}}
            _expect(await self._chief.patch(f"{MEMORY}/namespaces/{name}", json=body), 200)
        for name in PEOPLE:
            await self._begin_session(name)
            await self._write(name, None)
        await self._join()

    async def step(self) -> None:
        """A change, a write and a look."""
        random = self._random
        changes = [self._invite] * 3 + [self._remove, self._join, self._leave, self._close]
        await random.choice(changes)()
        await self._write(random.choice(PEOPLE), self._session_or_none())
        await self.look(random.choice(PEOPLE), self._session_or_none())

    # Changes

    async def _begin_session(self, owner: str) -> None:
        subject = self._random.choice(SUBJECTS)
        made = await self._clients[owner].post(SESSIONS, json={"subject": subject})
        _expect(made, 201)
        self.world.sessions[made.json()["id"]] = Conversation(owner=owner, subject=subject)

    async def _invite(self) -> None:
        session = self._random.choice(list(self.world.sessions))
        here, access = self.world.sessions[session], self._random.choice(("read", "append"))
        guest = self._random.choice([one for one in PEOPLE if one != here.owner])
        path = f"{SESSIONS}/{session}/participants/{guest}"
        _expect(await self._clients[here.owner].put(path, json={"access": access}), 200)
        here.participants[guest] = access

    async def _remove(self) -> None:
        session = self._random.choice(list(self.world.sessions))
        here, guest = self.world.sessions[session], self._random.choice(PEOPLE)
        path = f"{SESSIONS}/{session}/participants/{guest}"
        expected = 204 if guest in here.participants else 404
        _expect(await self._clients[here.owner].delete(path), expected)
        here.participants.pop(guest, None)

    async def _close(self) -> None:
        session = self._random.choice(list(self.world.sessions))
        here = self.world.sessions[session]
        path = f"{SESSIONS}/{session}/close"
        _expect(await self._clients[here.owner].post(path, json={}), 200)
        here.is_open = False
        await self._begin_session(self._random.choice(PEOPLE))

    async def _join(self) -> None:
        name = self._random.choice(PEOPLE)
        _expect(await self._chief.put(f"{MEMBERS}/{name}"), 200)
        self.world.group.add(name)

    async def _leave(self) -> None:
        name = self._random.choice(PEOPLE)
        expected = 204 if name in self.world.group else 404
        _expect(await self._chief.delete(f"{MEMBERS}/{name}"), expected)
        self.world.group.discard(name)

    async def _write(self, person: str, session: str | None) -> None:
        """Somebody writes an entry, with or without a session in its scope."""
        random, world = self._random, self.world
        tier = random.choice(_KINDLESS)
        namespace = OPEN_TO_ALL if tier == "semantic" else OPEN_TO_GROUP
        if session is not None and world.status(person, session) != 200:
            made = await self._post(person, session, tier, namespace, None)
            _expect(made, world.status(person, session), f"{person} writes in {session}")
            return
        subject = None if session is None else world.sessions[session].subject
        if subject is not None and tier == "semantic":
            # The namespace of a person's facts is another one, which nobody has opened.
            tier, namespace = "episodic", OPEN_TO_GROUP
        named = random.choice([None, random.choice(list(world.sessions))])
        about = random.choice(SUBJECTS) if session is None else None
        made = await self._post(person, session, tier, namespace, named, about)
        if session is not None:
            expected = 422 if named not in (None, session) else 201
            if not world.may_write(person, session, tier):
                expected = 403
            _expect(made, expected, f"{person} writes {tier} in {session} for {named}")
            if expected != 201:
                return
            named = named if named or tier not in BOUND_TIERS else session
        _expect(made, 201)
        entry = made.json()
        world.notes[entry["id"]] = Note(
            tier=tier,
            owner="" if tier == "semantic" else person,
            namespace=entry["namespace"],
            key=entry["key"],
            session=named,
            subjects=frozenset(one for one in (subject, about) if one is not None),
        )
        scope = entry["scope"] or {}
        _compare(scope.get("session_id"), named, f"{person} writes {tier} in {session}")

    async def _post(
        self, person: str, session: str | None, tier: str, namespace: str,
        named: str | None, about: str | None = None,
    ) -> httpx.Response:  # fmt: skip
        self._made += 1
        body = draft(
            f"note-{self._made}",
            memory_type=tier,
            namespace=namespace,
            value={"text": "harvest"},
            tags=["all"],
            scope={} if named is None else {"session_id": named},
            subjects=[] if about is None else [about],
        )
        return await self._clients[person].post(MEMORY, json=body, headers=_inside(session))

    # Looks

    async def look(self, person: str, session: str | None) -> None:
        """Somebody gets each entry, and lists, searches and follows, inside a session or not."""
        client, world, headers = self._clients[person], self.world, _inside(session)
        who = f"{person} in {session}"
        if session is not None and (status := world.status(person, session)) != 200:
            for path in (MEMORY, f"{MEMORY}/{next(iter(world.notes))}", f"{MEMORY}/export"):
                reply = await client.get(path, headers=headers)
                # An export has begun when its first page is refused.
                _expect(reply, status if path != f"{MEMORY}/export" else reply.status_code, who)
                _compare("harvest" in reply.text, False, f"{who} reads {path}")
            return
        for name, note in world.notes.items():
            expected = world.get_status(person, session, note)
            reply = await client.get(f"{MEMORY}/{name}", headers=headers)
            _expect(reply, expected, f"{who} gets {note}")
        readable = world.readable(person, session)
        await self._look_at_lists(client, headers, who, readable)
        search = {"query": "harvest", "limit": 100}
        found = (await client.post(f"{MEMORY}/search", json=search, headers=headers)).json()
        hits = {one["entry"]["id"] for one in found["results"]}
        # A search returns at most 100 entries.
        allowed = readable if len(readable) <= 100 else hits & readable
        _compare(hits, allowed, f"{who} searches")
        _compare(len(hits), min(len(readable), 100), f"{who} finds")
        _compare(found["searched"], len(readable), f"{who} searches among")

    async def _look_at_lists(
        self, client: httpx.AsyncClient, headers: dict[str, str], who: str, readable: set[str]
    ) -> None:
        queries: list[dict[str, Any]] = [{"tags": "all"}, {"tags_any": "all"}]
        for query in queries:
            page = (
                await client.get(MEMORY, params={**query, "limit": 500}, headers=headers)
            ).json()
            _compare({one["id"] for one in page["entries"]}, readable, f"{who} lists {query}")
            _compare(page["total"], len(readable), f"{who} counts {query}")
        exported = await client.get(f"{MEMORY}/export", params={"tags": "all"}, headers=headers)
        _compare(exported.text.count('"key"'), len(readable), f"{who} exports")
        events: list[dict[str, Any]] = []
        after, more = 0, True
        while more:
            params = {"after": after, "limit": 500}
            page = await client.get(f"{MEMORY}/changes", params=params, headers=headers)
            events += page.json()["events"]
            after, more = page.json()["next"], page.json()["more"]
        followed = {one["data"]["entry_id"] for one in events} & self.world.notes.keys()
        _compare(followed, readable, f"{who} follows")

    def _session_or_none(self) -> str | None:
        return self._random.choice([None, *self.world.sessions, *self.world.sessions])


def _inside(session: str | None) -> dict[str, str]:
    return {} if session is None else {"X-Session-ID": session}


def _expect(response: httpx.Response, status: int, what: str = "") -> None:
    _compare(response.status_code, status, f"{what} {response.text[:300]}")


def _compare(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise Disagreement(f"{what}: {found} instead of {expected}")
