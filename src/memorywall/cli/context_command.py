"""`memorywall context`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memorywall.cli.options import json_option, memory_options, open_client
from memorywall.cli.output import print_json, print_table
from memorywall.wire.contexts import ContextResponse

_STRATEGIES = ("recency", "importance", "compaction", "hierarchical")
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


def _print(found: ContextResponse) -> None:
    print_table(
        ["segment", "items", "tokens", "budget"],
        ([one.name, len(one.items), one.tokens, one.budget] for one in found.segments),
    )
    room = found.window - found.reserve
    click.echo(f"{found.tokens} of {room} tokens; {len(found.dropped)} items left out")
    if found.id is not None:
        click.echo(f"id {found.id}")
    if found.erased:
        click.echo(f"erased since: {', '.join(found.erased)}")
    if found.text is not None:
        click.echo(f"\n{found.text}")
