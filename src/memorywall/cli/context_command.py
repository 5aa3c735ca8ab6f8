"""`memorywall context`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.options import json_option
from memorywall.cli.output import print_json, print_table
from memorywall.cli.table_options import table_options
from memorywall.wire.contexts import ContextOutcomeRequest, ContextRequest, ContextResponse

_BAR = 20


def _check(given: dict[str, Any]) -> None:
    if given["outcome"] is None and (given["used"] or given["correction"] is not None):
        raise click.UsageError("--used and --correction need --outcome")
    if given["outcome"] is not None and given["shown"] is None:
        raise click.UsageError("--outcome needs --show ID")
    if given["message"] is not None and given["user"] is not None:
        raise click.UsageError("give the message as TEXT or with --message, not both")


@memory_command(prepare=_check)
@table_options(
    ContextRequest, "session_id", "query", "task_id", "shared", "system", "tools", "model",
    "window", "reserve", "budgets", "strategy", "counter", "memories", "parts", "format",
)  # fmt: skip
@click.option("--show", "shown", metavar="ID", help="Show this stored context again.")
@table_options(ContextOutcomeRequest, "outcome", "used", "correction", is_optional=True)
@json_option
@click.option("--message", metavar="TEXT", help="The message of the user; the same as TEXT.")
@click.argument("user", metavar="[TEXT]", required=False)
def command(
    client: Client,
    as_json: bool,
    shown: str | None,
    format: str | None,
    outcome: Any,
    used: tuple[str, ...],
    correction: str | None,
    message: str | None,
    user: str | None,
    **wanted: Any,
) -> None:
    """Compile the context for a message TEXT: what a model needs to answer it.

    Prints the segments with their tokens, and the text or, with --format openai, anthropic or
    responses, the messages; --json prints everything. With --show ID,
    --outcome records what became of the context, and --used and --correction belong to it.
    """
    form: Any = format or ("segments" if as_json else "text")
    if shown is None:
        found = client.context(**wanted, user=user if message is None else message, format=form)
    elif outcome is None:
        found = client.context.get(shown, format=form)
    else:
        print_json(client.context.outcome(shown, outcome, used=used, correction=correction))
        return
    (print_json if as_json else _print)(found)


def _bar(share: float) -> str:
    """Returns a share of the room as a bar; one sign is a twentieth."""
    return f"{share:4.0%} {'#' * min(_BAR, round(share * _BAR))}".rstrip()


def _print(found: ContextResponse) -> None:
    room = found.window - found.reserve
    rows = [
        [one.name, len(one.items), f"{one.tokens:,}", f"{one.budget:,}", _bar(one.tokens / room)]
        for one in found.segments
    ]
    rows.append(["total", sum(len(one.items) for one in found.segments), f"{found.tokens:,}",
                 f"{room:,}", _bar(found.tokens / room)])  # fmt: skip
    print_table(["segment", "items", "tokens", "of at most", "share of the room"], rows)
    click.echo(f"window {found.window:,}, of which {found.reserve:,} are for the output")
    if found.dropped:
        reasons = Counter(one.reason for one in found.dropped)
        told = ", ".join(f"{number} {reason}" for reason, number in sorted(reasons.items()))
        click.echo(f"left out: {told}")
    for item in (item for segment in found.segments for item in segment.items):
        if item.marks:
            click.echo(f"{item.id}: {', '.join(item.marks)}")
    if found.id is not None:
        click.echo(f"id {found.id}")
    if found.erased:
        click.echo(f"erased since: {', '.join(found.erased)}")
    for part in (found.system, found.messages):
        if part is not None:
            print_json(part)
    if found.text is not None:
        click.echo(f"\n{found.text}")
