"""Rules of migrations for both backends.

A migration is one numbered SQL file, applied once in its own transaction. The end of the file name
states its effect on servers of the previous schema:

- `NNN_verb_noun.expand.sql`: such servers continue to run, because everything they use remains
- `NNN_verb_noun.contract.sql`: such servers cannot continue; the step waits until none is connected

A file with neither ending is older than these rules and counts as `contract`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from memorywall.records.errors import ConfigurationError

_NAME = re.compile(r"(\d{3})_\w+(\.expand|\.contract)?\.sql")


class Migration(NamedTuple):
    """One step. `name` is its file name."""

    number: int
    name: str
    sql: str

    @property
    def expands(self) -> bool:
        """Returns whether a server of the previous schema runs on the result."""
        return is_expansion(self.name)


def is_expansion(name: str) -> bool:
    """Returns whether the migration with this file name is expanding."""
    return name.endswith(".expand.sql")


def load_migrations(package: str) -> list[Migration]:
    """Returns the migrations of a backend in order.

    package: the backend's package, which has a folder `migrations`
    """
    found = []
    for resource in files(package).joinpath("migrations").iterdir():
        if match := _NAME.fullmatch(resource.name):
            found.append(
                Migration(int(match[1]), resource.name, resource.read_text(encoding="utf-8"))
            )
    return sorted(found)


def check_supported(present: int, newest_name: str, known: Sequence[Migration]) -> None:
    """Raises ConfigurationError unless this version of memorywall runs on a schema.

    present: the number of the schema
    newest_name: the file name of its newest migration, "" if unknown
    known: the migrations of this version
    """
    newest = known[-1].number
    if present <= newest or (present == newest + 1 and is_expansion(newest_name)):
        return
    raise ConfigurationError(
        f"this database has schema {present}, this memorywall knows {newest};"
        " use the version that wrote it or a newer one"
    )
