"""`memorywall facts`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any, BinaryIO

import click
import msgspec

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.output import count_of, print_all_fields, print_table
from memorywall.records.errors import ConfigurationError, MemorywallError
from memorywall.wire.facts import NodeResponse, QueryFactsResponse, WalkFactsResponse

_KINDS = ("ontology", "entity", "fact")
"""In the order in which they can be imported."""
_CHUNK = 100
_KEPT = ("namespace", "memory_type", "kind", "value", "tags", "sensitivity", "subjects", "pinned")
"""The fields of an exported entry that an import gives to the new one."""
_namespace = click.option("--namespace", default="facts", show_default=True)
_valid_at = click.option("--valid-at", help="What held then: an instant, a date, or any.")
_as_of = click.option("--as-of", help="What was known at this RFC 3339 instant.")
_limit = click.option("--limit", type=click.IntRange(1, 1_000), default=100, show_default=True)


@click.group()
def command() -> None:
    """Find facts by patterns and walks, and move them between stores.

    Facts, entities and ontologies are entries: `memorywall put --kind fact` stores one.
    """


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
@_namespace
@click.option("--filter", "filters", multiple=True, help="Such as `?age >= 18`; several times.")
@click.option("--order-by", help="The variable that orders the rows.")
@click.option("--descending", is_flag=True, help="Order from the greatest value.")
@_limit
@_valid_at
@_as_of
@click.argument("patterns", metavar="PATTERN...", nargs=-1, required=True)
def query(
    client: Client, patterns: tuple[str, ...], filters: tuple[str, ...], **options: Any
) -> QueryFactsResponse:
    """Print what makes every PATTERN match. A pattern is a subject, a relation and an object, and
    words that begin with ? are variables; `not` before it means that no such fact holds. Names of
    several words stand in quotation marks."""
    return client.facts.query(
        *map(_pattern, patterns), filters=[_three(one) for one in filters], **options
    )


@memory_command(command, _show_nodes, short_help="Walk over facts.")
@_namespace
@click.option("--hops", type=click.IntRange(1, 4), default=1, show_default=True)
@click.option("--relation", "relations", multiple=True, help="Only this one; several times.")
@click.option(
    "--direction", type=click.Choice(["out", "in", "both"]), default="both", show_default=True
)
@_limit
@_valid_at
@_as_of
@click.argument("start", nargs=-1, required=True)
def walk(client: Client, start: tuple[str, ...], **options: Any) -> WalkFactsResponse:
    """Print what facts connect with START, a name or the id of an entity."""
    return client.facts.walk(*start, **options)


@memory_command(command, print_all_fields, short_help="Count what an ontology would change.")
@_namespace
@click.argument("file", type=click.File("rb"))
def check(client: Client, file: BinaryIO, namespace: str) -> Any:
    """Count the stored entities and facts that the ontology in FILE would leave, change, drop or
    refuse. Nothing is stored."""
    return client.facts.check(_object(file.read(), "FILE"), namespace=namespace)


@memory_command(command, name="export", short_help="Write facts as JSON Lines.")
@_namespace
@click.argument("file", type=click.File("wb", lazy=False))
def export_(client: Client, file: BinaryIO, namespace: str) -> None:
    """Write the ontology, the entities and the facts of a namespace to FILE as JSON Lines, - for
    standard output."""
    exported = 0
    for kind in _KINDS:
        for entry in client.memory.export(namespace=namespace, kind=kind):
            fields = msgspec.to_builtins(entry)
            kept = {name: fields[name] for name in ("id", *_KEPT) if fields.get(name) is not None}
            file.write(msgspec.json.encode(kept) + b"\n")
            exported += 1
    click.echo(f"{count_of(exported, 'entry', 'entries')} exported", err=True)


@memory_command(command, name="import", short_help="Create facts from JSON Lines.")
@click.option("--namespace", help="Import into this namespace; default: those of the lines.")
@click.argument("file", type=click.File("rb"))
def import_(client: Client, file: BinaryIO, namespace: str | None) -> None:
    """Create the ontology, the entities and the facts of FILE, which `facts export` has written.
    Entities get new ids, and facts name them by these. Entries are written in batches, all or none;
    the import stops at the first one that is refused. Contradictions become proposals."""
    ids: dict[str, str] = {}
    written = 0
    for chunk in _chunks(file):
        elements = [_element(fields, ids, namespace) for _, fields in chunk]
        try:
            made = client.memory.batch(elements)
        except MemorywallError as error:
            line = chunk[error.index or 0][0]
            raise ConfigurationError(f"line {line}: {error.detail}; the lines before line"
                                     f" {chunk[0][0]} are written") from error  # fmt: skip
        for (_, fields), entry in zip(chunk, made, strict=True):
            ids[str(fields.get("id"))] = entry.id
        written += len(chunk)
    click.echo(f"{count_of(written, 'entry', 'entries')} imported", err=True)


def _chunks(file: BinaryIO) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """The lines of a file with their numbers; entries of another kind begin a new batch, because
    facts name entities of the batch before."""
    chunk: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(file, start=1):
        fields = _object(line, f"line {number}")
        if fields.get("kind") not in _KINDS or not isinstance(fields.get("value"), dict):
            raise ConfigurationError(f"line {number}: it is no fact, entity or ontology")
        is_alias = "alias_of" in fields["value"]
        if chunk and (is_alias or fields["kind"] != chunk[0][1]["kind"] or len(chunk) == _CHUNK):
            yield chunk
            chunk = []
        chunk.append((number, fields))
    if chunk:
        yield chunk


def _element(fields: dict[str, Any], ids: dict[str, str], namespace: str | None) -> dict[str, Any]:
    value = dict(fields["value"])
    for name in ("subject_id", "object_id", "alias_of"):
        if name in value:
            value[name] = ids.get(value[name], value[name])
    value.pop("migrated", None)
    kept = {name: fields[name] for name in _KEPT if name in fields}
    if fields["kind"] == "ontology":
        kept["key"] = "ontology"
    return {**kept, "value": value, "namespace": namespace or fields["namespace"]}


def _object(text: bytes, place: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ConfigurationError(f"{place}: it is not a JSON object") from None


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
    try:
        literal = json.loads(third)
    except ValueError:
        literal = third
    return first, second, literal if isinstance(literal, bool | int | float) else third
