"""A random walk: groups change, and after each step somebody looks everywhere."""

from __future__ import annotations

from random import Random
from typing import Any

import httpx

from memorywall.records.principal import DEFAULT_PERMISSIONS, Permission
from tests.oracle.group_rules import LEVELS, Goal, GroupWorld, Opened, Person, Thing
from tests.oracle.session import Disagreement
from tests.support.service import RunningService, draft

TENANTS = ("north", "south")
PEOPLE = ("ada", "bob", "carol")
CHIEF = "chief"
GROUPS = ("red", "blue")
NAMESPACES = ("plans", "notes")
MEMORY = "/api/v1/memory"
GRANTEES = (*PEOPLE, *(f"group:{group}" for group in GROUPS))


class GroupWalk:
    """Does the same to the service and to the world of the oracle, and compares them."""

    def __init__(self, service: RunningService, random: Random) -> None:
        self.world = GroupWorld()
        self._random = random
        self._service = service
        self._clients: dict[Person, httpx.AsyncClient] = {}
        self._made = 0

    async def begin(self) -> None:
        """Both tenants: everybody has a past in every namespace, and somebody an intent."""
        everything = (*DEFAULT_PERMISSIONS, Permission.ADMIN, Permission.TENANT_ADMIN)
        for tenant in TENANTS:
            for name in (*PEOPLE, CHIEF):
                rights = everything if name == CHIEF else (*DEFAULT_PERMISSIONS, Permission.ADMIN)
                client = await self._service.agent(name, tenant, permissions=rights)
                self._clients[tenant, name] = client
            for group in GROUPS:
                await self._make_group(tenant, group)
            for namespace in NAMESPACES:
                await self._open(tenant, namespace, Opened())
                await self._create((tenant, CHIEF), "semantic", namespace)
                for name in PEOPLE:
                    await self._create((tenant, name), "episodic", namespace)
            await self._set_goal((tenant, self._random.choice(PEOPLE)))
            for change in (self._join, self._join, self._join, self._grant, self._grant):
                await change(tenant)

    async def step(self) -> None:
        """One change in one of the tenants, and one look at everything."""
        random, tenant = self._random, self._random.choice(TENANTS)
        changes = [self._join] * 4 + [self._leave] * 3 + [self._grant] * 3 + [self._list] * 2
        await random.choice([*changes, self._dissolve, self._overstep])(tenant)
        await self.look((random.choice(TENANTS), random.choice(PEOPLE)))

    # Changes

    async def _join(self, tenant: str) -> None:
        group, name = self._random.choice(GROUPS), self._random.choice(PEOPLE)
        path = f"/api/v1/groups/{group}/members/{name}"
        _expect(await self._chief(tenant).put(path), 200)
        self.world.members[tenant, group].add(name)

    async def _leave(self, tenant: str) -> None:
        group, name = self._random.choice(GROUPS), self._random.choice(PEOPLE)
        here = self.world.members[tenant, group]
        path = f"/api/v1/groups/{group}/members/{name}"
        _expect(await self._chief(tenant).delete(path), 204 if name in here else 404)
        here.discard(name)

    async def _dissolve(self, tenant: str) -> None:
        """A group ends with its members. What names it names the next group of this name."""
        group = self._random.choice(GROUPS)
        _expect(await self._chief(tenant).delete(f"/api/v1/groups/{group}"), 204)
        await self._make_group(tenant, group)

    async def _make_group(self, tenant: str, group: str) -> None:
        _expect(await self._chief(tenant).put(f"/api/v1/groups/{group}", json={}), 200)
        self.world.members[tenant, group] = set()

    async def _grant(self, tenant: str) -> None:
        random = self._random
        named = {one: random.choice(("none", "none", "read", "write")) for one in PEOPLE[:2]}
        named.update({f"group:{one}": random.choice(LEVELS[:3]) for one in GROUPS})
        named = {one: level for one, level in named.items() if random.random() < 0.6}
        pasts = {one for one in GROUPS if named.get(f"group:{one}", "none") != "none"}
        opened = Opened(
            default=random.choice(("none", "none", "read")),
            named=named,
            pasts={one for one in pasts if random.random() < 0.7},
        )
        await self._open(tenant, random.choice(NAMESPACES), opened)

    async def _open(self, tenant: str, namespace: str, opened: Opened) -> None:
        response = await self._chief(tenant).patch(
            f"{MEMORY}/namespaces/{namespace}", json=_permissions(opened)
        )
        _expect(response, 200)
        self.world.namespaces[tenant, namespace] = opened
        opened.named[CHIEF] = "admin"

    async def _overstep(self, tenant: str) -> None:
        """Somebody founds a namespace where others have a past, to read it. Who administers a
        namespace does not administer the tenant."""
        own = Opened(named={"group:red": "read"}, pasts={"red"})
        response = await self._clients[tenant, self._random.choice(PEOPLE)].patch(
            f"{MEMORY}/namespaces/founded", json=_permissions(own)
        )
        _expect(response, 403)

    async def _set_goal(self, person: Person) -> None:
        client = self._clients[person]
        made = await client.post("/api/v1/intents", json={"title": "Close the books"})
        _expect(made, 201)
        intent = made.json()["id"]
        self.world.goals[intent] = Goal(tenant=person[0], creator=person[1])
        await self._create(person, "working", "desk", intent)

    async def _list(self, tenant: str) -> None:
        """An intent has another access list."""
        random = self._random
        intent, goal = random.choice(
            [(name, one) for name, one in self.world.goals.items() if one.tenant == tenant]
        )
        goal.named = [
            (one, random.choice(LEVELS[1:3]))
            for one in random.sample(GRANTEES, random.randint(1, 2))
            if one != goal.creator
        ]
        lines = [{"principal_id": one, "permission": level} for one, level in goal.named]
        client = self._clients[tenant, goal.creator]
        _expect(await client.put(f"/api/v1/intents/{intent}/acl", json={"entries": lines}), 200)

    async def _create(
        self, person: Person, tier: str, namespace: str, intent: str | None = None
    ) -> None:
        self._made += 1
        body = draft(
            f"thing-{self._made}",
            memory_type=tier,
            namespace=namespace,
            value={"text": "harvest"},
            tags=["all"],
            scope={} if intent is None else {"intent_id": intent},
        )
        made = await self._clients[person].post(MEMORY, json=body)
        _expect(made, 201)
        owner = "" if tier == "semantic" else person[1]
        self.world.things[made.json()["id"]] = Thing(
            tenant=person[0], tier=tier, owner=owner, namespace=namespace, intent=intent
        )

    # Looks

    async def look(self, person: Person) -> None:
        """Somebody gets each entry, lists and searches in several ways, and looks at intents."""
        client, world = self._clients[person], self.world
        for name, thing in world.things.items():
            status = 404 if thing.tenant != person[0] else 403
            expected = 200 if world.may_read(person, thing) else status
            _expect(await client.get(f"{MEMORY}/{name}"), expected, f"{person} gets {thing}")
        await self._look_at_lists(person)
        await self._look_at_intents(person)
        namespace = self._random.choice(NAMESPACES)
        body = draft("attempt", memory_type="semantic", namespace=namespace)
        made = await client.post(MEMORY, json=body)
        allowed = world.may_write(person, namespace)
        _expect(made, 201 if allowed else 403, f"{person} writes to {namespace}")
        if allowed:
            _expect(await client.delete(f"{MEMORY}/{made.json()['id']}"), 204)

    async def _look_at_lists(self, person: Person) -> None:
        readable = self.world.readable(person)
        owner, namespace = self._random.choice(PEOPLE), self._random.choice(NAMESPACES)
        past = {
            name
            for name in readable
            if (self.world.things[name].tier, self.world.things[name].owner) == ("episodic", owner)
        }
        here = {name for name in readable if self.world.things[name].namespace == namespace}
        queries: list[tuple[dict[str, Any], set[str]]] = [
            ({}, readable),
            ({"tags": "all"}, readable),
            ({"memory_type": "episodic", "agent_id": owner}, past),
            ({"memory_type": "episodic", "agent_id": owner, "namespace": namespace}, past & here),
            ({"namespace": namespace}, here),
            ({"namespace": f"{namespace[:3]}*"}, here),
        ]
        client = self._clients[person]
        for query, expected in queries:
            page = (await client.get(MEMORY, params={**query, "limit": 100})).json()
            _compare({one["id"] for one in page["entries"]}, expected, f"{person} lists {query}")
            _compare(page["total"], len(expected), f"{person} counts {query}")
        found = await client.post(f"{MEMORY}/search", json={"query": "harvest", "limit": 100})
        hits = {hit["entry"]["id"] for hit in found.json()["results"]}
        _compare(hits, readable, f"{person} searches")

    async def _look_at_intents(self, person: Person) -> None:
        client, world = self._clients[person], self.world
        seen = {name for name, goal in world.goals.items() if world.may_see(person, goal)}
        listed = (await client.get("/api/v1/intents")).json()["intents"]
        _compare({one["id"] for one in listed}, seen, f"{person} lists intents")
        for name, goal in world.goals.items():
            status = 404 if goal.tenant != person[0] else 403
            expected = 200 if name in seen else status
            for path in (f"/api/v1/intents/{name}", f"/api/v1/intents/{name}/events"):
                _expect(await client.get(path), expected, f"{person} gets {path}")

    def _chief(self, tenant: str) -> httpx.AsyncClient:
        return self._clients[tenant, CHIEF]


def _permissions(opened: Opened) -> dict[str, Any]:
    lines = [
        {"agent": one, "access": level, "episodic": one.removeprefix("group:") in opened.pasts}
        for one, level in {**opened.named, CHIEF: "admin"}.items()
    ]
    return {"permissions": {"default": opened.default, "allow": lines}}


def _expect(response: httpx.Response, status: int, what: str = "") -> None:
    _compare(response.status_code, status, what or response.text)


def _compare(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise Disagreement(f"{what}: {found} instead of {expected}")
