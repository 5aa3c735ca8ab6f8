"""`memorywall namespaces`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.cli.options import client_options, json_option, open_client
from memorywall.cli.output import print_fields, print_json, print_table
from memorywall.records.namespace import Access
from memorywall.wire.agents import NamespaceResponse

_namespace_argument = click.argument("namespace")
_agent_argument = click.argument("grantee", metavar="AGENT")
_levels = click.Choice([level.value for level in Access])


@click.group()
def command() -> None:
    """List shared namespaces and change their permissions.

    Shared namespaces contain semantic, procedural and shared memory. AGENT is the name of an agent,
    or group:NAME. Changes are for administrators of the namespace.
    """


@command.command("list")
@client_options
@json_option
def list_(
    url: str | None, key: str | None, agent: str | None, data: Path | None, as_json: bool
) -> None:
    """List the namespaces that the agent has access to."""
    with open_client(url, key, agent, data) as client:
        found = client.memory.namespaces()
    if as_json:
        print_json(found)
        return
    print_table(["namespace", "access"], ([one.namespace, one.access.value] for one in found))


@command.command()
@client_options
@json_option
@_namespace_argument
def show(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    as_json: bool,
    namespace: str,
) -> None:
    """Show NAMESPACE and its permissions."""
    with open_client(url, key, agent, data) as client:
        _print(client.memory.namespace(namespace), as_json)


@command.command()
@client_options
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
@json_option
@_namespace_argument
def update(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    default: str | None,
    last_write_wins: bool | None,
    indexed_paths: tuple[str, ...],
    no_indexed_paths: bool,
    version: int | None,
    as_json: bool,
    namespace: str,
) -> None:
    """Change the default level and the rules of NAMESPACE; what is not named stays."""
    if no_indexed_paths and indexed_paths:
        raise click.UsageError("give --indexed-path or --no-indexed-paths")
    with open_client(url, key, agent, data) as client:
        changed = client.memory.set_permissions(
            namespace,
            default=default,
            last_write_wins=last_write_wins,
            indexed_paths=indexed_paths if indexed_paths or no_indexed_paths else None,
            version=version,
        )
        _print(changed, as_json)


@command.command()
@client_options
@click.option(
    "--episodic",
    is_flag=True,
    help="Let the members of the group read each other's episodic memory in the namespace.",
)
@json_option
@_namespace_argument
@_agent_argument
@click.argument("access", type=_levels)
def grant(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    episodic: bool,
    as_json: bool,
    namespace: str,
    grantee: str,
    access: str,
) -> None:
    """Give AGENT a level in NAMESPACE; the other grants stay."""
    with open_client(url, key, agent, data) as client:
        _print(client.memory.grant(namespace, grantee, access, episodic=episodic), as_json)


@command.command()
@client_options
@json_option
@_namespace_argument
@_agent_argument
def revoke(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    as_json: bool,
    namespace: str,
    grantee: str,
) -> None:
    """Remove the grant of AGENT in NAMESPACE; the default level applies to it from then on."""
    with open_client(url, key, agent, data) as client:
        _print(client.memory.revoke(namespace, grantee), as_json)


def _print(namespace: NamespaceResponse, as_json: bool) -> None:
    if as_json:
        print_json(namespace)
        return
    print_fields(
        (
            ("namespace", namespace.namespace),
            ("version", namespace.version),
            ("access", namespace.access.value),
            ("default", namespace.permissions.default.value),
            ("last write wins", "yes" if namespace.last_write_wins else "no"),
            ("indexed paths", ", ".join(namespace.indexed_paths)),
        )
    )
    if namespace.permissions.allow:
        click.echo()
        print_table(
            ["agent", "access", "episodic"],
            (
                [one.agent, one.access.value, "yes" if one.episodic else ""]
                for one in namespace.permissions.allow
            ),
        )
