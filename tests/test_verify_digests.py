"""`verify` compares earlier versions and attachments with their digests, and reports rows and pages
that cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import pytest

from memorywall.jobs.verify import verify
from tests.http.checks import MEMORY
from tests.http.files import make_intent, stored
from tests.support.damage import assert_reported, inspected, run_sql, verified
from tests.support.service import draft, open_service
from tests.work.crew import ok

pytestmark = pytest.mark.anyio

_OTHER_CONTENT = "the attachment att_.* has another content than was uploaded"


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    """A closed store with three versions of one fact, a file of two chunks, and an empty file."""
    async with open_service(tmp_path) as service:
        agent = await service.agent("billing")
        fact = ok(await agent.post(MEMORY, json=draft("fact", memory_type="semantic")), 201)
        for version in (1, 2):
            change = {"value": {"completed": version}, "pinned": version == 2}
            headers = {"If-Match": str(version)}
            ok(await agent.patch(f"{MEMORY}/{fact['id']}", json=change, headers=headers))
        files = await make_intent(agent)
        await stored(agent, files, os.urandom(300_000))
        await stored(agent, files, b"")
    return tmp_path / "memory.db"


async def test_what_is_whole_is_no_damage(database: Path) -> None:
    assert verified(database).problems == []
    with inspected(database) as inspection:
        assert [one.version for one in inspection.versions("default")] == [1, 2]
        assert [len(chunks) for _, chunks in inspection.attachments("default")] == [2, 1]


_DAMAGES = {
    "another value of an earlier version": (
        "UPDATE entry_history SET value = substr(value, 2) WHERE version = 2",
        {"in version 2 has another row than its log says"},
    ),
    "another writer of an earlier version": (
        """UPDATE entry_history SET body = replace(body, '"billing"', '"ada"') WHERE version = 1""",
        {"in version 1 has another row than its log says"},
    ),
    "a changed chunk": (
        "UPDATE attachment_pieces SET content = substr(content, 2) WHERE place = 1",
        {_OTHER_CONTENT},
    ),
    "a missing chunk": ("DELETE FROM attachment_pieces WHERE place = 1", {_OTHER_CONTENT}),
    "the missing chunk of an empty file": (
        """DELETE FROM attachment_pieces
        WHERE attachment_id = (SELECT max(attachment_id) FROM attachment_pieces)""",
        {_OTHER_CONTENT},
    ),
    "exchanged chunks": (
        """UPDATE attachment_pieces SET place = 2 WHERE place = 0
        AND attachment_id IN (SELECT attachment_id FROM attachment_pieces WHERE place = 1);
        UPDATE attachment_pieces SET place = 0 WHERE place = 1;
        UPDATE attachment_pieces SET place = 1 WHERE place = 2""",
        {_OTHER_CONTENT},
    ),
    "another digest": (
        """UPDATE attachments SET body = replace(body, '"digest":"', '"digest":"0')""",
        {_OTHER_CONTENT},
    ),
    "a data key that is gone": (
        "DELETE FROM data_keys WHERE purpose IS NULL AND subject = ''",
        {"the attachment att_.* has no data key"},
    ),
    "a row that cannot be read": (
        "UPDATE entries SET tier = 'nowhere'",
        {r"the database cannot be read further \(\w+\); the rest was not compared"},
    ),
}


@pytest.mark.parametrize("damage", _DAMAGES)
async def test_damage_is_reported(database: Path, damage: str) -> None:
    script, expected = _DAMAGES[damage]
    run_sql(database, script, {})
    assert_reported(verified(database).problems, expected, {})


async def test_without_the_key_only_what_needs_no_key_is_checked(database: Path) -> None:
    run_sql(database, _DAMAGES["a changed chunk"][0], {})
    with inspected(database) as inspection:
        assert verify(inspection).problems == []


@pytest.mark.sqlite("the pages of its file")
async def test_a_page_that_cannot_be_read_is_reported(database: Path) -> None:
    connection = apsw.Connection(str(database))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    row = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'events'").fetchone()
    connection.close()
    assert row is not None
    content = bytearray(database.read_bytes())
    start = (row[0] - 1) * 4096
    content[start : start + 4096] = b"\xff" * 4096
    database.write_bytes(content)
    problems = verified(database).problems
    assert problems[0].startswith("the database file: ")
    assert problems[-1].endswith("; the rest was not compared")
