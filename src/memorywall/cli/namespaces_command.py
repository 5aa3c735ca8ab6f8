"""`memorywall namespaces`."""

from __future__ import annotations

from typing import Any

import click

from memorywall.cli.client_command import Client, client_command
from memorywall.cli.options import limit_option
from memorywall.cli.output import as_fields, as_table
from memorywall.cli.plain_commands import Plain, add_plain_commands
from memorywall.records.namespace import Access
from memorywall.wire.namespaces import EntryNamespaceListResponse, NamespaceResponse

_FIELDS = as_fields(
    "namespace", "version", "access", "default=permissions.default",
    "last write wins=last_write_wins|no", "indexed paths=indexed_paths",
)  # fmt: skip
_GRANTS = as_table("agent", "access", "episodic")
_USED = as_table("namespace", "entries")
_namespace_argument = click.argument("namespace")
_agent_argument = click.argument("grantee", metavar="AGENT")
_levels = click.Choice([level.value for level in Access])


def _show(namespace: NamespaceResponse) -> None:
    _FIELDS(namespace)
    if namespace.permissions.allow:
        click.echo()
        _GRANTS(namespace.permissions.allow)


def _show_used(found: EntryNamespaceListResponse) -> None:
    _USED(found.namespaces)


@click.group()
def command() -> None:
    """List shared namespaces and change their permissions.

    Shared namespaces contain semantic, procedural and shared memory. AGENT is the name of an agent,
    or group:NAME. Changes are for administrators of the namespace.
    """


add_plain_commands(
    command,
    Plain("list", "memory.namespaces", "list_namespaces",
          "List the namespaces that the agent has access to.", as_table("namespace", "access")),
    Plain("used", "memory.entry_namespaces", "list_entry_namespaces",
          "List the namespaces of the entries that the agent may read, of every tier.\n\n"
          "--after continues a list.", _show_used,
          [click.option("--after", "after_namespace", help="Only namespaces after this one."),
           limit_option(100)],
          short_help="List the namespaces of entries."),
    Plain("show NAMESPACE", "memory.namespace", "get_namespace",
          "Show NAMESPACE and its permissions.", _show),
)  # fmt: skip


def _check_paths(given: dict[str, Any]) -> None:
    if given["no_indexed_paths"] and given["indexed_paths"]:
        raise click.UsageError("give --indexed-path or --no-indexed-paths")


@client_command(command, _show, prepare=_check_paths)
@click.option("--default", type=_levels, help="The level of agents without a grant.")
@click.option(
    "--last-write-wins/--no-last-write-wins",
    default=None,
    help="Whether a put without a version replaces an entry.",
)
@click.option(
    "--indexed-path",
    "indexed_paths",
    multiple=True,
    help="A path whose values are indexed for queries, such as value.customer.tier; several times"
    " for several paths. The paths replace all earlier ones.",
)
@click.option("--no-indexed-paths", is_flag=True, help="Remove all indexed paths.")
@click.option("--version", type=int, help="Change the namespace only at this version.")
@_namespace_argument
def update(
    client: Client,
    namespace: str,
    indexed_paths: tuple[str, ...],
    no_indexed_paths: bool,
    **changes: Any,
) -> NamespaceResponse:
    """Change the default level and the rules of NAMESPACE; what is not named stays."""
    paths = indexed_paths if indexed_paths or no_indexed_paths else None
    return client.memory.set_permissions(namespace, indexed_paths=paths, **changes)


@client_command(command, _show)
@click.option(
    "--episodic",
    is_flag=True,
    help="Let the members of the group read each other's episodic memory in the namespace.",
)
@_namespace_argument
@_agent_argument
@click.argument("access", type=_levels)
def grant(
    client: Client, namespace: str, grantee: str, access: str, episodic: bool
) -> NamespaceResponse:
    """Give AGENT a level in NAMESPACE; the other grants stay."""
    return client.memory.grant(namespace, grantee, access, episodic=episodic)


@client_command(command, _show)
@_namespace_argument
@_agent_argument
def revoke(client: Client, namespace: str, grantee: str) -> NamespaceResponse:
    """Remove the grant of AGENT in NAMESPACE; the default level applies to it from then on."""
    return client.memory.revoke(namespace, grantee)
