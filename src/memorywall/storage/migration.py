"""Rules of migrations that hold for both backends.

A migration is one numbered SQL file, applied once in a transaction of its own. The end of its name
says what it does to servers of the schema before it:

- `NNN_verb_noun.expand.sql`: such a server goes on running, because it finds all that it knows
- `NNN_verb_noun.contract.sql`: it cannot go on; the step waits until no such server is connected

A file with neither is of the time before these rules and counts as the latter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from memorywall.records.errors import ConfigurationError

_NAME = re.compile(r"(\d{3})_\w+(\.expand|\.contract)?\.sql")


class Migration(NamedTuple):
    """One step. `name` is that of its file."""

    number: int
    name: str
    sql: str

    @property
    def expands(self) -> bool:
        """Whether a server of the schema before runs on the result."""
        return is_expansion(self.name)


def is_expansion(name: str) -> bool:
    """Whether the migration with this file name only adds."""
    return name.endswith(".expand.sql")


def load_migrations(package: str) -> list[Migration]:
    """The migrations of a backend in order.

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
    """Raises ConfigurationError unless this memorywall runs on a schema.

    present: the number of the schema
    newest_name: the file name of the migration that made it, "" where that is not known
    known: the migrations this memorywall knows
    """
    newest = known[-1].number
    if present <= newest or (present == newest + 1 and is_expansion(newest_name)):
        return
    raise ConfigurationError(
        f"this database has schema {present}, this memorywall knows {newest};"
        " use the version that wrote it or a newer one"
    )
