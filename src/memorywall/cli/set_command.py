"""`memorywall set`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from memorywall.cli.entries import print_entry
from memorywall.cli.entry_fields import field_options, given_fields, read_value
from memorywall.cli.options import json_option, memory_options, open_client
from memorywall.records.errors import MemoryNotFoundError
from memorywall.records.tier import Tier
from memorywall.sdk.client import Client
from memorywall.sdk.models import MemoryEntry
from memorywall.tiers import NAMESPACE_TIERS


@click.command()
@memory_options
@field_options
@click.option("--version", type=int, help="Update the entry only at this version.")
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
    given, scope = given_fields(fields, task_id, intent_id, session_id)
    content = read_value(value)
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
