"""Output of commands: tables and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click
import msgspec
from tabulate import tabulate


def print_json(content: Any) -> None:
    """Prints one JSON document."""
    click.echo(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())


def print_table(
    headers: Sequence[str], rows: Iterable[Sequence[Any]], *, widest: int | None = 60
) -> None:
    """Prints a table.

    widest: the most characters of a cell; longer cells are cut, and None is left blank
    """
    cells = [["" if cell is None else _short(str(cell), widest) for cell in row] for row in rows]
    click.echo(tabulate(cells, headers=headers, tablefmt="simple", disable_numparse=True))


def print_fields(fields: Iterable[tuple[str, Any]]) -> None:
    """Prints one object, one line per field."""
    lines = [(name, value) for name, value in fields if value not in (None, "", [], ())]
    click.echo(tabulate(lines, tablefmt="plain", disable_numparse=True))


def _short(text: str, widest: int | None) -> str:
    text = " ".join(text.split())
    return text if widest is None or len(text) <= widest else text[: widest - 1] + "…"
