"""`memorywall set`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.entries import print_entry, print_entry_json
from memorywall.cli.entry_fields import field_options, given_fields, read_given_value
from memorywall.records.errors import MemoryNotFoundError
from memorywall.records.tier import Tier
from memorywall.tiers import NAMESPACE_TIERS

if TYPE_CHECKING:
    from memorywall.sdk.models import MemoryEntry


@memory_command(show=print_entry, show_json=print_entry_json, prepare=read_given_value)
@field_options
@click.option("--version", type=int, help="Update the entry only at this version.")
@click.argument("namespace")
@click.argument("entry_key", metavar="KEY")
@click.argument("value")
def command(
    client: Client,
    namespace: str,
    entry_key: str,
    value: dict[str, Any],
    memory_type: Tier | None,
    version: int | None,
    session_id: str | None,
    **fields: Any,
) -> MemoryEntry:
    """Create or update an entry. VALUE is a JSON object, @FILE, or - for standard input."""
    given = given_fields(fields, session_id)
    # The entry is read first, so that the update names the version that was read.
    if session_id is not None:
        found = _find_in_session(client, namespace, entry_key, memory_type, session_id)
        if found is None and version is not None:
            raise MemoryNotFoundError("there is no entry with this name in this session")
        if found is not None:
            given["scope"] = {**msgspec.to_builtins(found.scope), **given["scope"]}
    elif version is None:
        client.memory.get(namespace, entry_key, memory_type)
    return client.memory.set(namespace, entry_key, value, memory_type, version=version, **given)


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
