"""`memorywall search`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memorywall.cli.options import hits_option, json_option, memory_options, open_client
from memorywall.cli.search_output import print_search
from memorywall.cli.table_options import table_options
from memorywall.records.recall import (
    HIGHEST_DENSE_WEIGHT,
    EntryOutcome,
    Mode,
)
from memorywall.records.tier import Tier
from memorywall.wire.recall import SearchRequest


@click.command()
@memory_options
@click.option("--context", help="The text before the query, such as the turn before; counts less.")
@click.option("--namespace", help="A namespace, or a prefix followed by *.")
@click.option(
    "--type", "memory_type", type=click.Choice([tier.value for tier in Tier]), help="The tier."
)
@click.option("--tag", "tags", multiple=True, help="All of these tags.")
@click.option("--any-tag", "tags_any", multiple=True, help="Any of these tags.")
@click.option("--task", "task_id", help="The task that the entry is bound to.")
@click.option("--intent", "intent_id", help="The intent that the entry is bound to.")
@click.option("--session", "session_id", help="The session that the entry is bound to.")
@table_options(SearchRequest, "kind", "status", "state", "subject", "origin", "source")
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in Mode]),
    default=Mode.HYBRID.value,
    show_default=True,
    help="Search by words and meaning (hybrid), by words (lexical), or by meaning (dense), which"
    " needs an embedder.",
)
@click.option(
    "--outcome",
    type=click.Choice([outcome.value for outcome in EntryOutcome]),
    default=EntryOutcome.ANY.value,
    show_default=True,
    help="The outcome that the entry reports.",
)
@hits_option
@click.option("--min-trust", type=click.FloatRange(0, 1), help="The least trust of an entry.")
@click.option(
    "--dense-weight",
    type=click.FloatRange(0, HIGHEST_DENSE_WEIGHT),
    help="The weight of meaning in the mode hybrid, if words have weight 1; default: the server's.",
)
@click.option(
    "--as-of",
    help="Search the entries as they were at this RFC 3339 instant, such as 2026-11-01T00:00:00Z.",
)
@click.option("--explain", is_flag=True, help="Show the parts of each score.")
@json_option
@click.argument("words", nargs=-1, required=True)
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    words: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Find the best entries for a query, by words and by meaning.

    Scores are comparable only within one search. With an embedder, a search also returns entries
    that hardly fit the query, at the end.
    """
    wanted = {name: value for name, value in options.items() if value not in (None, ())}
    with open_client(url, key, agent, data) as client:
        found = client.memory.search(" ".join(words), **wanted)
    print_search(found, as_json=as_json, mode=options["mode"])
