"""Damage done to a database beneath the server, and what `verify` says of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memorywall.assembly import open_inspection
from memorywall.pipelines.verify import Report, verify
from memorywall.settings import Settings
from memorywall.storage.port import Inspection
from tests.support.backend import is_on_file, store_of
from tests.support.stored import run_script

ON_FILE = is_on_file()
_MEND_HEADS = """UPDATE heads SET seq =
    (SELECT coalesce(max(seq), 0) FROM events WHERE events.tenant = heads.tenant)"""
# A new last event of a tenant, which is like the last one of an entry but for some of its columns.
COPY_EVENT = """INSERT INTO events
    SELECT tenant, (SELECT max(seq) + 1 FROM events WHERE tenant = e.tenant), '{type}', stream,
        agent_id, actor, entry_id, tier, namespace, key, {version}, previous_version, tags,
        task_id, intent_id, timestamp, data
    FROM events e WHERE entry_id = {entry} ORDER BY seq DESC LIMIT 1"""
GAP = "the log of a tenant has a gap: default"


@contextmanager
def inspected(database: Path) -> Iterator[Inspection]:
    """A snapshot of the database, or of the one that stands for its directory, for `verify`."""
    inspection = open_inspection(Settings(database=database, store=store_of(database.parent)))
    yield inspection
    inspection.close()


def verified(database: Path, progress: Callable[[int], None] = lambda _: None) -> Report:
    """What `verify` reports of the database."""
    with inspected(database) as inspection:
        return verify(inspection, progress)


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
