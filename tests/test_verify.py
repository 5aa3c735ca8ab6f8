"""`verify` finds every kind of damage, and nothing where there is none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import apsw
import httpx
import pytest

from memorywall.jobs.verify import VerifyReport, verify
from tests.support.damage import (
    BROKEN,
    COPY_EVENT,
    GAP,
    ON_FILE,
    OTHER_ROW,
    assert_reported,
    inspected,
    run_sql,
    verified,
)
from tests.support.rounds import sweep
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Filled:
    """A closed database in which everything has happened once."""

    database: Path
    changed: str
    shared: str
    deleted: str

    @property
    def names(self) -> dict[str, str]:
        """The ids of some entries by what became of them."""
        return {"changed": self.changed, "shared": self.shared, "deleted": self.deleted}


async def _create(agent: httpx.AsyncClient, key: str, **fields: object) -> str:
    made = await agent.post("/api/v1/memory", json=draft(key, **fields))
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


async def _fill(service: RunningService) -> tuple[str, str, str]:
    """Creates, changes, deletes, lets expire and evicts; in two tenants."""
    agent = await service.agent("billing")
    changed = await _create(agent, "changed", tags=["batch", "old"])
    reply = await agent.patch(
        f"/api/v1/memory/{changed}",
        json={"tags": ["batch", "invoices"], "value": {"completed": 24}},
        headers={"If-Match": "1"},
    )
    assert reply.status_code == 200, reply.text
    shared = await _create(agent, "fact", memory_type="semantic", tags=["batch"])
    deleted = await _create(agent, "deleted", tags=["batch"])
    assert (await agent.delete(f"/api/v1/memory/{deleted}")).status_code == 204
    await _create(agent, "passing", ttl="duration:PT1M", sensitivity="confidential")
    for number in range(4):
        await _create(agent, f"episode-{number}", memory_type="episodic", tags=[f"t{number}"])
    other = await service.agent("billing", tenant="globex")
    await _create(other, "changed", tags=["batch"], pinned=True)
    kept = await agent.post(
        "/api/v1/memory", json=draft("once"), headers={"Idempotency-Key": "once"}
    )
    assert kept.status_code == 201, kept.text
    service.clock.advance(61)
    assert await sweep(service.services) == 1
    return changed, shared, deleted


@pytest.fixture
async def filled(tmp_path: Path) -> Filled:
    async with open_service(tmp_path, episodic_capacity=3) as service:
        changed, shared, deleted = await _fill(service)
    return Filled(tmp_path / "memory.db", changed, shared, deleted)


async def test_where_nothing_is_wrong_nothing_is_reported(filled: Filled) -> None:
    told: list[int] = []
    report = verified(filled.database, told.append)
    assert report.problems == []
    with inspected(filled.database) as inspection:
        assert (report.entries, report.events) == inspection.sizes() == (7, 14)
    assert sum(told) == 7 + 14


async def test_an_empty_store_is_well(tmp_path: Path) -> None:
    async with open_service(tmp_path):
        pass
    assert verified(tmp_path / "memory.db") == VerifyReport()


async def test_a_store_in_use_is_verified_as_of_one_moment(tmp_path: Path) -> None:
    async with open_service(tmp_path, episodic_capacity=3) as service:
        await _fill(service)
        with inspected(tmp_path / "memory.db") as inspection:
            agent = await service.agent("billing")
            await _create(agent, "meanwhile")
            report = verify(inspection)
            assert (report.entries, report.events, report.problems) == (7, 14, [])
        assert verified(tmp_path / "memory.db").entries == 8


# The file numbers its entries and tags and counts what has a tag; PostgreSQL does neither.
if ON_FILE:
    _ENTRY = "(SELECT number FROM entries WHERE id = :changed)"
    _TAG = "(SELECT number FROM tags WHERE tenant = 'default' AND owner = 'billing' AND tag = '{}')"
    _ANOTHER_NUMBER = "number = 9999,"
    _PLANTED_TAG = f"(tenant, tag, entry) VALUES ('default', {_TAG.format('batch')}, 9999)"
    _UNCOUNT_TAGS = """UPDATE tags SET entries = entries - 1
        WHERE tenant = 'default' AND owner = 'billing' AND tag IN ('batch', 'invoices');
        DELETE FROM tags WHERE entries = 0;"""
    _FORGET_INVOICES = "DELETE FROM tags WHERE owner = 'billing' AND tag = 'invoices'"
    _TAGS_OF_EVE = "UPDATE tags SET owner = 'eve' WHERE tenant = 'globex'"
else:
    _ENTRY, _TAG, _ANOTHER_NUMBER = ":changed", "'{}'", ""
    _UNCOUNT_TAGS = _FORGET_INVOICES = ""
    _PLANTED_TAG = "VALUES ('default', 'billing', 'batch', 'mem_0')"
    _TAGS_OF_EVE = "UPDATE entry_tags SET owner = 'eve' WHERE tenant = 'globex'"
_OF_BATCH = f"entry = {_ENTRY} AND tag = {_TAG.format('batch')}"
_COUNTS = "the counts of an owner are not those of its entries: default"
_TAG_COUNT = {"the count of a tag is not that of its entries"} if ON_FILE else set()
_NO_TAG_ROW = "a tag of an entry is not in the tag index"
_ORPHAN_TAG = "the tag index has a tag that no entry has"
_UNBOUND_CONTENT = "a content is kept of an event that is gone"
_GONE_REPLY = "a kept reply shows an entry that is gone"
_MODEL = "INSERT INTO embedding_positions VALUES ('default', 'm', {}, '', '');"
_VECTOR = """INSERT INTO entry_vectors (tenant, entry, model, vector)
    SELECT tenant, {}, 'm', value FROM entries WHERE id = :changed;"""

# What is done to the file, and every problem that must be reported for it, no others.
_DAMAGES: dict[str, tuple[str, set[str]]] = {
    "an event of a change is missing": (
        "DELETE FROM events WHERE entry_id = :changed AND version = 1",
        {"{changed} skips or repeats a version", GAP, BROKEN, _UNBOUND_CONTENT},
    ),
    "no event of an entry is there": (
        "DELETE FROM events WHERE entry_id = :changed",
        {"{changed} is there, but no event tells of it", GAP, BROKEN, _UNBOUND_CONTENT},
    ),
    "no event of the entry with the last id is there": (
        "DELETE FROM events WHERE entry_id = (SELECT max(id) FROM entries)",
        {"mem_.* is there, but no event tells of it", GAP, BROKEN, _UNBOUND_CONTENT},
    ),
    "an entry that no event tells of": (
        f"""CREATE TEMP TABLE copied AS SELECT * FROM entries WHERE id = :changed;
        UPDATE copied SET {_ANOTHER_NUMBER} id = 'mem_0', key = 'planted', tags = '[]';
        INSERT INTO entries SELECT * FROM copied;
        UPDATE usage SET entries = entries + 1, bytes = bytes + (SELECT size FROM copied)
        WHERE tenant = 'default' AND owner = 'billing' AND tier = 'working';
        DROP TABLE copied""",
        {"mem_0 is there, but no event tells of it"},
    ),
    "an entry is missing": (
        f"""DELETE FROM entry_tags WHERE entry = {_ENTRY};
        {_UNCOUNT_TAGS}
        UPDATE usage SET entries = entries - 1,
        bytes = bytes - (SELECT size FROM entries WHERE id = :changed)
        WHERE tenant = 'default' AND owner = 'billing' AND tier = 'working';
        DELETE FROM entries WHERE id = :changed""",
        {"{changed} should be there and is not"},
    ),
    "an entry is missing and its indexes are not": (
        "DELETE FROM entries WHERE id = :changed",
        {"{changed} should be there and is not", _COUNTS, _ORPHAN_TAG},
    ),
    "another version": (
        "UPDATE entries SET version = 9 WHERE id = :changed",
        {"{changed} has version 9, its log says 2"},
    ),
    "other tags, in every index": (
        f"""UPDATE entries SET tags = '["batch"]' WHERE id = :changed;
        DELETE FROM entry_tags WHERE entry = {_ENTRY} AND tag = {_TAG.format("invoices")};
        {_FORGET_INVOICES}""",
        {"{changed} has other tags than its log says", OTHER_ROW},
    ),
    "tags in another order": (
        """UPDATE entries SET tags = '["invoices","batch"]' WHERE id = :changed""",
        {"{changed} has other tags than its log says", OTHER_ROW},
    ),
    "other tags, in no index": (
        """UPDATE entries SET tags = '["batch","planted"]' WHERE id = :changed""",
        {"{changed} has other tags than its log says", _NO_TAG_ROW, _ORPHAN_TAG, OTHER_ROW},
    ),
    "another owner, in every index": (
        f"""UPDATE entries SET owner = 'eve', agent_id = 'eve' WHERE tenant = 'globex';
        {_TAGS_OF_EVE};
        UPDATE usage SET owner = 'eve' WHERE tenant = 'globex'""",
        {"mem_.* has another owner than its log says", OTHER_ROW},
    ),
    "another owner, in no index": (
        "UPDATE entries SET owner = 'eve' WHERE id = :changed",
        {
            "{changed} has another owner than its log says",
            _COUNTS,
            _NO_TAG_ROW,
            _ORPHAN_TAG,
            OTHER_ROW,
        },
    ),
    "another creator of a shared entry": (
        "UPDATE entries SET agent_id = 'eve' WHERE id = :shared",
        {"{shared} has another owner than its log says", OTHER_ROW},
    ),
    "another creator of an owned entry": (
        "UPDATE entries SET agent_id = 'eve' WHERE id = :changed",
        {"{changed} has another owner than its log says", OTHER_ROW},
    ),
    "another key": (
        "UPDATE entries SET key = 'planted' WHERE id = :changed",
        {"{changed} has another tier, namespace or key than its log says", OTHER_ROW},
    ),
    "another namespace": (
        "UPDATE entries SET namespace = 'planted' WHERE id = :shared",
        {"{shared} has another tier, namespace or key than its log says", OTHER_ROW},
    ),
    "another tier": (
        "UPDATE entries SET tier = 'session' WHERE id = :changed",
        {"{changed} has another tier, namespace or key than its log says", _COUNTS, OTHER_ROW},
    ),
    "an entry whose log has ended": (
        COPY_EVENT.format(type="memory.deleted", version="version", entry=":changed"),
        {"{changed} is there though its log has ended", BROKEN},
    ),
    "an event after the end": (
        COPY_EVENT.format(type="memory.deleted", version="version", entry=":deleted"),
        {"{deleted} has an event after its end", BROKEN},
    ),
    "a change that is told of twice": (
        COPY_EVENT.format(type="memory.updated", version="version", entry=":changed"),
        {"{changed} skips or repeats a version", BROKEN},
    ),
    "a change that never was": (
        COPY_EVENT.format(type="memory.updated", version="7", entry=":changed"),
        {"{changed} skips or repeats a version", "{changed} has version 2, its log says 7", BROKEN},
    ),
    "an ending of another version": (
        "UPDATE events SET version = 4 WHERE entry_id = :deleted AND type = 'memory.deleted'",
        {"{deleted} skips or repeats a version", BROKEN},
    ),
    "another previous version": (
        "UPDATE events SET previous_version = 0 WHERE entry_id = :changed AND version = 2",
        {"{changed} skips or repeats a version", BROKEN},
    ),
    "a gap in the log": (
        "DELETE FROM events WHERE entry_id = :deleted",
        {GAP, BROKEN, _UNBOUND_CONTENT},
    ),
    "a place in the log that was moved": (
        "UPDATE events SET seq = 999 WHERE entry_id = :deleted AND type = 'memory.deleted'",
        {GAP, BROKEN, _UNBOUND_CONTENT},
    ),
    "another instant in an envelope": (
        "UPDATE events SET timestamp = 'earlier' WHERE entry_id = :changed AND version = 1",
        {BROKEN},
    ),
    "a content that was exchanged": (
        """UPDATE event_contents SET content = (SELECT max(content) FROM event_contents)
        WHERE tenant = 'default' AND seq = 1""",
        {"default: the content of event 1 is not the one its envelope names"},
    ),
    "a salt that was exchanged": (
        """UPDATE event_contents SET salt = (SELECT max(salt) FROM event_contents)
        WHERE tenant = 'default' AND seq IN (1, 2)""",
        {r"default: the content of event [12] is not the one its envelope names"},
    ),
    "an event in another agent's stream": (
        "UPDATE events SET stream = 'eve' WHERE tenant = 'default' AND seq = 1",
        {"default: the columns of event 1 are not what its content says"},
    ),
    "a digest key that is gone": (
        "DELETE FROM data_keys WHERE tenant = 'globex' AND purpose = 'digest'",
        {"globex: the digest key dek_.* is missing or cannot be opened"},
    ),
    "another value": (
        "UPDATE entries SET value = (SELECT value FROM entries WHERE id = :shared), size = 16"
        " WHERE id = :changed",
        {"{changed} has another row than its log says"},
    ),
    "another writer": (
        "UPDATE entries SET created_by = 'eve' WHERE id = :shared",
        {"{shared} has another row than its log says"},
    ),
    "an event that has not been taken over": (
        """INSERT INTO legacy_events (tenant, seq, type, stream, agent_id, actor, entry_id, tier,
        namespace, key, version, tags, timestamp)
        VALUES ('default', 1, 'note', '', '', 'ada', '', '', '', '', 0, '[]', '')""",
        {"an event has not been taken into the chain: default 1"},
    ),
    "a tag of an entry is not in the index": (
        f"DELETE FROM entry_tags WHERE {_OF_BATCH}",
        {_NO_TAG_ROW, *_TAG_COUNT},
    ),
    "a tag in the index that no entry has": (
        f"INSERT INTO entry_tags {_PLANTED_TAG}",
        {_ORPHAN_TAG, *_TAG_COUNT},
    ),
    "a tag in the index under another tenant": (
        f"UPDATE entry_tags SET tenant = 'globex' WHERE {_OF_BATCH}",
        {_NO_TAG_ROW, _ORPHAN_TAG, *_TAG_COUNT},
    ),
    "usage with other entries": (
        "UPDATE usage SET entries = entries + 1",
        {_COUNTS, "counts.*globex"},
    ),
    "usage with other bytes": (
        "UPDATE usage SET bytes = bytes - 1 WHERE tenant = 'default' AND tier = 'working'",
        {_COUNTS},
    ),
    "usage with other pins": (
        "UPDATE usage SET pinned = pinned + 1 WHERE tenant = 'default' AND tier = 'working'",
        {_COUNTS},
    ),
    "usage that is missing": (
        "DELETE FROM usage WHERE tenant = 'default' AND tier = 'working'",
        {_COUNTS},
    ),
    "usage of nobody": (
        "INSERT INTO usage VALUES ('default', 'nobody', 'working', 1, 1, 0)",
        {_COUNTS},
    ),
    "a reply that shows what is gone": (
        "UPDATE kept_reply_entries SET entry_id = :deleted",
        {_GONE_REPLY},
    ),
    "a vector of what is gone": (
        _MODEL.format(0) + _VECTOR.format(":deleted"),
        {"a vector is kept of an entry that is gone: default {deleted}"},
    ),
    "a vector of what is confidential": (
        f"""{_MODEL.format(0)} {_VECTOR.format("id")}
        UPDATE entries SET sensitivity = 'confidential' WHERE id = :changed""",
        {"a vector is kept of an entry that is sealed: default {changed}", OTHER_ROW},
    ),
    "a vector of what is sealed": (
        f"""{_MODEL.format(0)} {_VECTOR.format("id")}
        UPDATE entries SET sealing_key = 'dek_1' WHERE id = :changed""",
        {"a vector is kept of an entry that is sealed: default {changed}", OTHER_ROW},
    ),
    "a vector of a model that nobody knows of": (
        _VECTOR.format("id"),
        {"vectors are kept under a model that is not listed: default m"},
    ),
    "a model that is ahead of the log": (
        _MODEL.format(999),
        {"embedding has come beyond the end of the log: default m"},
    ),
    "uses of what is gone": (
        "INSERT INTO entry_uses (tenant, entry, uses) VALUES ('default', :deleted, 3)",
        {"uses are counted of an entry that is gone: default {deleted}"},
    ),
    "a tenant that is not in the list": (
        """DELETE FROM tenants WHERE name = 'default';
        UPDATE entries SET version = 9 WHERE id = :changed""",
        {"default", "{changed} has version 9, its log says 2"},
    ),
}
if ON_FILE:
    _DAMAGES["a tag that is counted wrong"] = (
        f"UPDATE tags SET entries = entries + 1 WHERE number = {_TAG.format('batch')}",
        _TAG_COUNT,
    )
else:
    _DAMAGES["a head that is before the end of the log"] = (
        "UPDATE heads SET seq = seq - 1 WHERE tenant = 'default'",
        {"the end of the log is not where the head says: default"},
    )


@pytest.mark.parametrize("damage", _DAMAGES)
async def test_damage_is_reported_by_its_kind(filled: Filled, damage: str) -> None:
    script, expected = _DAMAGES[damage]
    run_sql(filled.database, script, filled.names)
    assert_reported(verified(filled.database).problems, expected, filled.names)


async def test_what_recall_keeps_of_what_is_there_is_no_damage(filled: Filled) -> None:
    script = f"""{_MODEL.format(1)} {_VECTOR.format("id")}
        INSERT INTO entry_uses (tenant, entry, uses) VALUES ('default', :changed, 3)"""
    run_sql(filled.database, script, filled.names)
    assert verified(filled.database).problems == []


@pytest.mark.sqlite("its own check of the file")
async def test_an_index_of_the_database_that_lacks_a_row_is_reported(filled: Filled) -> None:
    """The index is hidden while a row is changed, so that it no longer fits the table."""
    connection = apsw.Connection(str(filled.database))
    connection.execute("PRAGMA writable_schema = ON")
    hidden = connection.execute(
        "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema WHERE name = ?",
        ("entries_by_expiry",),
    ).fetchone()
    assert hidden is not None
    connection.execute("DELETE FROM sqlite_schema WHERE name = ?", (hidden[1],))
    connection.close()
    connection = apsw.Connection(str(filled.database))
    connection.execute(
        "UPDATE entries SET expires_at = '2999-01-01T00:00:00.000Z' WHERE id = ?",
        (filled.changed,),
    )
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", hidden)
    connection.close()
    problems = verified(filled.database).problems
    assert problems
    of_the_row = f"{filled.changed} {OTHER_ROW}"
    assert all(text == of_the_row or text.startswith("the database file: ") for text in problems)
    assert any("entries_by_expiry" in text for text in problems)
