"""Stores to copy: one in which everything has happened, and ways to look at all of one.

What is looked at is read from the schema of the database itself, so that a table or a column that
a copy forgets is missed here.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import httpx

from memorywall.jobs.copy import CopyReport, OverwritePolicy, copy
from memorywall.records.entry import VALUE_LIMIT
from memorywall.records.principal import DEFAULT_PERMISSIONS, Permission
from memorywall.records.recall import EntryVector
from memorywall.records.tier import Tier
from memorywall.service.administration.tenants import list_keys, revoke_key
from memorywall.storage.port import Transaction
from memorywall.storage.postgres.transfer import PostgresCopySource, PostgresCopyTarget
from memorywall.storage.sql.record_table import RECORDS
from memorywall.storage.sqlite.transfer import SqliteCopySource, SqliteCopyTarget
from memorywall.storage.transfer import DERIVED, LOCAL, CopySource, CopyTarget
from memorywall_testing.base import NOW
from memorywall_testing.records import make_record
from tests.http.checks import MEMORY, NAMESPACES
from tests.http.files import attach, stored
from tests.support.damage import verified
from tests.support.postgres import fresh_database
from tests.support.postgres_databases import in_own_thread
from tests.support.rounds import sweep
from tests.support.service import RunningService, draft, open_service
from tests.work.crew import CLAIMS, crew_of, ok, remember

Dump = dict[str, Counter[tuple[tuple[str, Any], ...]]]
"""Of each table its rows, each as its columns by name."""

TEXT = 'quo"te \\ \u2028 \u0301e\u0301 \U0001f469\u200d\U0001f4bb \u05d0\u05d1 \uffff ~\x7f'
"""Values that a transfer could damage."""
NAMES = ("a", "B", "é", "x\u0301", "ß", "日本", "\U0001f44d", "~")
"""Names that sort and fold differently from place to place."""
OTHER_TENANT = "gl'obex\\"
ATTACHMENT = 16 * 1024 * 1024
MODEL = "static:one"
"""Under which vectors are kept."""
_NOT_DUMPED = LOCAL | DERIVED - {"entry_tags", "usage", "edges"} | {"migrations"}


async def fill(service: RunningService, *, attachment: int = ATTACHMENT) -> None:
    """Does everything once, in two tenants."""
    crew = await crew_of(service)
    await crew.coordinate(guardrails={"max_working_memory_per_task": 50})
    _, taken = await crew.working("a", name="扫描 é")
    await remember(crew.a, taken.task["id"], "note", taken.token, tags=["now", "é"])
    await crew.task("wait", assigned_agent="b")
    ok(await crew.a.post(CLAIMS, json={"key": "ticket", "purpose": "日本 é"}), 201)
    released = ok(await crew.b.post(CLAIMS, json={"key": "done"}), 201)
    ok(await crew.b.delete(f"{CLAIMS}/{released['id']}"), 204)
    needing = {"title": "Close", "depends_on": [crew.intent["id"]]}
    ok(await crew.chief.post("/api/v1/intents", json=needing), 201)
    line = {"principal_id": "b", "reason": "because\0" + TEXT}
    ok(await crew.chief.post(f"{crew.intent_path}/acl/entries", json=line), 201)
    files = f"{crew.intent_path}/attachments"
    await stored(crew.chief, files, os.urandom(attachment))
    await stored(crew.chief, files, b"")
    await attach(crew.chief, files, filename="later.pdf")
    await _remember(service)
    await _add_records(service, crew.intent["id"])
    await _remember_as_another(service)
    for tenant in ("default", OTHER_TENANT):
        await _recall(service, tenant)


async def _remember(service: RunningService) -> None:
    everything = (*DEFAULT_PERMISSIONS, Permission.ADMIN, Permission.TENANT_ADMIN)
    agent = await service.agent("billing", permissions=everything)
    for name in NAMES:
        await _create(agent, name, tags=[name, "all"], value={"text": TEXT, name: [1e-7, 2**63]})
    large = await _create(agent, "large", value={"text": "x" * (VALUE_LIMIT - len('{"text":""}'))})
    await _create(agent, "sealed", sensitivity="restricted", value={"iban": "NL00"}, pinned=True)
    fact = await _create(agent, "fact", memory_type="semantic", namespace="facts", tags=["all"])
    ok(await agent.patch(f"{MEMORY}/{fact}", json={"tags": ["b"]}, headers={"If-Match": "1"}))
    ok(await agent.put("/api/v1/groups/日本", json={"kind": "class"}))
    ok(await agent.put("/api/v1/groups/日本/members/é"))
    grants = [
        {"agent": "é", "access": "write"},
        {"agent": "group:日本", "access": "read", "episodic": True},
    ]
    rights = {"permissions": {"default": "none", "allow": grants}}
    ok(await agent.patch(f"{NAMESPACES}/facts", json=rights))
    ok(await agent.put("/api/v1/agents/billing/memory/limits", json={"episodic_capacity": 9}))
    for number in range(3):
        await _create(agent, f"episode-{number}", memory_type="episodic", priority="high")
    lesson = {"wrong_answer": "é", "right_answer": "日本"}
    await _create(
        agent,
        "lesson",
        memory_type="episodic",
        kind="correction",
        value=lesson,
        subjects=["é", "ann"],
        derived_from=[{"id": large, "version": 1}],
    )
    for key, then in (("kept", None), ("blanked", "delete")):
        body = draft(f"once-{key}", sensitivity="confidential")
        made = await agent.post(MEMORY, json=body, headers={"Idempotency-Key": key})
        if then is not None:
            ok(await agent.delete(f"{MEMORY}/{ok(made, 201)['id']}"), 204)
    session = ok(await agent.post("/api/v1/sessions", json={"subject": "ann"}), 201)
    turns = {"turns": [{"role": "user", "content": "é"}]}
    ok(await agent.post(f"/api/v1/sessions/{session['id']}/turns", json=turns), 201)
    await _create(agent, "swept", ttl="duration:PT1M")
    service.clock.advance(61)
    assert await sweep(service.services) == 1
    await _create(agent, "expired", ttl="duration:PT1M", tags=["all"])
    service.clock.advance(61)
    await service.key("revoked")
    (prefix,) = [
        key.prefix for key in await list_keys(service.services, None) if key.principal == "revoked"
    ]
    await revoke_key(service.services, prefix)


async def _add_records(service: RunningService, intent_id: str) -> None:
    """Adds one of every declared record of which there is none."""

    async def script(to: Transaction) -> None:
        for spec in RECORDS.values():
            if not await to.records(spec).page(limit=1):
                parents = {"id": intent_id}
                if await to.namespaces.list_for(""):
                    parents["name"] = (await to.namespaces.list_for(""))[0].name
                columns = {one.column: parents[one.key] for one in spec.parents[:1]}
                fields = {"tenant": "default", **spec.empty, **columns}
                await to.records(spec).insert(make_record(spec, **fields))

    await service.services.store.write("default", script)


async def _remember_as_another(service: RunningService) -> None:
    other = await service.agent("billing", tenant=OTHER_TENANT)
    for name in NAMES:
        await _create(other, name, tags=["all"], sensitivity="confidential", pinned=name == "a")


async def _recall(service: RunningService, tenant: str) -> None:
    """Makes vectors and counts uses of a tenant's entries."""

    async def script(to: Transaction) -> None:
        assert await to.recall.acquire_lease(MODEL, "a", NOW, NOW) is not None
        entries = await to.entries.of_owner(Tier.WORKING, "billing", 99)
        made = [EntryVector(one.id, one.version, one.id.encode()) for one in entries]
        await to.recall.put_vectors(MODEL, made)
        last = await to.events.latest()
        assert last is not None
        assert await to.recall.advance(MODEL, "a", last.seq)
        await to.recall.add_uses({one.id: one.size for one in entries})

    await service.services.store.write(tenant, script)


async def _create(agent: httpx.AsyncClient, key: str, **fields: Any) -> str:
    made = ok(await agent.post(MEMORY, json=draft(key, **fields)), 201)
    return str(made["id"])


async def go_on(service: RunningService) -> None:
    """Something more happens in a store that was filled: something new, changed and gone."""
    agent = await service.agent("billing")
    page = ok(await agent.get(MEMORY, params={"agent_id": "billing", "key": "a"}))
    ok(await agent.delete(f"{MEMORY}/{page['entries'][0]['id']}"), 204)
    again = await _create(agent, "a", tags=["again"])
    change = {"value": {"changed": True}, "tags": ["changed", "all"]}
    ok(await agent.patch(f"{MEMORY}/{again}", json=change, headers={"If-Match": "1"}))
    ok(await agent.post(CLAIMS, json={"key": "another"}), 201)


class Place(ABC):
    """The location of a store."""

    @abstractmethod
    async def origin(self) -> CopySource:
        """It, to be read."""

    @abstractmethod
    async def target(self) -> CopyTarget:
        """It, to be written."""

    @abstractmethod
    async def dump(self) -> Dump:
        """Everything in it."""


class File(Place):
    """A store in a data directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.database = directory / "memory.db"

    async def origin(self) -> CopySource:
        return SqliteCopySource.open(self.database)

    async def target(self) -> CopyTarget:
        return SqliteCopyTarget.open(self.database)

    async def dump(self) -> Dump:
        return dump_file(self.database)

    def problems(self) -> list[str]:
        """Returns the findings of `verify`."""
        return verified(self.database).problems


class Server(Place):
    """A store in a PostgreSQL database."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def origin(self) -> CopySource:
        return await PostgresCopySource.open(self.url)

    async def target(self) -> CopyTarget:
        return await PostgresCopyTarget.open(self.url)

    async def dump(self) -> Dump:
        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute("SET search_path = memorywall")
            dumped: Dump = {}
            for (table,) in await connection.fetch(
                "SELECT table_name::text FROM information_schema.tables"
                " WHERE table_schema = 'memorywall' AND table_name <> 'migrations'"
            ):
                if table in _NOT_DUMPED:
                    continue
                rows = [dict(row) for row in await connection.fetch(f"SELECT * FROM {table}")]
                for row in rows:
                    row.pop("key_changes", None)
                dumped[table] = _counted(rows)
            return dumped
        finally:
            await connection.close()


def dump_file(database: Path) -> Dump:
    """Everything in an SQLite file."""
    connection = apsw.Connection(os.fspath(database))
    try:
        dumped: Dump = {}
        for (table,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall():
            if table in _NOT_DUMPED:
                continue
            statement = f"SELECT * FROM {table}"
            if table == "entry_tags":
                statement = (
                    "SELECT i.tenant, n.owner, n.tag, e.id AS entry FROM entry_tags i"
                    " JOIN tags n ON n.number = i.tag JOIN entries e ON e.number = i.entry"
                )
            names = (
                [column[0] for column in connection.execute(statement).get_description()]
                if (connection.execute(statement).fetchone())
                else []
            )
            rows = [dict(zip(names, row, strict=True)) for row in connection.execute(statement)]
            for row in rows:
                row.pop("number", None)
                if table == "intent_grants" and row["reason"] is not None:
                    row["reason"] = row["reason"].encode()
            dumped[str(table)] = _counted(rows)
        return dumped
    finally:
        connection.close()


def _counted(rows: list[dict[str, Any]]) -> Counter[tuple[tuple[str, Any], ...]]:
    # An owner who has nothing any more may be counted with nothing.
    return Counter(tuple(sorted(row.items())) for row in rows if row.get("entries") != 0)


@contextmanager
def empty_place(kind: str, directory: Path) -> Iterator[Place]:
    """An empty store, a "file" or a "server"."""
    if kind == "file":
        yield File(directory)
    else:
        with fresh_database() as url:
            yield Server(url)


async def move(
    source: Place,
    target: Place,
    overwrite: OverwritePolicy = OverwritePolicy.FAST_FORWARD,
    **options: Any,
) -> CopyReport:
    """Copies one place to another."""
    origin = await source.origin()
    try:
        goal = await target.target()
        try:
            return await copy(origin, goal, overwrite, **options)
        finally:
            await goal.close()
    finally:
        await origin.close()


def filled_directory(directory: Path, *, attachment: int) -> File:
    """A data directory in which everything has happened once, and which nobody serves."""

    async def work() -> None:
        async with open_service(directory) as service:
            await fill(service, attachment=attachment)

    in_own_thread(lambda: asyncio.run(work()))
    return File(directory)


def copy_of(place: File, directory: Path) -> File:
    """Another data directory with the same in it."""
    directory.mkdir()
    for name in ("memory.db", "memory.db.key"):
        shutil.copy(place.directory / name, directory / name)
    return File(directory)
