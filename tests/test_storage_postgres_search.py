"""The plans that PostgreSQL keeps for the statements about entries.

A plan is made once for a connection and used from then on, so one that was made when there was
nothing, or next to nothing, must not read everything once there is much. How much a statement read
is what the database itself says it did, so nothing here depends on how fast anything is.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import asyncpg
import msgspec
import pytest

from memorywall.records.decision import VisibilityFilter
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.storage.postgres.connection import make_pool
from memorywall.storage.postgres.search import search
from memorywall.storage.postgres.session import StatementSession
from memorywall.storage.postgres.write_buffer import WriteBuffer
from memorywall.storage.rows import entry_from_row
from memorywall.storage.statements import load
from tests.support.backend import own_database

pytestmark = pytest.mark.anyio

TENANT = "acme"
NOW = "2026-02-02T02:40:00.000Z"
FEW, MANY = 1_000, 20_000
# Entry n is owned by agent n % 4, has the tags n % 25 and (n / 25) % 25, lies in a task of 50 and
# an intent of 200. So each agent owns 5,000, of which 200 have one tag and 8 have two.
_FILL = """
INSERT INTO entries (tenant, id, tier, owner, agent_id, namespace, key, task_id, intent_id, tags,
    expires_at, version, pinned, priority, sensitivity, created_at, updated_at, accessed_at,
    created_by, provenance, size, kind_version, state, listed, subjects, edges, value)
SELECT $1, 'mem_' || lpad(n::text, 26, '0'),
    CASE WHEN n % 100 < 4 THEN 'episodic' ELSE 'working' END, 'agent-' || n % 4, 'agent-' || n % 4,
    'space-' || n % 16, 'key-' || n, 'task-' || n / 50, 'intent-' || n / 200,
    format('["tag-%s","tag-%s"]', n % 25, n / 25 % 25),
    CASE WHEN n % 1000 = 7 THEN '2026-01-01T00:00:00.000Z' END, 1, 0, 1, 'internal', $4, $4, $4,
    'agent', '{"principal":"agent","kind":"agent"}', 100, 0, 'live', 1, '[]', '[]',
    convert_to(rpad('{}', 100), 'UTF8')
FROM generate_series($2::integer, $3::integer) AS n
"""
_FILL_TAGS = """
INSERT INTO entry_tags (tenant, owner, tag, entry)
SELECT DISTINCT $1, 'agent-' || n % 4, 'tag-' || tag, 'mem_' || lpad(n::text, 26, '0')
FROM generate_series($2::integer, $3::integer) AS n,
    LATERAL (VALUES (n % 25), (n / 25 % 25)) AS tags (tag)
"""
_ONE_OF_HERS = f"mem_{MANY // 2 + 1:026d}"
_CHANGED = f"mem_{2:026d}"


@dataclass(frozen=True, kw_only=True)
class _Case:
    """A search.

    found: whether it finds an entry, by its number, unless that is over
    reads: how many rows a statement of it may read
    """

    fields: dict[str, Any]
    reach: VisibilityFilter
    found: Callable[[int], bool]
    reads: int

    @property
    def total(self) -> int:
        """How many it finds, on one page if that is all it is asked for."""
        found = sum(number % 1000 != 7 and self.found(number) for number in range(1, MANY + 1))
        return found if self.fields.get("counted", True) else self.fields["limit"]


def _tagged(number: int, *tags: int) -> bool:
    return {*tags} <= {number % 25, number // 25 % 25}


def _hers(number: int) -> bool:
    return number % 4 == 1


def _working(number: int) -> bool:
    return number % 100 >= 4


def _both(number: int) -> bool:
    return _hers(number) and _tagged(number, 3, 17)


_HER = VisibilityFilter(owners=("agent-1",))
_PAGE = {"limit": 20, "counted": False}
_TWO_TAGS: dict[str, Any] = {"tags": ("tag-3", "tag-17")}
_CASES = {
    "two tags": _Case(fields=_TWO_TAGS, reach=_HER, found=_both, reads=900),
    "two tags of a tier": _Case(
        fields={**_TWO_TAGS, "tiers": (Tier.WORKING,)},
        reach=_HER,
        found=lambda number: _both(number) and _working(number),
        reads=900,
    ),
    "three tags": _Case(
        fields={"tags": ("tag-3", "tag-17", "tag-5")}, reach=_HER, found=lambda _: False, reads=1300
    ),
    "a page of one tag": _Case(
        fields={"tags": ("tag-3",), **_PAGE}, reach=_HER, found=_hers, reads=100
    ),
    "any tag": _Case(
        fields={"tags_any": ("tag-3", "tag-17")},
        reach=_HER,
        found=lambda number: _hers(number) and (_tagged(number, 3) or _tagged(number, 17)),
        reads=2500,
    ),
    "tags in shared memory too": _Case(
        fields=_TWO_TAGS,
        reach=VisibilityFilter(owners=("agent-1",), namespaces=("space-1", "space-2")),
        found=_both,
        reads=900,
    ),
    "a page of a tier": _Case(
        fields={"tiers": (Tier.WORKING,), **_PAGE}, reach=_HER, found=_hers, reads=50
    ),
    "a page of every tier": _Case(fields=_PAGE, reach=_HER, found=_hers, reads=150),
    "the page before an entry": _Case(
        fields={"before": _ONE_OF_HERS, **_PAGE}, reach=_HER, found=_hers, reads=150
    ),
    "a name": _Case(
        fields={"namespace": "space-1", "key": "key-5201"},
        reach=_HER,
        found=lambda number: number == 5201,
        reads=10,
    ),
    "a task": _Case(
        fields={"task_id": "task-7"},
        reach=_HER,
        found=lambda number: _hers(number) and number // 50 == 7,
        reads=120,
    ),
    "a task, of others too": _Case(
        fields={"task_id": "task-7"},
        reach=VisibilityFilter(owners=("agent-1",), tasks=("task-7",)),
        found=lambda number: number // 50 == 7,
        reads=120,
    ),
    "an intent": _Case(
        fields={"intent_id": "intent-7"},
        reach=_HER,
        found=lambda number: _hers(number) and number // 200 == 7,
        reads=450,
    ),
    "what work opens": _Case(
        fields=_PAGE,
        reach=VisibilityFilter(
            owners=("agent-1",), tasks=("task-7", "task-9"), episodic=("agent-2",)
        ),
        found=_hers,
        reads=350,
    ),
    "two tags of what work opens": _Case(
        fields=_TWO_TAGS,
        reach=VisibilityFilter(owners=("agent-1",), tasks=("task-7",), intents=("intent-9",)),
        found=lambda number: (
            _both(number)
            or (
                _working(number)
                and _tagged(number, 3, 17)
                and (number // 50 == 7 or number // 200 == 9)
            )
        ),
        reads=4500,
    ),
}
_STATEMENTS: dict[str, tuple[list[Any], int]] = {
    # Those of `counts.sql`.
    "owner": (["agent-1", "working", NOW], 100),
    "task": (["working", "task-7", NOW], 120),
    "namespace": (["semantic", "space-1", NOW], 5),
    # Those of `entries.sql`.
    "get_many": ([[_ONE_OF_HERS, "mem_1", "mem_2"]], 10),
    "find": (["working", "agent-1", "space-1", "key-5201", ""], 5),
    "expired": ([NOW, 5], 20),
    "first_to_evict_lru_episodic": (["agent-1", "episodic", None, 1, None, NOW, ["turn"], None], 5),
    "of_task": (["working", "task-7"], 120),
    "oldest": (["agent-1", "working", NOW], 5),
    "newest": (["agent-1", "working", NOW], 5),
    "touch": ([[_ONE_OF_HERS, "mem_1"], [NOW, NOW]], 20),
    "remove": ([_ONE_OF_HERS], 20),
}
_SQL = {**load("postgres", "counts"), **load("postgres", "entries")}


class _Recorder:
    """A connection that keeps the statements it runs."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.ran: list[tuple[str, tuple[Any, ...]]] = []

    async def fetch(self, query: str, *args: Any) -> list[Any]:
        self.ran.append((query, args))
        found: list[Any] = await self._connection.fetch(query, *args)
        return found

    async def execute(self, query: str, *args: Any) -> str:
        return str(await self._connection.execute(query, *args))

    def is_closed(self) -> bool:
        return bool(self._connection.is_closed())


class _Bench:
    """A connection as a server has it, and what its statements read."""

    def __init__(self, application: Any, owner: Any) -> None:
        self._application = application
        self._owner = owner

    async def fill(self, first: int, last: int) -> None:
        """Adds these entries, past every access rule."""
        await self._owner.execute(_FILL, TENANT, first, last, NOW)
        await self._owner.execute(_FILL_TAGS, TENANT, first, last)

    async def analyse(self) -> None:
        """Lets the planner know how much there is now."""
        await self._owner.execute("ANALYZE entries, entry_tags")

    async def search(self, case: _Case) -> tuple[int, list[tuple[str, tuple[Any, ...]]]]:
        """How many are found, and what was run to find them."""
        recorder = _Recorder(self._application)
        wanted = EntryFilter(**{"tenant": TENANT, "limit": None, **case.fields})
        _, total = await search(StatementSession(recorder, TENANT), wanted, case.reach, NOW)
        return total, recorder.ran

    async def replace(self) -> list[tuple[str, tuple[Any, ...]]]:
        """What is run to change one entry, and to take a tag from it."""
        recorder = _Recorder(self._application)
        session = StatementSession(recorder, TENANT)
        (row,) = await session.rows(_SQL["get_many"], TENANT, [_CHANGED])
        old = entry_from_row(row)
        new = msgspec.structs.replace(old, version=old.version + 1, tags=old.tags[:-1])
        pending = WriteBuffer(session)
        pending.replace(old, new)
        await pending.flush()
        _, *changes = recorder.ran
        return changes

    async def read(self, statement: str, bindings: tuple[Any, ...]) -> tuple[int, str]:
        """How many rows a statement reads to answer, by its kept plan, and that plan."""
        name = await self.keep(statement)
        literals = ", ".join(map(_literal, bindings))
        text = await self._application.fetchval(
            f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE {name}({literals})"
        )
        plan: dict[str, Any] = json.loads(text)[0]["Plan"]
        return sum(_rows_read(node) for node in _nodes(plan)), json.dumps(plan, indent=1)

    async def keep(self, statement: str) -> str:
        """Prepares a statement, once, and returns its name."""
        name = f"kept_{zlib.crc32(statement.encode())}"
        known = "SELECT count(*) FROM pg_prepared_statements WHERE name = $1"
        if not await self._application.fetchval(known, name):
            await self._application.execute(f"PREPARE {name} AS {statement}")
        return name


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _rows_read(node: dict[str, Any]) -> int:
    """The rows of a table that a node of a plan looked at, as far as it says."""
    if node.get("Relation Name") not in ("entries", "entry_tags", "usage"):
        return 0
    dropped = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    # A walk that steps over what it does not want counts each of its steps.
    steps = node.get("Index Searches", 0)
    return int(node["Actual Loops"] * (node["Actual Rows"] + dropped)) + int(steps)


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list | tuple):
        return _quoted(f"{{{','.join(map(_element, value))}}}")
    return str(value) if isinstance(value, int) else _quoted(value)


def _element(value: Any) -> str:
    """A value within the text of an array."""
    if value is None:
        return "NULL"
    text = rf"\x{value.hex()}" if isinstance(value, bytes) else str(value)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@pytest.fixture
async def bench() -> AsyncIterator[_Bench]:
    """An empty memorywall whose statistics change only when a test wants it."""
    with own_database() as url:
        settings = {"search_path": "memorywall", "row_security": "off"}
        owner = await asyncpg.connect(url, server_settings=settings)
        for table in ("entries", "entry_tags", "usage"):
            await owner.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        connections = await make_pool(url, 1)
        async with connections.use() as application:
            await application.execute(f"SET memorywall.tenant = '{TENANT}'")
            yield _Bench(application, owner)
        await connections.close()
        await owner.close()


async def _read_by_all(bench: _Bench) -> list[str]:
    """Runs every search and every statement, so that each has its plan from now on; returns those
    that read too much, and how they do it."""
    excessive = []
    for name, case in _CASES.items():
        _, ran = await bench.search(case)
        for statement, bindings in ran:
            rows, plan = await bench.read(statement, bindings)
            if rows > case.reads:
                excessive.append(f"{name}: {rows} rows read\n{statement}\n{plan}")
    for name, (given, reads) in _STATEMENTS.items():
        rows, plan = await bench.read(_SQL[name], (TENANT, *given))
        if rows > reads:
            excessive.append(f"{name}: {rows} rows read\n{plan}")
    for statement, bindings in await bench.replace():
        rows, plan = await bench.read(statement, bindings)
        if rows > 20:
            excessive.append(f"a change: {rows} rows read\n{statement}\n{plan}")
    return excessive


async def _check_all(bench: _Bench) -> None:
    for name, case in _CASES.items():
        total, _ = await bench.search(case)
        assert total == case.total, name
    excessive = await _read_by_all(bench)
    assert not excessive, "\n\n".join(excessive)


async def test_plans_made_for_empty_tables_stay_good(bench: _Bench) -> None:
    await bench.fill(2, 2)
    await _read_by_all(bench)
    await bench.fill(3, MANY)
    await bench.fill(1, 1)
    await _check_all(bench)


async def test_plans_made_for_tiny_tables_stay_good(bench: _Bench) -> None:
    """The worst time for a look at the tables: soon after the first entries."""
    await bench.fill(1, FEW)
    await bench.analyse()
    await _read_by_all(bench)
    await bench.fill(FEW + 1, MANY)
    await _check_all(bench)


async def test_plans_made_without_statistics_are_good(bench: _Bench) -> None:
    await bench.fill(1, MANY)
    await _check_all(bench)


async def test_plans_made_with_statistics_are_good(bench: _Bench) -> None:
    await bench.fill(1, MANY)
    await bench.analyse()
    await _check_all(bench)
