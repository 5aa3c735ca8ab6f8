"""`memorywall context`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from memorywall.cli.options import json_option, memory_options, open_client
from memorywall.cli.output import print_json, print_table
from memorywall.wire.contexts import ContextResponse

_STRATEGIES = ("recency", "importance", "compaction", "hierarchical")
_BAR = 20
_FORMATS = ("segments", "openai", "anthropic", "text")


@click.command()
@memory_options
@click.option("--session", "session_id", metavar="ID", help="The session it contains.")
@click.option("--query", help="What memories are searched for.")
@click.option("--task", "task_id", metavar="ID", help="The task whose shared state it contains.")
@click.option("--shared", metavar="SCOPE", help="The scope of shared state, such as global.")
@click.option("--system", help="The system text.")
@click.option("--model", help="A known model, which gives the window.")
@click.option("--window", type=click.IntRange(min=1), help="The tokens of the model.")
@click.option("--reserve", type=click.IntRange(min=0), help="The tokens for the output.")
@click.option("--strategy", type=click.Choice(_STRATEGIES), help="Which turns are taken.")
@click.option("--format", type=click.Choice(_FORMATS), help="What is printed with --json.")
@click.option("--show", "shown", metavar="ID", help="Show this stored context again.")
@json_option
@click.argument("user", metavar="[TEXT]", required=False)
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    as_json: bool,
    shown: str | None,
    format: str | None,
    **wanted: Any,
) -> None:
    """Compile the context for a message TEXT: what a model needs to answer it.

    Prints the segments with their tokens and the text; --json prints everything.
    """
    form: Any = format or ("segments" if as_json else "text")
    with open_client(url, key, agent, data) as client:
        if shown is not None:
            found = client.context.get(shown, format=form)
        else:
            found = client.context(**wanted, format=form)
    if as_json:
        print_json(found)
    else:
        _print(found)


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
    if found.text is not None:
        click.echo(f"\n{found.text}")
