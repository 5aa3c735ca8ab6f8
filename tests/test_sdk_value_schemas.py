"""Schemas of namespaces through every client: sync and async, over HTTP and in process."""

from __future__ import annotations

from typing import Any

import pytest

from memorywall.exceptions import (
    BreakingSchemaError,
    MemoryNotFoundError,
    SchemaVersionError,
    SchemaViolationError,
    ValidationError,
)
from tests.test_sdk_support import World, fresh, server, world

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("world", ["http-async", "local-blocking"], indirect=True),
]
__all__ = ["server", "world"]

FIRST: dict[str, Any] = {"required": ["n"], "properties": {"n": {"type": "integer"}}}
SECOND: dict[str, Any] = {"required": ["n"], "properties": {"n": {"type": "string"}}}


async def test_schemas_of_a_namespace(world: World) -> None:
    client, name = world.client(fresh("chief")), fresh("space")
    made = await client.value_schemas.put(name, "count", FIRST, version="1.0.0", key_pattern="c*")
    assert (made.version, made.key_pattern, made.schema) == ("1.0.0", "c*", FIRST)
    entry = await client.memory.set(name, "c1", {"n": 1}, "semantic")
    with pytest.raises(SchemaViolationError) as violated:
        await client.memory.set(name, "c1", {"n": "x"}, "semantic")
    error = violated.value
    assert (error.schema, error.schema_version, error.pointer) == ("count", "1.0.0", "/n")
    with pytest.raises(BreakingSchemaError, match="/properties/n/type"):
        await client.value_schemas.put(name, "count", SECOND, version="1.1.0", key_pattern="c*")
    with pytest.raises(ValidationError, match="requried"):
        await client.value_schemas.put(name, "other", {"requried": []}, version="1.0.0")
    await client.value_schemas.put(name, "count", SECOND, version="2.0.0", key_pattern="c*")
    assert [one.version for one in await client.value_schemas.list(name)] == ["1.0.0", "2.0.0"]
    assert (await client.value_schemas.get(name, "count", version=1)).schema == FIRST
    page = await client.value_schemas.check(name, limit=1)
    (violation,) = page.violations
    assert (violation.entry_id, violation.pointer, page.next) == (entry.id, "/n", entry.id)
    assert (await client.value_schemas.check(name, before=page.next)).checked == 0
    batch = [{"namespace": name, "key": "c2", "memory_type": "semantic", "value": {}}]
    with pytest.raises(SchemaViolationError) as violated:
        await client.memory.batch(batch)
    assert violated.value.index == 0
    await client.value_schemas.delete(name, "count")
    with pytest.raises(MemoryNotFoundError):
        await client.value_schemas.get(name, "count")


async def test_a_reader_names_the_version_that_it_understands(world: World) -> None:
    client, name = world.client(fresh("chief")), fresh("space")
    await client.value_schemas.put(name, "count", FIRST, version="1.0.0")
    old = await client.memory.set(name, "old", {"n": 1}, "semantic")
    await client.value_schemas.put(name, "count", SECOND, version="2.0.0")
    await client.memory.set(name, "new", {"n": "1"}, "semantic")
    memory = client.memory
    assert (await memory.get(name, "old", schema_version=1)).value == {"n": 1}
    assert (await memory.get_by_id(old.id, schema_version=1)).id == old.id
    assert await memory.get(name, "absent", schema_version=1) is None
    for version, key in ((1, "new"), (2, "old")):
        with pytest.raises(SchemaVersionError):
            await memory.get(name, key, "semantic", schema_version=version)
    with pytest.raises(SchemaVersionError):
        await memory.get_by_id(old.id, schema_version=2)
    page = await memory.query(namespace=name, schema_version=2)
    assert ([one.key for one in page], page.total) == (["new"], 2)


async def test_a_reader_of_shared_state_names_a_version(world: World) -> None:
    client, team = world.client(fresh("chief")), fresh("team")
    scope = f"team:{team}"
    pattern = {"version": "1.0.0", "key_pattern": "c*"}
    await client.value_schemas.put(f"shared/team/{team}", "count", FIRST, **pattern)
    with pytest.raises(SchemaViolationError):
        await client.shared.set("c1", {"n": "x"}, scope)
    await client.shared.set("c1", {"n": 1}, scope)
    await client.shared.set("free", {"n": "x"}, scope)
    assert (await client.shared.get("c1", scope, schema_version=1)).value == {"n": 1}
    assert [one.key for one in await client.shared.list(scope, schema_version=1)] == ["c1"]
    with pytest.raises(SchemaVersionError):
        await client.shared.get("free", scope, schema_version=1)
