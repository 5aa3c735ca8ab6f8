"""`memorywall query`."""

from __future__ import annotations

from itertools import islice
from typing import Any, get_args

import click

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.entries import ENTRY_COLUMNS, entry_cells, print_entries
from memorywall.cli.options import filter_arguments, filter_options, json_option, limit_option
from memorywall.cli.output import ENTRIES, count_of, print_json, print_rows
from memorywall.expressions.entry_fields import ENTRY_FIELDS
from memorywall.expressions.evaluate import fields_of
from memorywall.expressions.parser import parse
from memorywall.records.filter import EntryOrder


def _check(given: dict[str, Any]) -> None:
    if given["offset"] and (given["everything"] or given["fields"]):
        raise click.UsageError("--offset cannot be combined with --all or --fields")


@memory_command(prepare=_check)
@filter_options
@click.option("--as-of", help="The entries as they were at this RFC 3339 instant or date.")
@click.option("--schema-version", type=int, help="A major version of schemas they must fit.")
@limit_option(20)
@click.option("--offset", default=0, type=click.IntRange(min=0))
@click.option("--all", "everything", is_flag=True, help="Every match, without a limit.")
@click.option("--order-by", type=click.Choice(get_args(EntryOrder)), help="Default: created.")
@click.option(
    "--direction", type=click.Choice(["asc", "desc"]), help="Default: desc; asc for the key."
)
@click.option("--fields", help="Comma-separated fields or paths, such as key,value.customer.tier.")
@click.option("--count", "only_count", is_flag=True, help="Print only the number of matches.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "jsonl", "csv"]), help="Default: table."
)
@json_option
def command(
    client: Client,
    limit: int,
    offset: int,
    everything: bool,
    order_by: EntryOrder | None,
    direction: Any,
    fields: str | None,
    only_count: bool,
    form: str | None,
    as_json: bool,
    **wanted: Any,
) -> None:
    """List the matching entries, newest first by default.

    --where takes a condition on any field: value.customer.tier = "gold" and tags contains "vip".
    """
    form = form or ("json" if as_json else "table")
    conditions = filter_arguments(wanted)
    order: dict[str, Any] = {"order_by": order_by, "direction": direction}
    if only_count:
        click.echo(client.memory.count(**conditions))
    elif fields is not None or everything:
        size = 1000 if everything else limit
        _print_each(client, fields, form, None if everything else limit,
                    {"page_size": size, **order, **conditions})  # fmt: skip
    else:
        page = client.memory.query(limit=limit, offset=offset, **order, **conditions)
        if form == "json":
            print_json(
                {"entries": list(page), "total": page.total, "limit": limit, "offset": offset}
            )
        elif form == "table":
            print_entries(page)
            click.echo(f"{len(page)} of {count_of(page.total, *ENTRIES)}")
            if not page.total:
                _explain_nothing(conditions.get("where"))
        else:
            print_rows(form, ENTRY_COLUMNS, page, entry_cells)


def _explain_nothing(where: str | None) -> None:
    """Says what a condition on `status` or `state` alone means if nothing meets it."""
    if where is not None:
        for name in sorted(fields_of(parse(where, ENTRY_FIELDS)) & {"status", "state"}):
            click.echo(
                f"`{name}` is what the server derives or sets; a member of the value is"
                f" `value.{name}`",
                err=True,
            )


def _print_each(
    client: Client, fields: str | None, form: str, most: int | None, asked: dict[str, Any]
) -> None:
    """Prints entries, or some of their fields, as the pages arrive.

    most: entries, None for all
    """
    if fields is None:
        print_rows(form, ENTRY_COLUMNS, islice(client.memory.iterate(**asked), most), entry_cells)
        return
    rows = islice(client.memory.select(fields, **asked), most)
    first = next(rows, None)
    if first is None:
        print_rows(form, fields.split(","), (), dict.values)
        return

    def each() -> Any:
        yield first
        yield from rows

    print_rows(form, list(first), each(), dict.values)
