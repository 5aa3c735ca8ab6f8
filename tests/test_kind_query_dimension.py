"""A dimension of queries costs the file of its kind and nothing else: this file.

A made-up kind declares the instants between which a tenancy holds. Queries for what holds at an
instant work over HTTP, in the SDK and on the command line, in every tier, also for sealed entries,
and the store finds the entries by index.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import httpx
import msgspec
import pytest
from click.testing import CliRunner

from memorywall.cli.main import commands
from memorywall.expressions.entry_fields import ENTRY_FIELDS
from memorywall.expressions.evaluate import evaluate
from memorywall.expressions.parser import parse
from memorywall.kinds.indexed import IndexedField
from memorywall.kinds.registry import register_kind
from memorywall.kinds.spec import KindSpec
from memorywall.records.condition import Condition
from memorywall.records.decision import VisibilityFilter
from memorywall.records.filter import EntryFilter
from memorywall.sdk.client import AsyncClient
from memorywall.service.entries import conditions
from memorywall.service.entries.value_index import with_index
from memorywall.storage.postgres.search import _plan as plan_on_postgres
from memorywall.storage.sqlite.search import plan as plan_on_sqlite
from tests.cli.shell import new_directory
from tests.http.checks import MEMORY, assert_problem, make
from tests.support.backend import database_of, environment_of, is_on_file
from tests.support.extent import chosen_seed, extent
from tests.support.service import RunningService
from tests.support.stored import rows

pytestmark = pytest.mark.anyio


class Tenancy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who lives where, and from when until when."""

    tenant: str
    valid_from: str | None = None
    valid_until: str | None = None
    rent: Any = None
    house: dict[str, Any] = {}


TENANCY = KindSpec(
    name="tenancy",
    schema=Tenancy,
    description="A tenancy of a house.",
    indexed=(
        IndexedField("value.valid_from", since=1, is_instant=True),
        IndexedField("value.valid_until", since=1, is_instant=True),
        IndexedField("value.rent", since=1),
        IndexedField("value.house.city", since=1),
    ),
)
TIERS = ("working", "episodic", "semantic", "procedural", "session", "shared")
SHARED = "shared/agent/ada"
"""Shared state has namespaces of its own."""


def valid_at(instant: str) -> str:
    after = f'not exists value.valid_until or value.valid_until > "{instant}"'
    return f'value.valid_from <= "{instant}" and ({after})'


def _tenancy(tenant: str, first: str, last: str | None = None) -> dict[str, Any]:
    return {"tenant": tenant, "valid_from": first, "valid_until": last}


# These are valid in this order.
ANN = _tenancy("ann", "2025-01-01T00:00:00Z", "2025-06-30T22:00:00-02:00")
BOB = _tenancy("bob", "2025-07-01T02:00:00+02:00", "2026-01-01T00:00:00.000Z")
EVE = _tenancy("eve", "2026-01-01T00:00:00Z")
ANSWERS = {
    "2024-12-31T23:59:59Z": [],
    "2025-01-01T01:00:00+01:00": ["ann"],
    "2025-06-30T23:59:59.999Z": ["ann"],
    "2025-07-01T00:00:00Z": ["bob"],
    "2026-06-01T00:00:00Z": ["eve"],
}


@pytest.fixture(autouse=True)
def tenancy() -> Iterator[None]:
    with register_kind(TENANCY):
        yield


@pytest.fixture
async def ada(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("ada") as client:
        yield client


async def _found(client: httpx.AsyncClient, where: str, **asked: str) -> list[str]:
    query = {"kind": "tenancy", "where": where, "order_by": "key", **asked}
    response = await client.get(MEMORY, params=query)
    assert response.status_code == 200, response.text
    return [one["key"] for one in response.json()["entries"]]


@pytest.mark.parametrize("sensitivity", ["internal", "restricted"])
@pytest.mark.parametrize("tier", TIERS)
async def test_what_is_valid_at_an_instant_is_found_over_http(
    service: RunningService,
    ada: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    tier: str,
    sensitivity: str,
) -> None:
    namespace = SHARED if tier == "shared" else "invoices"
    place = {"memory_type": tier, "namespace": namespace}
    for value in (ANN, BOB, EVE):
        fields = {**place, "kind": "tenancy", "sensitivity": sensitivity}
        await make(ada, value["tenant"], value=value, **fields)
        await make(ada, f"free {value['tenant']}", value=value, **place)
    for instant, tenants in ANSWERS.items():
        assert await _found(ada, valid_at(instant)) == tenants
        assert await _found(ada, valid_at(instant), namespace=namespace) == tenants
        assert await _found(ada, valid_at(instant), namespace="elsewhere") == []
    # No more entries are read than have a row in the range, sealed or not.
    monkeypatch.setattr(conditions, "MOST_SCANNED", 1)
    starts = 'value.valid_from > "2025-01-02T00:00:00Z" and value.valid_from < "2025-12-01T00:00Z"'
    assert await _found(ada, starts) == ["bob"]
    assert await _found(ada, 'value.valid_from = "2025-07-01T00:00:00Z"') == ["bob"]
    assert await _found(ada, 'value.valid_until >= "2026-01-01T00:00:00Z"') == ["bob"]
    assert await _found(
        ada, 'value.valid_from in ["2025-01-01T00:00:00Z", "2024-01-01T00:00Z"]'
    ) == ["ann"]
    refused = await ada.get(MEMORY, params={"kind": "tenancy", "where": 'value.tenant = "eve"'})
    assert_problem(refused, 400, "SCAN_LIMIT")
    statement = "SELECT target FROM edges WHERE relation = ? ORDER BY target"
    instants = rows(service, statement, "path:tenancy:value.valid_until")
    assert [target for (target,) in instants] == [
        "t2025-07-01T00:00:00.000Z",
        "t2026-01-01T00:00:00.000Z",
    ]


async def test_instants_are_checked_and_stored_in_one_form(ada: httpx.AsyncClient) -> None:
    made = await make(ada, value=BOB, kind="tenancy", memory_type="semantic")
    assert made["value"]["valid_from"] == "2025-07-01T00:00:00.000Z"
    path = f"{MEMORY}/{made['id']}"
    change = {"value": {**BOB, "valid_from": "2025-08-01T00:00:00+01:00"}}
    changed = (await ada.patch(path, json=change, headers={"If-Match": "1"})).json()
    assert changed["value"]["valid_from"] == "2025-07-31T23:00:00.000Z"
    assert await _found(ada, 'value.valid_from = "2025-07-01T00:00:00Z"') == []
    assert await _found(ada, 'value.valid_from = "2025-07-31T23:00:00Z"') == ["progress"]
    for wrong in ("2025-07-32", "2025-07", "soon", ""):
        body = {"value": {**BOB, "valid_from": wrong, "valid_until": wrong}}
        refused = await ada.patch(path, json=body, headers={"If-Match": "2"})
        detail = assert_problem(refused, 422, "VALIDATION_ERROR")["detail"]
        assert "`value.valid_from`, `value.valid_until`" in detail
        asked = {"kind": "tenancy", "where": f'value.valid_from > "{wrong}"'}
        problem = assert_problem(await ada.get(MEMORY, params=asked), 400, "INVALID_EXPRESSION")
        assert problem["column"] == 20
    # Without the kind the same condition compares texts.
    free = {"where": 'value.valid_from > "2025-07-31"'}
    assert (await ada.get(MEMORY, params=free)).json()["total"] == 1
    # A date is a whole day in UTC.
    body = {"value": {**BOB, "valid_from": "2025-09-01", "valid_until": "2025-12-31"}}
    dated = (await ada.patch(path, json=body, headers={"If-Match": "2"})).json()["value"]
    assert dated["valid_from"] == "2025-09-01T00:00:00.000Z"
    assert dated["valid_until"] == "2026-01-01T00:00:00.000Z"
    assert await _found(ada, 'value.valid_from = "2025-09-01"') == ["progress"]
    assert await _found(ada, 'value.valid_from > "2025-09-01"') == []


async def test_what_is_valid_at_an_instant_is_found_with_the_sdk(service: RunningService) -> None:
    transport = httpx.ASGITransport(service.app)
    key = await service.key("ada")
    async with AsyncClient("http://memorywall.test", key, transport=transport) as client:
        for value in (ANN, BOB, EVE):
            place = ("tenancies", value["tenant"])
            await client.memory.set(*place, value, "semantic", kind="tenancy")
        for instant, tenants in ANSWERS.items():
            page = await client.memory.query(kind="tenancy", where=valid_at(instant))
            assert [one.key for one in page] == tenants


def test_what_is_valid_at_an_instant_is_found_on_the_command_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "ada")

    def run(*words: str) -> str:
        place = ("--data", str(data), "--agent", "ada")
        ran = CliRunner(env=environment_of(data)).invoke(commands, [*words, *place])
        assert ran.exit_code == 0, ran.output
        return ran.stdout

    for value in (ANN, BOB, EVE):
        name = ("set", "tenancies", value["tenant"], json.dumps(value))
        run(*name, "--type", "semantic", "--kind", "tenancy")
    for instant, tenants in ANSWERS.items():
        printed = run("query", "--kind", "tenancy", "--where", valid_at(instant), "--json")
        assert [one["key"] for one in json.loads(printed)["entries"]] == tenants


@pytest.mark.parametrize("has_work", [False, True])
async def test_the_store_finds_a_range_by_its_index(
    service: RunningService, ada: httpx.AsyncClient, has_work: bool
) -> None:
    for number in range(20):
        value = _tenancy("ann", f"2025-01-{number + 1:02}T00:00:00Z")
        await make(ada, f"k{number}", value=value, kind="tenancy", memory_type="semantic")
    text = 'value.valid_from >= "2025-01-03T00:00:00Z" and value.valid_from < "2025-01-05T00:00Z"'
    where = parse(text, ENTRY_FIELDS, TENANCY.instants)
    wanted = EntryFilter(tenant="default", kind="tenancy", where=where, limit=9)
    wanted = await with_index(None, wanted, where)  # type: ignore[arg-type]
    within = VisibilityFilter(owners=("ada",), episodic=("eve",) if has_work else ())
    now = service.services.now()
    if is_on_file():
        query = plan_on_sqlite(lambda *_: [], wanted, within, now)
        assert query is not None
        statement, bindings = query.page()
        plan = [row[3] for row in rows(service, f"EXPLAIN QUERY PLAN {statement}", *bindings)]
        bounds = "tenant=? AND relation=? AND target>? AND target<?"
        assert any("edges" in line and bounds in line for line in plan), plan
        assert any("entries_by_id (tenant=? AND id=?)" in line for line in plan), plan
        assert not any(line.startswith("SCAN e") for line in plan), plan
    else:
        planned = plan_on_postgres(wanted, within, now)
        assert planned is not None
        statement, bindings = planned.page(wanted)
        database = database_of(service.services.settings.sqlite_path.parent)
        assert database is not None
        # The tables are so small that scanning them costs less.
        database.run(database.connection.execute("SET enable_seqscan = off"))
        plan = [row[0] for row in rows(service, f"EXPLAIN {statement}", *bindings)]
        database.run(database.connection.execute("RESET enable_seqscan"))
        bounds = "(target >= 't2025-01-03T00:00:00.000Z'::text)"
        assert any("edges_pkey" in line for line in plan), plan
        assert any("Index Cond" in line and bounds in line for line in plan), plan
        assert not any("Seq Scan" in line for line in plan), plan


# Earlier versions


async def test_entries_of_a_version_without_the_path_are_found(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = await service.agent("ada")

    def spec(version: int, *indexed: IndexedField) -> KindSpec:
        return KindSpec(
            name="lease_of_flat",
            version=version,
            schema=Tenancy,
            description="A tenancy of a flat.",
            indexed=indexed,
            upgrades={number: lambda value: value for number in range(1, version)},
        )

    async def found(where: str) -> list[str]:
        query = {"kind": "lease_of_flat", "where": where, "order_by": "key"}
        return [one["key"] for one in (await ada.get(MEMORY, params=query)).json()["entries"]]

    at_start = 'value.valid_from = "2025-01-01T00:00:00Z"'
    value = _tenancy("ann", "2025-01-01T00:00:00.000Z")
    with register_kind(spec(1)):
        for key in ("a", "b"):
            await make(ada, key, value=value, kind="lease_of_flat", memory_type="semantic")
        assert await found('value.valid_from = "2025-01-01T00:00:00.000Z"') == ["a", "b"]
    with register_kind(spec(2, IndexedField("value.valid_from", since=2, is_instant=True))):
        await make(ada, "c", value=value, kind="lease_of_flat", memory_type="semantic")
        assert await found(at_start) == ["a", "b", "c"]
        page = (await ada.get(MEMORY, params={"kind": "lease_of_flat"})).json()["entries"]
        for entry in page:
            if entry["key"] != "c":
                path = f"{MEMORY}/{entry['id']}"
                reply = await ada.patch(path, json={"tags": ["x"]}, headers={"If-Match": "1"})
                assert reply.status_code == 200
        assert await found(at_start) == ["a", "b", "c"]
        (count,) = rows(service, "SELECT count(*) FROM edges WHERE relation LIKE 'path:%'")
        assert count == (3,)
        # Entries that have been written again are read only if they have the row.
        monkeypatch.setattr(conditions, "MOST_SCANNED", 0)
        assert await found('value.valid_from = "2025-02-02T00:00:00Z"') == []


@pytest.mark.parametrize(
    ("path", "since"), [("valid_from", 1), ("value", 1), ("value.a b", 1), ("value.colour", 1),
                        ("value.rent", 0), ("value.rent", 2)],
)  # fmt: skip
def test_a_wrong_declaration_is_refused(path: str, since: int) -> None:
    with pytest.raises(ValueError, match=path.partition(".")[2] or "below `value`"):
        KindSpec(
            name="wrong",
            schema=Tenancy,
            description="",
            indexed=(IndexedField(path, since=since),),
        )


# Against the evaluation in memory


class _Model:
    """The values as they were sent, and what a query of them finds without a store."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.values: dict[str, dict[str, Any]] = {}

    def add(self) -> tuple[str, dict[str, Any]]:
        """Returns the key and the value of another entry."""
        chance = self._chance
        value: dict[str, Any] = {"tenant": "t"}
        for name in ("valid_from", "valid_until"):
            if chance.random() < 0.8:
                value[name] = None if chance.random() < 0.2 else self.instant()
        for name, holder in (("rent", value), ("city", value.setdefault("house", {}))):
            if chance.random() < 0.8:
                others = [None, True, "a", "\0", 1, 1.0, 2, [1], {"a": 1}, self.instant()]
                holder[name] = chance.choice(others)
        key = f"k{len(self.values):03}"
        self.values[key] = value
        return key, value

    def instant(self) -> str:
        """Returns one of few instants, with any offset."""
        moment = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=self._chance.randrange(12))
        offset = timezone(timedelta(minutes=self._chance.choice([0, 60, -330, 720])))
        return moment.astimezone(offset).isoformat()

    def condition(self) -> str:
        """Returns a condition, mostly on indexed paths."""
        chance = self._chance
        parts = []
        for _ in range(chance.randrange(1, 4)):
            name = chance.choice(["valid_from", "valid_from", "valid_until", "rent", "house.city"])
            sign = chance.choice(["=", "<", "<=", ">", ">=", "in"])
            is_instant = name.startswith("valid")
            literals = [f'"{self.instant()}"', f'"{self.instant()}"']
            literals += ["1", "2.5"] if not is_instant else ["1"]
            literals += ['"a"'] if not is_instant else []
            literals += ["null", "true"] if sign in ("=", "in") else []
            one = chance.choice(literals)
            right = f"[{one}, {chance.choice(literals)}]" if sign == "in" else one
            parts.append(f"value.{name} {sign} {right}")
        text = chance.choice([" and ", " and ", " or "]).join(parts)
        return f"not ({text})" if chance.random() < 0.1 else text

    def find(self, where: Condition) -> list[str]:
        return [
            key
            for key, value in self.values.items()
            if evaluate(where, {"value": self._compared(value)}.get)
        ]

    def _compared(self, value: dict[str, Any]) -> dict[str, Any]:
        found = dict(value)
        for name in ("valid_from", "valid_until"):
            if (text := value.get(name)) is not None:
                moment = datetime.fromisoformat(text).astimezone(UTC)
                found[name] = moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        return found


async def test_queries_find_what_the_evaluation_in_memory_finds(ada: httpx.AsyncClient) -> None:
    chance = Random(chosen_seed())
    model = _Model(chance)
    elsewhere = set()
    for _ in range(60):
        key, value = model.add()
        sensitivity = chance.choice(["internal", "internal", "confidential"])
        tier = chance.choice(TIERS)
        if tier == "shared":
            elsewhere.add(key)
        await make(
            ada, key, value=value, kind="tenancy", memory_type=tier, sensitivity=sensitivity,
            namespace=SHARED if tier == "shared" else "tenancies",
        )  # fmt: skip
    hits = 0
    for _ in range(extent(80, long=2_000)):
        text = model.condition()
        expected = model.find(parse(text, ENTRY_FIELDS, TENANCY.instants))
        asked = {}
        if chance.random() < 0.3:
            asked = {"namespace": "tenancies"}
            expected = [key for key in expected if key not in elsewhere]
        assert await _found(ada, text, **asked) == expected, text
        hits += 0 < len(expected) < len(model.values)
    assert hits > 20
