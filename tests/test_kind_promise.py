"""A kind is one file: this one. Everything else about it follows from the table of kinds.

The kind stands in this test alone. Creating, reading, changing and deleting it over HTTP and with
the SDK, its schema, lists by status, search by its text, edges, due instants, export and import,
copies to another store, `verify` and erasure work without another line anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from memorywall.jobs.copy import OverwritePolicy, copy
from memorywall.kinds.registry import register_kind
from memorywall.kinds.spec import Edge, KindSpec
from memorywall.records.principal import Permission
from memorywall.records.tier import Tier
from memorywall.sdk.client import AsyncClient
from memorywall.storage.postgres.transfer import PostgresCopySource
from memorywall.storage.sqlite.store import SqliteStore
from memorywall.storage.sqlite.transfer import SqliteCopySource, SqliteCopyTarget
from memorywall.storage.transfer import CopySource
from tests.http.checks import MEMORY, assert_problem
from tests.support.backend import is_on_file, store_of
from tests.support.damage import verified
from tests.support.service import RunningService, open_service
from tests.support.stored import rows

pytestmark = pytest.mark.anyio

TENANT = "default"
MARK = "zanzibar-quokka"


class Voyage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ship's voyage, in its second version: `ship` was `vessel` in the first."""

    ship: str
    port: str
    log: str = ""
    phase: str = "planned"
    crew: list[str] = []
    sails_at: str | None = None


def _edges(voyage: Voyage) -> Iterator[Edge]:
    yield Edge("calls_at", voyage.port)
    for member in voyage.crew:
        yield Edge("carries", member, is_id=True)


def _from_first_version(value: dict[str, Any]) -> dict[str, Any]:
    return {"ship" if name == "vessel" else name: part for name, part in value.items()}


VOYAGE = KindSpec(
    name="voyage",
    version=2,
    schema=Voyage,
    description="A voyage of a ship.",
    tier=Tier.SEMANTIC,
    statuses=("planned", "under_way", "done"),
    status=lambda voyage: voyage.phase,
    text=lambda voyage: f"{voyage.ship} {voyage.log}",
    edges=_edges,
    due=lambda voyage: voyage.sails_at,
    upgrades={1: _from_first_version},
)


@pytest.fixture(autouse=True)
def voyage() -> Iterator[None]:
    with register_kind(VOYAGE):
        yield


@pytest.fixture
async def ada(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("ada", permissions=tuple(Permission)) as client:
        yield client


def _draft(key: str = "first", **value: Any) -> dict[str, Any]:
    return {
        "namespace": "fleet",
        "key": key,
        "memory_type": "semantic",
        "kind": "voyage",
        "value": {"ship": "Beagle", "port": "Lima", **value},
    }


async def _make(client: httpx.AsyncClient, key: str = "first", **value: Any) -> dict[str, Any]:
    response = await client.post(MEMORY, json=_draft(key, **value))
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


async def test_kind_is_created_read_changed_and_deleted_over_http(ada: httpx.AsyncClient) -> None:
    made = await _make(ada)
    assert (made["kind"], made["kind_version"], made["status"]) == ("voyage", 2, "planned")
    path = f"{MEMORY}/{made['id']}"
    assert (await ada.get(path)).json() == made
    value = {**made["value"], "phase": "under_way"}
    changed = await ada.patch(path, json={"value": value}, headers={"If-Match": "1"})
    assert changed.json()["status"] == "under_way"
    assert (await ada.get(path, params={"version": 1})).json()["status"] == "planned"
    for wrong, named in (
        ({**value, "keel": 1, "mast": 2}, "`value.keel`, `value.mast`"),
        ({**value, "ship": 5}, "`value.ship` must be a text"),
    ):
        refused = await ada.patch(path, json={"value": wrong}, headers={"If-Match": "2"})
        assert named in assert_problem(refused, 422)["detail"]
    assert (await ada.delete(path)).status_code == 204
    assert (await ada.get(path)).status_code == 404


async def test_kind_is_written_and_read_with_the_sdk(service: RunningService) -> None:
    key = await service.key("ada")
    transport = httpx.ASGITransport(service.app)
    async with AsyncClient("http://memorywall.test", key, transport=transport) as client:
        value = {"ship": "Beagle", "port": "Lima"}
        await client.memory.set("fleet", "first", value, "semantic", kind="voyage")
        entry = await client.memory.get("fleet", "first")
        assert entry is not None
        assert (entry.kind, entry.status) == ("voyage", "planned")
        await client.memory.set("fleet", "first", {**value, "phase": "done"}, "semantic")
        page = await client.memory.query(kind="voyage", status="done")
        assert [one.key for one in page] == ["first"]
        assert (await client.schema("voyage")).schema["title"] == "voyage"


async def test_schema_is_served(ada: httpx.AsyncClient) -> None:
    response = (await ada.get("/api/v1/schemas/voyage")).json()
    assert response["kind"]["memory_type"] == "semantic"
    assert response["schema"]["required"] == ["ship", "port"]
    assert response["schema"]["additionalProperties"] is False
    listed = (await ada.get("/api/v1/schemas")).json()["schemas"]
    assert "voyage" in [one["kind"] for one in listed]
    document = (await ada.get("/openapi.json")).json()
    assert document["components"]["schemas"]["kind_voyage"]["title"] == "voyage"


async def test_kind_is_listed_by_status(ada: httpx.AsyncClient) -> None:
    await _make(ada)
    done = await _make(ada, "second", phase="done")
    found = await ada.get(MEMORY, params={"kind": "voyage", "status": "done"})
    assert [one["id"] for one in found.json()["entries"]] == [done["id"]]


async def test_kind_is_found_by_its_text_and_by_nothing_else(ada: httpx.AsyncClient) -> None:
    made = await _make(ada, log="rounded the cape in a gale")
    search = f"{MEMORY}/search"
    for query, expected in (("gale at the cape", [made["id"]]), ("Lima", [])):
        found = (await ada.post(search, json={"query": query, "kind": "voyage"})).json()
        assert [one["entry"]["id"] for one in found["results"]] == expected


async def test_edges_are_walked(service: RunningService, ada: httpx.AsyncClient) -> None:
    one = await _make(ada)
    two = await _make(ada, "second", crew=[one["id"]])

    async def sources(relation: str, target: str) -> list[str]:
        return await service.services.store.read(
            TENANT, lambda to: to.edges.sources(relation, [target], 9)
        )

    assert await sources("calls_at", "Lima") == [one["id"], two["id"]]
    assert await sources("carries", one["id"]) == [two["id"]]


async def test_due_instant_is_met(service: RunningService, ada: httpx.AsyncClient) -> None:
    made = await _make(ada, sails_at="2026-02-02T03:00:00Z")

    async def due() -> list[str]:
        now = service.services.now()
        found = await service.services.store.read(TENANT, lambda to: to.edges.due(now, 9))
        return [one.id for one in found]

    assert await due() == []
    service.clock.advance(3600)
    assert await due() == [made["id"]]


async def test_older_version_is_upgraded_when_it_is_read(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    made = await _make(ada)

    async def write_as_before(to: Any) -> None:
        entry = await to.entries.get(made["id"], service.services.now())
        old = msgspec.structs.replace(
            entry, kind_version=1, version=2, value=b'{"vessel":"Beagle","port":"Lima"}', size=33
        )
        await to.entries.replace(entry, old)

    await service.services.store.write(TENANT, write_as_before)
    shown = (await ada.get(f"{MEMORY}/{made['id']}")).json()
    assert shown["value"] == {"port": "Lima", "ship": "Beagle"}
    assert shown["kind_version"] == 2


async def test_kind_is_exported_and_imported(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    await _make(ada, phase="done")
    lines = (await ada.get(f"{MEMORY}/export", params={"kind": "voyage"})).text.splitlines()
    exported = msgspec.json.decode(lines[0])
    async with await service.agent("bob", "globex") as other:
        fields = ("namespace", "key", "value", "memory_type", "kind")
        created = await other.post(MEMORY, json={name: exported[name] for name in fields})
        assert created.json()["status"] == "done"


async def test_kind_is_copied_verified_and_erased(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    async with (
        open_service(source, erasure_deadline=0.1) as service,
        await service.agent("ada") as ada,
    ):
        made = await _make(ada, log=MARK, port=MARK, sails_at="2027-01-01T00:00:00Z")
        value = {**made["value"], "log": f"{MARK} again"}
        path = f"{MEMORY}/{made['id']}"
        await ada.patch(path, json={"value": value}, headers={"If-Match": "1"})
        await _copy(source, target)
        problems = verified(service.services.settings.sqlite_path).problems
        assert problems == []
        (edge,) = rows(service, "SELECT target FROM edges WHERE relation = 'calls_at'")
        assert edge == (MARK,)
        await ada.delete(path)
        for table in ("edges", "entry_history", "entries"):
            assert rows(service, f"SELECT count(*) FROM {table}") == [(0,)]
        async with asyncio.timeout(30):
            while not service.services.store.is_erasure_complete():
                await asyncio.sleep(0.02)
    if is_on_file():
        left = [one.name for one in source.rglob("*") if MARK.encode() in _content(one)]
        assert left == []
    copied = SqliteStore.open(target / "copied.db")
    found = await copied.read(TENANT, lambda to: to.edges.sources("calls_at", [MARK], 9))
    assert found == [made["id"]]
    versions = await copied.read(TENANT, lambda to: to.history.versions(made["id"]))
    assert [one.version for one in versions] == [1]
    await copied.close()


async def _copy(source: Path, target: Path) -> None:
    url = store_of(source)
    origin: CopySource = (
        SqliteCopySource.open(source / "memory.db")
        if url is None
        else (await PostgresCopySource.open(url))
    )
    target.mkdir()
    copied = SqliteCopyTarget.open(target / "copied.db")
    report = await copy(origin, copied, OverwritePolicy.EMPTY_ONLY)
    assert report.agree
    await copied.close()
    await origin.close()


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
