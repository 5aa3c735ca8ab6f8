"""`memorywall facts`."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import click

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.entries import print_entry, print_entry_json
from memorywall.cli.entry_fields import read_value
from memorywall.cli.options import all_options
from memorywall.cli.output import print_all_fields, print_table
from memorywall.cli.table_options import given_options, renamed_option, table_options
from memorywall.kinds.facts import Fact
from memorywall.records.errors import ConfigurationError
from memorywall.wire.facts import NodeResponse, QueryFactsResponse, WalkFactsResponse

if TYPE_CHECKING:
    from memorywall.sdk.models import MemoryEntry

_namespace = click.option("--namespace", default="facts", show_default=True)
_asked = all_options(
    _namespace,
    click.option("--limit", type=click.IntRange(1, 1_000), default=100, show_default=True),
    click.option("--valid-at", help="What held then: an instant, a date, or any."),
    click.option("--as-of", help="What was known at this RFC 3339 instant or date."),
)


@click.group()
def command() -> None:
    """Store facts, and find them by patterns and walks.

    Facts, entities and ontologies are entries: `memorywall put --kind entity` stores one, and
    `memorywall export` and `import` move them.
    """


@memory_command(command, print_entry, short_help="Store a fact.", show_json=print_entry_json)
@_namespace
@table_options(Fact, "valid_from", "valid_until", "confidence")
@renamed_option("--about", "subjects", multiple=True, help="A person that the fact is about.")
@click.argument("subject")
@click.argument("relation")
@click.argument("object")
def add(
    client: Client, subject: str, relation: str, object: str, namespace: str,
    subjects: tuple[str, ...], **fields: Any,
) -> MemoryEntry:  # fmt: skip
    """Store the fact that SUBJECT has RELATION to OBJECT, a name, a number or a truth value."""
    return client.facts.add(
        subject, relation, _literal(object), given_options(fields), namespace=namespace,
        subjects=subjects,
    )  # fmt: skip


def _name(node: NodeResponse) -> str:
    return str(node.value) if node.id is None else f"{node.value} ({node.id})"


def _show_rows(found: QueryFactsResponse) -> None:
    names = sorted({name for row in found.rows for name in row.values})
    columns = [*names, "facts"]
    rows = [
        [*(_name(row.values[name]) for name in names), " ".join(row.facts)] for row in found.rows
    ]
    print_table(columns, rows)


def _show_nodes(found: WalkFactsResponse) -> None:
    rows = [[str(one.hops), _name(one), " ".join(one.path)] for one in found.nodes]
    print_table(["hops", "node", "facts"], rows)


@memory_command(command, _show_rows, short_help="Find facts by patterns.")
@_asked
@click.option("--filter", "filters", multiple=True, help="Such as `?age >= 18`; several times.")
@click.option("--order-by", help="The variable that orders the rows.")
@click.option("--descending", is_flag=True, help="Order from the greatest value.")
@click.argument("patterns", metavar="PATTERN...", nargs=-1, required=True)
def query(
    client: Client, patterns: tuple[str, ...], filters: tuple[str, ...], **options: Any
) -> QueryFactsResponse:
    """Print what makes every PATTERN match. A pattern is a subject, a relation and an object, and
    words that begin with ? are variables; `not` before it means that no such fact holds. Names of
    several words stand in quotation marks."""
    return client.facts.query(
        [_pattern(one) for one in patterns], filters=[_three(one) for one in filters], **options
    )


@memory_command(command, _show_nodes, short_help="Walk over facts.")
@_asked
@click.option("--hops", type=click.IntRange(1, 4), default=1, show_default=True)
@click.option("--relation", "relations", multiple=True, help="Only this one; several times.")
@click.option(
    "--direction", type=click.Choice(["out", "in", "both"]), default="both", show_default=True
)
@click.argument("start", nargs=-1, required=True)
def walk(client: Client, start: tuple[str, ...], **options: Any) -> WalkFactsResponse:
    """Print what facts connect with START, a name or the id of an entity."""
    return client.facts.walk(start, **options)


@memory_command(command, print_all_fields, short_help="Count what an ontology would change.")
@_namespace
@click.argument("ontology")
def check(client: Client, ontology: str, namespace: str) -> Any:
    """Count the stored entities and facts that ONTOLOGY, JSON or @ and the name of a file, would
    leave, change, drop or refuse. Nothing is stored."""
    return client.facts.check(read_value(ontology, "ONTOLOGY"), namespace=namespace)


def _pattern(text: str) -> dict[str, Any]:
    words = text.strip()
    negated = words.startswith("not ")
    subject, relation, found = _three(words.removeprefix("not "))
    return {"subject": subject, "relation": relation, "object": found, "negated": negated}


def _three(text: str) -> tuple[str, str, Any]:
    """Three words, of which the last one may be a number or a truth value."""
    try:
        first, second, third = shlex.split(text)
    except ValueError:
        raise ConfigurationError(
            "give three words, and names of several words in quotation marks"
        ) from None
    return first, second, _literal(third)


def _literal(text: str) -> Any:
    """The number or truth value that a text is, or else the text."""
    try:
        literal = json.loads(text)
    except ValueError:
        return text
    return literal if isinstance(literal, bool | int | float) else text
