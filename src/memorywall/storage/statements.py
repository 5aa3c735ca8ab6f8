"""Named SQL statements from `.sql` files.

Statements that are the same in both dialects are in `storage/sql`, in SQLite's dialect: numbered
bindings (`?1`) become `$1` for PostgreSQL, and `INDEXED BY`, which only SQLite supports, is omitted
there. Two placeholders cover different syntax:

- `IN {list ?2}` and `IN {numbers ?2}`: the binding is a list of texts or integers (see
  `RowAccess.names`)
- `{columns}`: the statement of that name
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_LIST = re.compile(r"\bIN \{(list|numbers) \?(\d+)\}")
_HINT = re.compile(r"\s+INDEXED BY \w+")
_BINDING = re.compile(r"\?(\d+)")
_REFERENCE = re.compile(r"\{(\w+)\}")
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)
"""A comment line of a statement: the database need not compare it with each execution."""


@cache
def load(backend: str, noun: str, **words: str) -> Mapping[str, str]:
    """Returns a record's statements for a backend, by the name on the `-- name:` line above each:
    those of `sql/<noun>.sql`, replaced or extended by those of `<backend>/sql/<noun>.sql`. They are
    read once.

    A name in braces in a statement, such as `{columns}`, is replaced by the statement of that name.

    words: replacements of `{word}` in a statement, besides the names of statements
    """
    root = files(__package__)
    shared = _read(root.joinpath("sql", f"{noun}.sql"))
    named = {name: translate(statement, backend) for name, statement in shared.items()}
    named.update(_read(root.joinpath(backend, "sql", f"{noun}.sql")))
    if not named:
        raise LookupError(f"there are no statements for {noun}")
    words = {**named, **words}
    return {name: _fill(statement, words) for name, statement in named.items()}


def nouns(backend: str) -> list[str]:
    """Returns the names of the statement files for a backend, sorted."""
    root = files(__package__)
    folders = (root.joinpath("sql"), root.joinpath(backend, "sql"))
    names = {file.name for folder in folders for file in folder.iterdir()}
    return sorted(name.removesuffix(".sql") for name in names if name.endswith(".sql"))


def translate(statement: str, backend: str) -> str:
    """Converts a statement in SQLite's dialect to the dialect of `backend`."""
    if backend == "sqlite":
        return _LIST.sub(r"IN (SELECT value FROM json_each(?\2))", statement)
    statement = _LIST.sub(_array, statement)
    return _BINDING.sub(r"$\1", _HINT.sub("", statement))


def _array(found: re.Match[str]) -> str:
    return f"= ANY(?{found[2]}::{'text' if found[1] == 'list' else 'bigint'}[])"


def _read(file: Traversable) -> dict[str, str]:
    if not file.is_file():
        return {}
    _, *parts = _NAME.split(file.read_text(encoding="utf-8"))
    return {
        name: _COMMENT.sub("", statement).strip().removesuffix(";")
        for name, statement in zip(parts[::2], parts[1::2], strict=True)
    }


def _fill(statement: str, words: Mapping[str, str]) -> str:
    return _REFERENCE.sub(lambda found: words.get(found[1], found[0]), statement)
