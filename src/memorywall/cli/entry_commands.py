"""`memorywall get`, `set`, `put`, `merge`, `history`, `remember`, `supersede` and `reinstate`: one
entry."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.entries import print_entries, print_entry, print_entry_json
from memorywall.cli.entry_fields import field_options, given_fields, read_given_value, read_metadata
from memorywall.cli.options import limit_option, type_option
from memorywall.cli.output import as_table
from memorywall.cli.table_options import given_options
from memorywall.records.errors import MemoryNotFoundError
from memorywall.records.tier import Tier
from memorywall.records.worthiness import DUPLICATE
from memorywall.tiers import NAMESPACE_TIERS

if TYPE_CHECKING:
    from memorywall.sdk.models import EntryHistory, MemoryEntry


@click.group()
def command() -> None:
    """The commands of one entry, each of which `main` has by its own name."""


_entry_command = partial(memory_command, command, print_entry, show_json=print_entry_json)
"""Makes a command of a function that returns one entry, which the command prints."""


@_entry_command()
@type_option
@click.option("--version", type=int, help="An earlier version, in a versioned tier.")
@click.option("--as-of", help="The version that was current at this RFC 3339 instant or date.")
@click.option("--schema-version", type=int, help="A major version of schemas that it must fit.")
@click.argument("name")
@click.argument("entry_key", required=False, metavar="[KEY]")
def get(
    client: Client, name: str, entry_key: str | None, memory_type: Tier | None, **asked: Any
) -> MemoryEntry:
    """Show one entry: by id, or by NAMESPACE and KEY in the narrowest tier."""
    if entry_key is None:
        return client.memory.get_by_id(name, **asked)
    found = client.memory.get(name, entry_key, memory_type, **asked)
    if found is None:
        raise MemoryNotFoundError("there is no entry with this namespace and key")
    return found


@_entry_command(prepare=read_given_value, name="set")
@field_options
@click.option("--version", type=int, help="Update the entry only at this version.")
@click.argument("namespace")
@click.argument("entry_key", metavar="KEY")
@click.argument("value")
def set_(
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


def _read_put(given: dict[str, Any]) -> None:
    if given["if_absent"] and given["if_match"] is not None:
        raise click.UsageError("give --if-match or --if-absent, and not both")
    read_given_value(given)


@_entry_command(prepare=_read_put)
@field_options
@click.option("--if-match", type=int, help="Replace the entry only at this version.")
@click.option("--if-absent", is_flag=True, help="Create the entry and never replace one.")
@click.argument("namespace")
@click.argument("entry_key", metavar="KEY")
@click.argument("value")
def put(
    client: Client,
    namespace: str,
    entry_key: str,
    value: dict[str, Any],
    memory_type: Tier | None,
    if_match: int | None,
    session_id: str | None,
    **fields: Any,
) -> MemoryEntry:
    """Create an entry, or replace its value. VALUE is a JSON object, @FILE, or - for standard
    input.

    Fields that are not given stay as they are. Without --if-match, the entry is replaced at the
    version that it has now.
    """
    given = given_fields(fields, session_id)
    return client.memory.put(namespace, entry_key, value, memory_type, version=if_match, **given)


@_entry_command(prepare=read_given_value)
@type_option
@click.option("--fencing-token", type=int, help="The token of the lease or claim.")
@click.argument("namespace")
@click.argument("entry_key", metavar="KEY")
@click.argument("value", metavar="PATCH")
def merge(
    client: Client,
    namespace: str,
    entry_key: str,
    value: dict[str, Any],
    memory_type: str | None,
    fencing_token: int | None,
) -> MemoryEntry:
    """Merge a patch into the value of an entry.

    PATCH is a JSON object, @FILE, or - for standard input: its fields replace those of the value,
    objects are merged, and null removes a field (RFC 7396).
    """
    tier = None if memory_type is None else Tier(memory_type)
    return client.memory.merge(namespace, entry_key, value, tier, fencing_token=fencing_token)


def _check_name(given: dict[str, Any]) -> None:
    if len(given["name"]) > 2:
        raise click.UsageError("give an id, or a namespace and a key")


_EVENTS = as_table("when=timestamp", "type", "by=actor", "version=data.version")


def _print_history(found: EntryHistory) -> None:
    print_entries(found)
    if found.events:
        click.echo()
        _EVENTS(found.events)


@memory_command(command, _print_history, prepare=_check_name)
@limit_option(20, 100)
@click.option(
    "--before-version", type=click.IntRange(min=1), help="Only versions with a smaller number."
)
@click.argument("name", nargs=-1, required=True, metavar="ID | NAMESPACE KEY")
def history(
    client: Client, name: tuple[str, ...], limit: int, before_version: int | None
) -> EntryHistory:
    """List the versions of an entry, newest first.

    Tiers without earlier versions (working, session, episodic) have the current one only, and the
    events of the entry: who changed it when.
    """
    entry_id = name[0]
    if len(name) == 2:
        found = client.memory.get(*name)
        if found is None:
            raise MemoryNotFoundError("there is no entry with this name")
        entry_id = found.id
    return client.memory.history(entry_id, limit=limit, before_version=before_version)


def _print_remembered(entry: MemoryEntry) -> None:
    print_entry(entry)
    if entry.worthiness is not None and not entry.worthiness.worthy:
        rule = entry.worthiness.rule
        is_known = rule == DUPLICATE
        told = "memory says this already" if is_known else f"not worth keeping, by the rule {rule}"
        click.echo(told, err=True)


@memory_command(command, _print_remembered, show_json=print_entry_json, prepare=read_metadata)
@click.option("--metadata", metavar="JSON", help="An object about the text, @FILE, or -.")
@click.option("--tag", "tags", multiple=True, help="A tag.")
@click.option(
    "--ttl",
    help="The lifetime, such as 60s, 30m, 12h, 90d or task_lifetime.",
)
@click.option("--pinned", is_flag=True, default=None, help="Exempt the entry from eviction.")
@click.argument("text", nargs=-1, required=True)
def remember(client: Client, text: tuple[str, ...], **fields: Any) -> MemoryEntry:
    """Store a text as episodic memory, without a tier, a namespace or a key."""
    return client.remember(" ".join(text), **given_options(fields))


_version_option = click.option(
    "--version", type=int, help="Only if the older entry has this version."
)


@_entry_command()
@_version_option
@click.option("--by", "newer_id", required=True, help="The id of the entry that holds instead.")
@click.argument("entry_id", metavar="ID")
def supersede(client: Client, entry_id: str, newer_id: str, version: int | None) -> MemoryEntry:
    """State that another entry supersedes the entry ID: lists and searches leave it out."""
    return client.memory.supersede(entry_id, newer_id, version=version)


@_entry_command()
@_version_option
@click.argument("entry_id", metavar="ID")
def reinstate(client: Client, entry_id: str, version: int | None) -> MemoryEntry:
    """Take back that an entry was superseded."""
    return client.memory.reinstate(entry_id, version=version)
