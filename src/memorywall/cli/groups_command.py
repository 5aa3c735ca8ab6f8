"""`memorywall groups`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.cli.options import client_options, json_option, open_client
from memorywall.cli.output import print_fields, print_json, print_table
from memorywall.records.group import GroupKind
from memorywall.wire.groups import GroupResponse

_group_argument = click.argument("group")
_principal_argument = click.argument("principal")


@click.group()
def command() -> None:
    """List and change groups of principals.

    Grants of namespaces and access lists of intents name a group as group:NAME. Changes are for
    administrators of the tenant.
    """


@command.command("list")
@client_options
@json_option
def list_(
    url: str | None, key: str | None, agent: str | None, data: Path | None, as_json: bool
) -> None:
    """List the groups of the tenant, or the agent's own."""
    with open_client(url, key, agent, data) as client:
        groups = client.groups.list()
    if as_json:
        print_json(groups)
        return
    print_table(
        ["group", "kind", "created by", "created"],
        ([one.name, one.kind.value, one.created_by, one.created_at] for one in groups),
    )


@command.command()
@client_options
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in GroupKind]),
    default=GroupKind.TEAM.value,
    show_default=True,
    help="What the members have in common.",
)
@json_option
@_group_argument
def create(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    kind: str,
    as_json: bool,
    group: str,
) -> None:
    """Create GROUP without members, or change its kind."""
    with open_client(url, key, agent, data) as client:
        _print(client.groups.create(group, kind=kind), as_json)


@command.command()
@client_options
@json_option
@_group_argument
def show(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    as_json: bool,
    group: str,
) -> None:
    """Show GROUP and its members."""
    with open_client(url, key, agent, data) as client:
        _print(client.groups.get(group), as_json)


@command.command()
@client_options
@_group_argument
def delete(
    url: str | None, key: str | None, agent: str | None, data: Path | None, group: str
) -> None:
    """Delete GROUP; grants that name it have no effect from then on."""
    with open_client(url, key, agent, data) as client:
        client.groups.delete(group)


@command.command()
@client_options
@_group_argument
@_principal_argument
def add(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    group: str,
    principal: str,
) -> None:
    """Add PRINCIPAL to GROUP."""
    with open_client(url, key, agent, data) as client:
        client.groups.add(group, principal)


@command.command()
@client_options
@_group_argument
@_principal_argument
def remove(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    group: str,
    principal: str,
) -> None:
    """Remove PRINCIPAL from GROUP, with effect on its next request."""
    with open_client(url, key, agent, data) as client:
        client.groups.remove(group, principal)


def _print(group: GroupResponse, as_json: bool) -> None:
    if as_json:
        print_json(group)
        return
    print_fields(
        (("group", group.name), ("kind", group.kind.value), ("created by", group.created_by))
    )
    click.echo()
    print_table(
        ["member", "added by", "added"],
        ([one.principal_id, one.added_by, one.added_at] for one in group.members),
    )
