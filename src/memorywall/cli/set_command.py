"""`memorywall set`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from memorywall.cli.entries import print_entry
from memorywall.cli.options import client_options, json_option, open_client
from memorywall.records.errors import ConfigurationError
from memorywall.records.tier import Tier


@click.command()
@client_options
@click.option(
    "--type", "memory_type", type=click.Choice([tier.value for tier in Tier]), help="The tier."
)
@click.option("--tag", "tags", multiple=True, help="A tag; the given tags replace all tags.")
@click.option("--task", "task_id", help="The task to bind it to.")
@click.option("--intent", "intent_id", help="The intent to bind the entry to.")
@click.option("--ttl", help="task_lifetime, or duration: followed by an ISO 8601 duration.")
@click.option("--expires-at", help="An RFC 3339 instant.")
@click.option("--pinned/--not-pinned", default=None, help="Exempt from eviction or not.")
@click.option("--priority", type=click.Choice(["low", "normal", "high"]))
@click.option(
    "--sensitivity", type=click.Choice(["public", "internal", "confidential", "restricted"])
)
@click.option("--version", type=int, help="Update the entry only at this version.")
@click.option(
    "--fencing-token",
    type=int,
    envvar="MEMORYWALL_FENCING_TOKEN",
    help="The fencing token of the claim or task.",
)
@json_option
@click.argument("namespace")
@click.argument("entry_key", metavar="KEY")
@click.argument("value")
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    task_id: str | None,
    intent_id: str | None,
    as_json: bool,
    namespace: str,
    entry_key: str,
    value: str,
    memory_type: Tier | None,
    version: int | None,
    fencing_token: int | None,
    **fields: Any,
) -> None:
    """Create or update an entry. VALUE is a JSON object, @FILE, or - for standard input."""
    given = {name: field for name, field in fields.items() if field not in (None, ())}
    scope = {"task_id": task_id, "intent_id": intent_id}
    if any(scope.values()):
        given["scope"] = {name: bound for name, bound in scope.items() if bound is not None}
    content = _read_value(value)
    with open_client(url, key, agent, data) as client:
        if version is None:
            # The entry is read first, so that the update names the version that was read.
            client.memory.get(namespace, entry_key, memory_type)
        entry = client.memory.set(
            namespace,
            entry_key,
            content,
            memory_type,
            version=version,
            fencing_token=fencing_token,
            **given,
        )
        print_entry(entry, as_json)


def _read_value(text: str) -> dict[str, Any]:
    if text == "-":
        text = sys.stdin.read()
    elif text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{text[1:]} cannot be read") from error
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigurationError("VALUE must be a JSON object, such as '{\"done\": 3}'") from error
