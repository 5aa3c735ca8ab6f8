"""The nine tools of the reference memory server: its semantics, its file, and many writers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

import memorywall
from memorywall.records.clock import SystemClock
from memorywall.records.principal import Permission
from tests.adapters.mcp_clients import Caller, app_of, in_process, over_http
from tests.adapters.networks import Network
from tests.adapters.networks import connect as connect_over
from tests.cli.shell import refuse, succeed
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

ANA = {"name": "Ana", "entityType": "person", "observations": ["likes trains", "lives in Rome"]}
ACME = {"name": "Acme", "entityType": "company", "observations": []}
WORKS = {"from": "Ana", "to": "Acme", "relationType": "works at"}


@pytest.fixture
def connect(service: RunningService) -> Callable[..., Any]:
    """Makes connections of agents."""
    app = app_of(service)

    async def connect(
        agent: str = "billing", tenant: str = "default", user: str | None = None
    ) -> AbstractAsyncContextManager[Caller]:
        headers = {"X-API-Key": await service.key(agent, tenant)}
        if user is not None:
            headers["X-Subject"] = user
        return over_http(app, headers, path="/mcp/graph")

    return connect


async def test_it_has_the_tools_of_the_reference_server(connect: Callable[..., Any]) -> None:
    async with await connect() as call:
        tools = {one.name: one for one in (await call.client.list_tools()).tools}
    assert {name: set(one.input_schema["properties"]) for name, one in tools.items()} == {
        "create_entities": {"entities"},
        "create_relations": {"relations"},
        "add_observations": {"observations"},
        "delete_entities": {"entityNames"},
        "delete_observations": {"deletions"},
        "delete_relations": {"relations"},
        "read_graph": set(),
        "search_nodes": {"query"},
        "open_nodes": {"names"},
    }


async def test_it_does_what_the_reference_server_does(connect: Callable[..., Any]) -> None:
    async with await connect() as call:
        assert await call("create_entities", entities=[ANA, ACME]) == {"entities": [ANA, ACME]}
        # What is known stays as it is.
        again = {**ANA, "observations": ["hates trains"]}
        assert await call("create_entities", entities=[again]) == {"entities": []}
        assert await call("create_relations", relations=[WORKS, WORKS]) == {"relations": [WORKS]}
        assert await call("create_relations", relations=[WORKS]) == {"relations": []}
        # The ends of a relation need not be there.
        knows = {"from": "Ana", "to": "Bob", "relationType": "knows"}
        await call("create_relations", relations=[knows])
        added = await call(
            "add_observations",
            observations=[
                {"entityName": "Ana", "contents": ["likes trains", "has a dog"]},
                {"entityName": "Acme", "contents": ["makes anvils"]},
            ],
        )
        assert added == {
            "results": [
                {"entityName": "Ana", "addedObservations": ["has a dog"]},
                {"entityName": "Acme", "addedObservations": ["makes anvils"]},
            ]
        }
        ana = {**ANA, "observations": [*ANA["observations"], "has a dog"]}
        acme = {**ACME, "observations": ["makes anvils"]}
        whole = {"entities": [ana, acme], "relations": [WORKS, knows]}
        assert await call("read_graph") == whole
        for query in ("ANA", "person", "DOG"):
            found = await call("search_nodes", query=query)
            assert found == {"entities": [ana], "relations": [WORKS, knows]}
        assert await call("open_nodes", names=["Acme", "Bob"]) == {
            "entities": [acme],
            "relations": [WORKS],
        }
        for _ in range(2):
            gone = [{"entityName": "Ana", "observations": ["has a dog", "is tall"]}]
            assert (await call("delete_observations", deletions=gone))["success"]
            assert (await call("delete_relations", relations=[knows]))["success"]
        assert await call("read_graph") == {"entities": [ANA, acme], "relations": [WORKS]}
        for _ in range(2):
            assert (await call("delete_entities", entityNames=["Ana"]))["success"]
        assert await call("read_graph") == {"entities": [acme], "relations": []}
        # What a new entity of the name begins with is its own.
        await call("create_entities", entities=[{**ANA, "observations": []}])
        assert (await call("open_nodes", names=["Ana"]))["entities"][0]["observations"] == []


@pytest.mark.sqlite("a store in memory is a file")
async def test_a_client_that_has_seen_an_entity_does_not_replace_it() -> None:
    """Over stdio all calls have one client, which knows the versions of what it has seen."""
    async with (
        memorywall.open_async(":memory:") as memory,
        in_process(memory, SystemClock(), profile="graph") as call,
    ):
        await call("create_entities", entities=[ANA])
        assert (await call("read_graph"))["entities"] == [ANA]
        async for _ in memory.memory.iterate(namespace="knowledge-graph/*"):
            pass
        other = {**ANA, "entityType": "robot", "observations": []}
        assert await call("create_entities", entities=[other]) == {"entities": []}
        assert (await call("read_graph"))["entities"] == [ANA]


async def test_observations_of_nothing_change_nothing(connect: Callable[..., Any]) -> None:
    async with await connect() as call:
        await call("create_entities", entities=[ACME])
        text = await call.refused(
            "add_observations",
            observations=[
                {"entityName": "Acme", "contents": ["makes anvils"]},
                {"entityName": "Secret", "contents": ["x"]},
            ],
        )
        assert "`observations[1].entityName`" in text
        assert "Secret" not in text
        assert "`arguments.entities[0].name`" in await call.refused(
            "create_entities", entities=[{"entityType": "x", "observations": []}]
        )
        large = {**ANA, "observations": ["fits", "x" * 70_000]}
        assert "65536" in await call.refused("create_entities", entities=[large])
        assert await call("read_graph") == {"entities": [ACME], "relations": []}


async def test_names_may_be_any_text(connect: Callable[..., Any]) -> None:
    names = ["", " a ", "a/b", "é", "e\u0301", "x" * 2_000, "\u202e", "user/ana", "🙂"]
    entities = [{**ACME, "name": one, "observations": [one]} for one in names]
    async with await connect() as call:
        assert await call("create_entities", entities=entities) == {"entities": entities}
        assert (await call("read_graph"))["entities"] == entities
        await call("delete_entities", entityNames=names)
        assert await call("read_graph") == {"entities": [], "relations": []}


async def test_forty_writers_lose_nothing(connect: Callable[..., Any]) -> None:
    async with await connect() as call:
        await call("create_entities", entities=[ACME])

        async def write(place: int) -> None:
            own = {**ANA, "name": f"person {place}"}
            await call("create_entities", entities=[own, {**ANA, "name": "shared"}])
            fact = {"entityName": "Acme", "contents": [f"fact {place}", "known to all"]}
            await call("add_observations", observations=[fact])

        await asyncio.gather(*map(write, range(40)))
        graph = await call("read_graph")
    entities = {one["name"]: one for one in graph["entities"]}
    assert entities.keys() == {"Acme", "shared", *(f"person {place}" for place in range(40))}
    for name, one in entities.items():
        if name != "Acme":
            assert one["observations"] == ANA["observations"]
    facts = [*(f"fact {place}" for place in range(40)), "known to all"]
    assert sorted(entities["Acme"]["observations"]) == sorted(facts)


async def test_strangers_see_nothing(connect: Callable[..., Any]) -> None:
    async with await connect(user="ana") as call:
        await call("create_entities", entities=[ANA])
    empty = {"entities": [], "relations": []}
    for stranger in ({"tenant": "other", "user": "ana"}, {"user": "bob"}, {}):
        async with await connect(**stranger) as call:
            assert await call("read_graph") == empty
            await call("delete_entities", entityNames=["Ana"])
            await call("create_entities", entities=[{**ACME, "name": "Ana"}])
    async with await connect(user="ana") as call:
        assert (await call("read_graph"))["entities"] == [ANA]


async def test_agents_have_graphs_of_their_own(connect: Callable[..., Any]) -> None:
    async with await connect() as call, await connect("support") as other:
        await call("create_entities", entities=[ANA])
        await other("create_entities", entities=[ACME])
        assert (await call("read_graph"))["entities"] == [ANA]
        assert (await other("read_graph"))["entities"] == [ACME]


async def test_forgetting_a_person_empties_it(
    connect: Callable[..., Any], service: RunningService
) -> None:
    admin = await service.agent("boss", permissions=list(Permission))
    async with await connect(user="ana") as call:
        await call("create_entities", entities=[ANA])
        assert (await admin.post("/api/v1/subjects/ana/forget")).status_code == 200
        assert await call("read_graph") == {"entities": [], "relations": []}


async def test_the_audit_names_who(connect: Callable[..., Any], service: RunningService) -> None:
    async with await connect() as call:
        await call("create_entities", entities=[ANA])
        await call("delete_entities", entityNames=["Ana"])
    own = await service.agent("billing")
    events = (await own.get("/api/v1/agents/billing/events")).json()["events"]
    assert sorted(one["type"] for one in events) == ["memory.created"] * 3 + ["memory.deleted"] * 3
    assert {one["actor"] for one in events} == {"billing"}


async def test_what_waits_for_a_person_is_told(
    connect: Callable[..., Any], service: RunningService
) -> None:
    admin = await service.agent("root", permissions=[*Permission])
    async with await connect() as call:
        assert "note" not in await call("create_entities", entities=[ACME])
        await admin.put("/api/v1/tiers/semantic", json={"admission": "promoted"})
        for _ in range(2):
            made = await call("create_entities", entities=[ANA])
            assert made["entities"] == []
            assert "3 of the entities, observations and relations wait" in made["note"]
        related = await call("create_relations", relations=[WORKS])
        added = await call(
            "add_observations",
            observations=[{"entityName": "Acme", "contents": ["makes anvils"]}],
        )
        for one in (related, added):
            assert "1 of the entities, observations and relations wait" in one["note"]
        assert related["relations"] == []
        assert added["results"] == [{"entityName": "Acme", "addedObservations": []}]
        assert await call("read_graph") == {"entities": [ACME], "relations": []}


async def test_lost_replies_and_missing_rights_are_no_silence(service: RunningService) -> None:
    network = Network(service)
    network.loses_replies = True
    memory = connect_over(network, await service.key("billing"))
    async with in_process(memory, service.clock, profile="graph") as call:
        assert await call("create_entities", entities=[ANA, ACME]) == {"entities": [ANA, ACME]}
        assert (await call("create_relations", relations=[WORKS]))["relations"] == [WORKS]
        await call("delete_entities", entityNames=["Ana"])
        assert await call("read_graph") == {"entities": [ACME], "relations": []}
        assert network.lost >= 6
        strange = {**ANA, "observations": ["\ud800"]}
        assert "JSON" in await call.refused("create_entities", entities=[strange])
        network.is_away = True
        assert "memory is unavailable since" in await call.refused("read_graph")
    reader = await service.key("eve", permissions=(Permission.READ,))
    memory = connect_over(Network(service), reader)
    async with in_process(memory, service.clock, profile="graph") as call:
        assert "memory.write" in await call.refused("create_entities", entities=[ANA])


@pytest.mark.sqlite("the command opens the directory itself")
def test_a_file_of_the_reference_server_is_imported(tmp_path: Path) -> None:
    """With every entity, relation and observation, once, and more of them than a batch takes."""
    file = tmp_path / "memory.jsonl"
    many = {**ANA, "observations": [f"fact {place}" for place in range(120)]}
    # Two writers of the reference server may have written the same entity.
    twice = {**ACME, "observations": ["makes anvils"]}
    lines = [
        {"type": "entity", **many},
        {"type": "entity", **ACME},
        {"type": "relation", **WORKS},
        {"type": "entity", **twice},
    ]
    file.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    own = ("--data", str(tmp_path / "data"), "--agent", "ana-laptop")
    told = "added 2 entities, 121 observations and 1 relations\n"
    assert succeed("mcp", *own, "--import", str(file)) == told
    assert succeed("mcp", *own, "--import", str(file)) == told.replace("121", "0").replace(
        " 2 ", " 0 "
    ).replace(" 1 ", " 0 ")
    with memorywall.open(tmp_path / "data", agent="ana-laptop") as client:
        entries = [
            *client.memory.iterate(namespace="knowledge-graph/ana-laptop", memory_type="semantic")
        ]
    assert len(entries) == 124
    facts = {one["text"] for one in entries if one["type"] == "observation"}
    assert facts == {*many["observations"], "makes anvils"}
    file.write_text(json.dumps({"type": "entity", "name": "Ana"}))
    assert "line 1" in refuse("mcp", *own, "--import", str(file))
