"""`memorywall set`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from memorywall.cli.entries import print_entry
from memorywall.cli.options import client_options, json_option, open_client
from memorywall.records.entry import Origin
from memorywall.records.errors import ConfigurationError, MemoryNotFoundError
from memorywall.records.tier import Tier
from memorywall.sdk.client import Client
from memorywall.sdk.models import MemoryEntry
from memorywall.tiers import NAMESPACE_TIERS


@click.command()
@client_options
@click.option(
    "--type", "memory_type", type=click.Choice([tier.value for tier in Tier]), help="The tier."
)
@click.option("--tag", "tags", multiple=True, help="A tag; the given tags replace all tags.")
@click.option("--task", "task_id", help="The task to bind it to.")
@click.option("--intent", "intent_id", help="The intent to bind the entry to.")
@click.option("--session", "session_id", help="The session to bind the entry to.")
@click.option("--kind", help="The kind of the value; its schema is checked.")
@click.option("--subject", "subjects", multiple=True, help="A person that the entry is about.")
@click.option("--origin", type=click.Choice(get_args(Origin)), help="Where the value came from.")
@click.option("--source", help="The URI of what the value was taken from.")
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
    session_id: str | None,
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
    named = {"task_id": task_id, "intent_id": intent_id, "session_id": session_id}
    scope = {name: bound for name, bound in named.items() if bound is not None}
    if scope:
        given["scope"] = scope
    content = _read_value(value)
    with open_client(url, key, agent, data) as client:
        # The entry is read first, so that the update names the version that was read.
        if session_id is not None:
            found = _find_in_session(client, namespace, entry_key, memory_type, session_id)
            if found is None and version is not None:
                raise MemoryNotFoundError("there is no entry with this name in this session")
            if found is not None:
                given["scope"] = {**msgspec.to_builtins(found.scope), **scope}
        elif version is None:
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


def _find_in_session(
    client: Client, namespace: str, key: str, memory_type: Tier | None, session_id: str
) -> MemoryEntry | None:
    """The caller's entry of this name in a session, where a name is unique. The client counts it
    as seen, and no entry of another session."""
    own = client.whoami().agent_id
    page = client.memory.query(
        namespace=namespace, key=key, memory_type=memory_type, session_id=session_id
    )
    found = [one for one in page if one.agent_id == own or one.memory_type in NAMESPACE_TIERS]
    return min(found, key=lambda one: tuple(Tier).index(one.memory_type), default=None)


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
