"""Named SQL statements from the `.sql` files of a backend."""

from __future__ import annotations

import re
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def load(backend: str, noun: str) -> dict[str, str]:
    """The statements of `<backend>/sql/<noun>.sql`, by the name on the `-- name:` line above each.

    `{columns}` in a statement stands for the one of that name.
    """
    text = files(__package__).joinpath(backend, "sql", f"{noun}.sql").read_text(encoding="utf-8")
    _, *parts = _NAME.split(text)
    named = {
        name: statement.strip().removesuffix(";")
        for name, statement in zip(parts[::2], parts[1::2], strict=True)
    }
    columns = named.get("columns", "")
    return {name: statement.replace("{columns}", columns) for name, statement in named.items()}
