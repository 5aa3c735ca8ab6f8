"""Damage done to a database beneath the server, and what `verify` says of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memorywall.assembly import open_inspection, open_vault
from memorywall.jobs.verify import VerifyReport, verify
from memorywall.service.encryption.cipher import EnvelopeCipher
from memorywall.settings import Settings
from memorywall.storage.consistency import ConsistencyReader
from tests.support.backend import is_on_file, store_of
from tests.support.stored import run_script

ON_FILE = is_on_file()
_MEND_HEADS = """UPDATE heads SET seq =
    (SELECT coalesce(max(seq), 0) FROM events WHERE events.tenant = heads.tenant)"""
# A new last event of a tenant, which is like the last one of an entry but for some of its columns.
COPY_EVENT = """INSERT INTO event_contents
    SELECT c.tenant, (SELECT max(seq) + 1 FROM events WHERE tenant = c.tenant), salt, content
    FROM event_contents c JOIN events e ON e.tenant = c.tenant AND e.seq = c.seq
    WHERE entry_id = {entry} ORDER BY c.seq DESC LIMIT 1;
    INSERT INTO events
    SELECT tenant, (SELECT max(seq) + 1 FROM events WHERE tenant = e.tenant), format, id, '{type}',
        timestamp, entry_id, tier, {version}, previous_version, task_id, intent_id, digest_key,
        digest, previous, stream, agent_id
    FROM events e WHERE entry_id = {entry} ORDER BY seq DESC LIMIT 1"""
GAP = "the log of a tenant has a gap: default"
# What the chain tells of an event that is missing, was changed in what is hashed, or was added.
BROKEN = r"default: event \d+ does not follow from the event before it"
# What it tells of an event whose content was changed.
OTHER_CONTENT = r"default: the content of event \d+ is not the one its envelope names"
# What the digest of its row tells of an entry that was changed in any other column than is told.
OTHER_ROW = "has another row than its log says"


@contextmanager
def inspected(database: Path) -> Iterator[ConsistencyReader]:
    """A snapshot of the database, or of the one that stands for its directory, for `verify`."""
    inspection = open_inspection(_settings(database))
    yield inspection
    inspection.close()


def vault_of(database: Path) -> EnvelopeCipher | None:
    """Returns the cipher for the digest keys of the database."""
    return open_vault(_settings(database))


def _settings(database: Path) -> Settings:
    return Settings(sqlite_path=database, database_url=store_of(database.parent))


def verified(database: Path, progress: Callable[[int], None] = lambda _: None) -> VerifyReport:
    """Returns the report of `verify` on the database."""
    with inspected(database) as inspection:
        return verify(inspection, progress, vault_of(database))


def run_sql(database: Path, script: str, names: Mapping[str, str | bytes]) -> None:
    """Runs SQL on the store itself, with `names` in it, such as the ids of some entries."""
    run_script(database.parent, script, names)
    if not ON_FILE and "heads" not in script:
        # A head that has another end of the log than the log is damage of its own.
        run_script(database.parent, _MEND_HEADS, {})


def assert_reported(
    problems: Collection[str], expected: Collection[str], names: Mapping[str, str]
) -> None:
    """Asserts that each expected problem is reported and that nothing else is. They are patterns,
    with `names` in them in braces."""
    patterns = [re.sub(r"\{(\w+)\}", lambda found: names[found[1]], one) for one in expected]
    silent = [one for one in patterns if not any(re.search(one, text) for text in problems)]
    assert silent == [], problems
    false = [text for text in problems if not any(re.search(one, text) for one in patterns)]
    assert false == []
