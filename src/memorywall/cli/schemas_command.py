"""`memorywall schemas`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TextIO

import click
import msgspec

from memorywall.cli.options import client_options, json_option, open_client
from memorywall.cli.output import print_json, print_table
from memorywall.records.errors import ValidationError

_namespace = click.argument("namespace")
_name = click.argument("name")


@click.group()
def command() -> None:
    """Show, set and check the JSON Schemas that an administrator gives a namespace.

    They are those of /api/v1/memory/schemas. `memorywall kinds` shows the schemas of kinds, which
    are part of the server and are at /api/v1/schemas.
    """


@command.command("list", short_help="List the schemas of a namespace.")
@client_options
@json_option
@_namespace
def list_(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    as_json: bool,
    namespace: str,
) -> None:
    """List the schemas of NAMESPACE."""
    with open_client(url, key, agent, data) as client:
        schemas = client.value_schemas.list(namespace)
    if as_json:
        print_json(schemas)
        return
    print_table(
        ["name", "version", "keys", "updated"],
        ([one.name, one.version, one.key_pattern or "*", one.updated_at] for one in schemas),
    )


@command.command(short_help="Show a JSON Schema.")
@client_options
@click.option("--version", type=click.IntRange(min=0), help="A major version; default: the newest.")
@_namespace
@_name
def get(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    version: int | None,
    namespace: str,
    name: str,
) -> None:
    """Print the schema NAME of NAMESPACE, as JSON."""
    with open_client(url, key, agent, data) as client:
        print_json(client.value_schemas.get(namespace, name, version=version))


@command.command(short_help="Give a namespace a schema.")
@client_options
@click.option("--version", required=True, help="The semantic version, such as 1.2.0.")
@click.option("--key-pattern", help="A glob of the keys it applies to; default: every key.")
@_namespace
@_name
@click.argument("file", type=click.File(encoding="utf-8"))
def put(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    version: str,
    key_pattern: str | None,
    namespace: str,
    name: str,
    file: TextIO,
) -> None:
    """Give NAMESPACE the schema NAME, or the schema a new version.

    FILE contains the JSON Schema; - is standard input.
    """
    schema = _read(file)
    with open_client(url, key, agent, data) as client:
        stored = client.value_schemas.put(
            namespace, name, schema, version=version, key_pattern=key_pattern
        )
    click.echo(f"{stored.name} {stored.version}")


@command.command(short_help="Delete a schema.")
@client_options
@_namespace
@_name
def delete(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    namespace: str,
    name: str,
) -> None:
    """Delete the schema NAME of NAMESPACE with all its versions."""
    with open_client(url, key, agent, data) as client:
        client.value_schemas.delete(namespace, name)
    click.echo(f"{name} is deleted")


@command.command(short_help="List entries that do not fit.")
@client_options
@json_option
@_namespace
def check(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    as_json: bool,
    namespace: str,
) -> None:
    """List the entries of NAMESPACE that do not fit its schemas, of those that the agent may
    read."""
    violations, checked, before = [], 0, None
    with open_client(url, key, agent, data) as client:
        while True:
            page = client.value_schemas.check(namespace, before=before, limit=500)
            violations += page.violations
            checked += page.checked
            before = page.next
            if before is None:
                break
    if as_json:
        print_json({"violations": violations, "checked": checked})
        return
    print_table(
        ["id", "key", "schema", "version", "place", "keyword"],
        (
            [one.entry_id, one.key, one.schema, one.schema_version, one.pointer, one.keyword]
            for one in violations
        ),
    )
    click.echo(f"{checked} entries checked")


def _read(file: TextIO) -> dict[str, Any]:
    """The JSON object in a file. Raises ValidationError."""
    try:
        return msgspec.json.decode(file.read(), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ValidationError("the file must contain one JSON object") from None
