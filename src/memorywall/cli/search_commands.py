"""`memorywall search` and `recall`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.options import hits_option, type_option
from memorywall.cli.search_output import print_findings, print_findings_json
from memorywall.cli.table_options import given_options, table_options
from memorywall.records.recall import (
    HIGHEST_DENSE_WEIGHT,
    EntryOutcome,
    Mode,
)
from memorywall.wire.search import SearchRequest

if TYPE_CHECKING:
    from memorywall.sdk.models import SearchResults


@click.group()
def command() -> None:
    """The commands that search, each of which `main` has by its own name."""


_namespace_option = click.option(
    "--namespace", help="Only in this namespace, or a prefix followed by *."
)
_strict_option = click.option(
    "--strict",
    is_flag=True,
    help="Nothing unless it probably answers; only what is about the things that the query names.",
)


def _show(found: SearchResults) -> None:
    print_findings(found)
    if found.model is None and click.get_current_context().params["mode"] == Mode.DENSE:
        click.echo("no embedder is available, which the mode dense needs", err=True)


@memory_command(command, _show, show_json=print_findings_json)
@click.option("--context", help="The text before the query, such as the turn before; counts less.")
@_namespace_option
@type_option
@click.option("--tag", "tags", multiple=True, help="All of these tags.")
@click.option("--any-tag", "tags_any", multiple=True, help="Any of these tags.")
@click.option("--task", "task_id", help="The task that the entry is bound to.")
@click.option("--intent", "intent_id", help="The intent that the entry is bound to.")
@click.option("--session", "session_id", help="The session that the entry is bound to.")
@table_options(SearchRequest, "kind", "status", "state", "about", "origin", "source")
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
    help="Search the entries as they were at this RFC 3339 instant or date, such as 2026-11-01.",
)
@click.option(
    "--valid-at",
    help="Only what holds at this RFC 3339 instant or at the end of this date, by valid_from and"
    " valid_until of the values; `any` for all. Default: now.",
)
@click.option("--min-relevance", type=click.FloatRange(0, 1), help="The least relevance.")
@_strict_option
@click.option("--explain", is_flag=True, help="Show the parts of each score.")
@click.argument("words", nargs=-1, required=True)
def search(client: Client, words: tuple[str, ...], **options: Any) -> SearchResults:
    """Find the best entries for a query, by words and by meaning.

    Scores are comparable only within one search. The relevance of a result is the probability that
    it answers the query. With an embedder, a search also returns entries that hardly fit the query,
    at the end.
    """
    return client.memory.search(" ".join(words), **given_options(options))


@memory_command(command, print_findings, show_json=print_findings_json)
@_namespace_option
@hits_option
@_strict_option
@click.argument("question", nargs=-1, required=True)
def recall(client: Client, question: tuple[str, ...], **options: Any) -> SearchResults:
    """Find the memory that answers a question best; `memorywall search` has conditions.

    Nothing is printed if nothing that was found probably answers it.
    """
    return client.recall(" ".join(question), **given_options(options))
