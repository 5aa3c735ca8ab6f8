"""`memorywall kinds`."""

from __future__ import annotations

from typing import Any

import click

from memorywall.cli.client_command import Client, client_command
from memorywall.cli.output import as_table, print_json
from memorywall.wire.kinds import KindResponse

Found = list[KindResponse] | dict[str, Any]

_KINDS = as_table(
    "kind", "version", "tier=memory_type|any", "written by=governed_by|any write", "description"
)


def _show(found: Found) -> None:
    if isinstance(found, list):
        _KINDS(found)
    else:
        print_json(found)


@client_command(show=_show)
@click.argument("kind", required=False)
def command(client: Client, kind: str | None) -> Found:
    """Show the kinds of values of the server, or print the JSON Schema of the values of KIND.

    They are those of /api/v1/schemas. `memorywall schemas` is about the schemas of namespaces.
    """
    return client.schemas() if kind is None else client.schema(kind).schema
