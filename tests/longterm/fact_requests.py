"""Requests of the tests of facts."""

from __future__ import annotations

from typing import Any

import httpx

from tests.http.checks import MEMORY, NAMESPACES

FACTS = "/api/v1/facts"
PEOPLE = {
    "version": "1.0.0",
    "entity_types": {
        "thing": {},
        "person": {"parent": "thing", "attributes": {"born": {"type": "date"}}},
        "student": {"parent": "person", "attributes": {"year": {"type": "number"}}},
        "city": {"parent": "thing"},
    },
    "relation_types": {
        "lives_in": {"domain": "person", "range": "city", "functional": True},
        "boards_in": {"parent": "lives_in"},
        "knows": {"domain": "person", "range": "person"},
        "befriends": {"parent": "knows", "attributes": {"since": {"type": "date"}}},
        "age": {"domain": "person", "range": "number", "functional": True},
        "likes": {},
    },
}


async def post(client: httpx.AsyncClient, kind: str, value: dict[str, Any], **fields: Any) -> Any:
    """The reply to the creation of an entry of a kind."""
    body = {
        "namespace": "facts",
        "memory_type": "semantic",
        "kind": kind,
        "value": value,
        **fields,
    }
    return await client.post(MEMORY, json=body)


async def add(
    client: httpx.AsyncClient,
    subject: str,
    relation: str,
    obj: Any,
    fields: dict[str, Any] | None = None,
    **value: Any,
) -> dict[str, Any]:
    """Creates a fact and returns its entry.

    fields: of the entry besides its value
    """
    value = {"subject": subject, "relation": relation, "object": obj, **value}
    response = await post(client, "fact", value, **(fields or {}))
    assert response.status_code == 201, response.text
    entry: dict[str, Any] = response.json()
    return entry


async def add_entity(
    client: httpx.AsyncClient, name: str, kind: str | None = None, **fields: Any
) -> str:
    """Creates an entity and returns its id."""
    value = {"name": name, **({} if kind is None else {"class": kind}), **fields}
    response = await post(client, "entity", value)
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


async def declare(client: httpx.AsyncClient, **changed: Any) -> None:
    """Creates the ontology of people, with changed fields."""
    response = await post(client, "ontology", {**PEOPLE, **changed}, key="ontology")
    assert response.status_code == 201, response.text


async def allow(founder: httpx.AsyncClient, default: str) -> None:
    """Sets what everybody may do with the facts of an administrator's namespace."""
    permissions = {"default": default, "allow": [{"agent": "ada", "access": "admin"}]}
    response = await founder.patch(f"{NAMESPACES}/facts", json={"permissions": permissions})
    assert response.status_code == 200, response.text


async def rows(client: httpx.AsyncClient, *patterns: Any, **asked: Any) -> list[dict[str, Any]]:
    """The values of the variables in each row, in order.

    patterns: three words each, and a fourth for a negated one
    """
    names = ("subject", "relation", "object", "negated")
    body = {
        "namespace": "facts",
        "patterns": [dict(zip(names, one, strict=False)) for one in patterns],
        **asked,
    }
    response = await client.post(f"{FACTS}/query", json=body)
    assert response.status_code == 200, response.text
    found = response.json()
    for row in found["rows"]:
        assert set(row["facts"]) <= found["facts"].keys()
    return [{name: node["value"] for name, node in row["values"].items()} for row in found["rows"]]


async def values(client: httpx.AsyncClient, *pattern: Any, **asked: Any) -> list[Any]:
    """The sorted values of the only variable of a pattern."""
    found = await rows(client, pattern, **asked)
    return sorted(value for row in found for value in row.values())


async def walk(client: httpx.AsyncClient, *start: str, **asked: Any) -> dict[Any, int]:
    """The hops to each node by what it is called."""
    body = {"namespace": "facts", "start": list(start), **asked}
    response = await client.post(f"{FACTS}/walk", json=body)
    assert response.status_code == 200, response.text
    found = response.json()
    for node in found["nodes"]:
        assert len(node["path"]) == node["hops"]
        assert set(node["path"]) <= found["facts"].keys()
    return {node["value"]: node["hops"] for node in found["nodes"]}
