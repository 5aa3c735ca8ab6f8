"""Output of commands: tables and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import click
import msgspec

ENTRIES = ("entry", "entries")
Read = Callable[[Any], Any]
"""Returns the cell of an item."""


def count_of(number: int, one: str, several: str | None = None) -> str:
    """Returns a number with the noun of what is counted, such as "1 part" and "2 parts".

    several: the noun of several; default: `one` with an s
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def print_json(content: Any) -> None:
    """Prints one JSON document."""
    click.echo(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())


def print_json_lines(items: Iterable[Any]) -> None:
    """Prints one JSON text a line for each item, when it arrives."""
    for item in items:
        click.echo(msgspec.json.encode(item))


def print_table(
    headers: Sequence[str], rows: Iterable[Sequence[Any]], *, widest: int | None = 60
) -> None:
    """Prints a table.

    widest: the most characters of a cell; longer cells are cut, and None is left blank
    """
    cells = [["" if cell is None else _short(str(cell), widest) for cell in row] for row in rows]
    _draw(cells, headers=headers, tablefmt="simple")


def as_table(
    *columns: str | tuple[str, Read], widest: int | None = 60
) -> Callable[[Iterable[Any]], None]:
    """Returns a function that prints items as a table.

    columns: `header`, `header=attribute` or `header=attribute|text of an empty cell`, where the
        attribute may be that of an attribute, as `counts.turn_count`; or a header and a function of
        an item
    """
    headers, reads = zip(*map(_column, columns), strict=True)
    return lambda items: print_table(
        headers, ([read(item) for read in reads] for item in items), widest=widest
    )


def as_fields(*columns: str | tuple[str, Read]) -> Callable[[Any], None]:
    """Returns a function that prints one object, one line per field; `columns` as for `as_table`.

    Fields without a value are left out.
    """
    fields = [_column(column) for column in columns]
    return lambda item: print_fields((name, read(item)) for name, read in fields)


def print_all_fields(item: Any) -> None:
    """Prints all fields of one object that have a value: names with commas, the rest as JSON."""
    print_fields((name, _field(value)) for name, value in msgspec.to_builtins(item).items())


def _column(column: str | tuple[str, Read]) -> tuple[str, Read]:
    """Returns the header of a column, and a function that returns the cell of an item."""
    if not isinstance(column, str):
        return column
    names, _, empty = column.partition("|")
    header, _, attribute = names.partition("=")
    read = attrgetter(attribute or header)
    return header, lambda item: _text(read(item)) or empty


def _text(value: Any) -> str:
    """A value for people: yes for true, texts with commas, and nothing for false and none."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None or value is False else "yes" if value is True else str(value)


def _field(value: Any) -> Any:
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    if isinstance(value, dict | list | tuple):
        return msgspec.json.encode(value).decode() if value else None
    return value


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
        print_json_lines(items)
    elif form == "table":
        print_table(headers, ([_cell(one) for one in cells(item)] for item in items))
    else:
        click.echo(_csv_line(headers), nl=False)
        for item in items:
            click.echo(_csv_line([_cell(one) for one in cells(item)]), nl=False)


def print_fields(fields: Iterable[tuple[str, Any]]) -> None:
    """Prints one object, one line per field."""
    lines = [(name, value) for name, value in fields if value not in (None, "", [], ())]
    _draw(lines, tablefmt="plain")


def _draw(rows: Sequence[Sequence[Any]], **form: Any) -> None:
    # Imported here, because the help of a command shows no table.
    from tabulate import tabulate

    click.echo(tabulate(rows, disable_numparse=True, **form))


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
