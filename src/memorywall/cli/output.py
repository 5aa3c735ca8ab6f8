"""Output of commands: tables and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
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


def print_rows(
    form: str,
    headers: Sequence[str],
    items: Iterable[Any],
    cells: Callable[[Any], Iterable[object]],
) -> None:
    """Prints items as a table, a JSON list, JSON Lines or CSV with a line of headers.

    form: table, json, jsonl or csv; the last two print each item when it arrives
    cells: returns the cells of an item in a table and in CSV
    """
    if form == "json":
        print_json(list(items))
    elif form == "jsonl":
        for item in items:
            click.echo(msgspec.json.encode(item))
    elif form == "table":
        print_table(headers, ([_cell(one) for one in cells(item)] for item in items))
    else:
        click.echo(_csv_line(headers), nl=False)
        for item in items:
            click.echo(_csv_line([_cell(one) for one in cells(item)]), nl=False)


def print_fields(fields: Iterable[tuple[str, Any]]) -> None:
    """Prints one object, one line per field."""
    lines = [(name, value) for name, value in fields if value not in (None, "", [], ())]
    click.echo(tabulate(lines, tablefmt="plain", disable_numparse=True))


def _csv_line(cells: Iterable[Any]) -> str:
    line = io.StringIO(newline="")
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _cell(value: Any) -> Any:
    """Returns a value as the text of a cell: an object, a list or a truth value as JSON."""
    if value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool)):
        return value
    return msgspec.json.encode(value).decode()


def _short(text: str, widest: int | None) -> str:
    text = " ".join(text.split())
    return text if widest is None or len(text) <= widest else text[: widest - 1] + "…"
