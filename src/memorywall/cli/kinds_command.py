"""`memorywall kinds`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.cli.options import client_options, json_option, open_client
from memorywall.cli.output import print_json, print_table


@click.command()
@client_options
@json_option
@click.argument("kind", required=False)
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    as_json: bool,
    kind: str | None,
) -> None:
    """Show the kinds of values of the server, or print the JSON Schema of the values of KIND.

    They are those of /api/v1/schemas. `memorywall schemas` is about the schemas of namespaces.
    """
    with open_client(url, key, agent, data) as client:
        if kind is not None:
            print_json(client.schema(kind).schema)
            return
        kinds = client.schemas()
    if as_json:
        print_json(kinds)
        return
    print_table(
        ["kind", "version", "tier", "written by", "description"],
        (
            [
                one.kind,
                one.version,
                one.memory_type or "any",
                ", ".join(one.governed_by) or "any write",
                one.description,
            ]
            for one in kinds
        ),
    )
