"""`memorywall schemas`."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from memorywall.cli.client_command import Client, client_command
from memorywall.cli.output import as_table, print_json
from memorywall.cli.plain_commands import Plain, add_plain_commands
from memorywall.cli.table_options import table_options
from memorywall.records.errors import ValidationError
from memorywall.wire.value_schemas import ValueSchemaQuery

_LIST = as_table("name", "version", "keys=key_pattern|*", "updated=updated_at")
_VIOLATIONS = as_table(
    "id=entry_id", "key", "schema", "version=schema_version", "place=pointer", "keyword"
)
_LARGEST_PAGE = 500


@click.group()
def command() -> None:
    """Show, set and check the JSON Schemas that an administrator gives a namespace.

    They are those of /api/v1/memory/schemas. `memorywall kinds` shows the schemas of kinds, which
    are part of the server and are at /api/v1/schemas.
    """


add_plain_commands(
    command,
    Plain("list NAMESPACE", "value_schemas.list", "list_value_schemas",
          "List the schemas of NAMESPACE.", _LIST,
          short_help="List the schemas of a namespace."),
    Plain("get NAMESPACE NAME", "value_schemas.get", "get_value_schema",
          "Print the schema NAME of NAMESPACE, as JSON.", print_json,
          [table_options(ValueSchemaQuery, "version")], short_help="Show a JSON Schema."),
    Plain("delete NAMESPACE NAME", "value_schemas.delete", "delete_value_schema",
          "Delete the schema NAME of NAMESPACE with all its versions.",
          short_help="Delete a schema.", done="{name} is deleted"),
)  # fmt: skip


def _read(given: dict[str, Any]) -> None:
    """Reads the JSON object in the file. Raises ValidationError."""
    try:
        given["schema"] = msgspec.json.decode(given.pop("file").read(), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ValidationError("the file must contain one JSON object") from None


@client_command(command, prepare=_read, short_help="Give a namespace a schema.")
@click.option("--version", required=True, help="The semantic version, such as 1.2.0.")
@click.option("--key-pattern", help="A glob of the keys it applies to; default: every key.")
@click.argument("namespace")
@click.argument("name")
@click.argument("file", type=click.File(encoding="utf-8"))
def put(client: Client, namespace: str, name: str, **given: Any) -> None:
    """Give NAMESPACE the schema NAME, or the schema a new version.

    FILE contains the JSON Schema; - is standard input.
    """
    stored = client.value_schemas.put(namespace, name, **given)
    click.echo(f"{stored.name} {stored.version}")


def _show_violations(found: dict[str, Any]) -> None:
    _VIOLATIONS(found["violations"])
    click.echo(f"{found['checked']} entries checked")


@client_command(command, _show_violations, short_help="List entries that do not fit.")
@click.argument("namespace")
def check(client: Client, namespace: str) -> dict[str, Any]:
    """List the entries of NAMESPACE that do not fit its schemas, of those that the agent may
    read."""
    page = client.value_schemas.check(namespace, limit=_LARGEST_PAGE)
    violations, checked = list(page.violations), page.checked
    while page.next is not None:
        page = client.value_schemas.check(namespace, before=page.next, limit=_LARGEST_PAGE)
        violations += page.violations
        checked += page.checked
    return {"violations": violations, "checked": checked}
