"""`memorywall groups`."""

from __future__ import annotations

import click

from memorywall.cli.output import as_fields, as_table
from memorywall.cli.plain_commands import Plain, add_plain_commands
from memorywall.records.group import GroupKind
from memorywall.wire.groups import GroupResponse

_LIST = as_table("group=name", "kind", "created by=created_by", "created=created_at")
_FIELDS = as_fields("group=name", "kind", "created by=created_by")
_MEMBERS = as_table("member=principal_id", "added by=added_by", "added=added_at")
_kind_option = click.option(
    "--kind",
    type=click.Choice([kind.value for kind in GroupKind]),
    default=GroupKind.TEAM.value,
    show_default=True,
    help="What the members have in common.",
)


def _show(group: GroupResponse) -> None:
    _FIELDS(group)
    click.echo()
    _MEMBERS(group.members)


@click.group()
def command() -> None:
    """List and change groups of principals.

    Grants of namespaces and access lists of intents name a group as group:NAME. Changes are for
    administrators of the tenant.
    """


add_plain_commands(
    command,
    Plain("list", "groups.list", "list_groups",
          "List the groups of the tenant, or the agent's own.", _LIST),
    Plain("create GROUP", "groups.create", "create_group",
          "Create GROUP without members, or change its kind.", _show, [_kind_option]),
    Plain("show GROUP", "groups.get", "get_group", "Show GROUP and its members.", _show),
    Plain("delete GROUP", "groups.delete", "delete_group",
          "Delete GROUP; grants that name it have no effect from then on."),
    Plain("add GROUP PRINCIPAL", "groups.add", "add_group_member", "Add PRINCIPAL to GROUP."),
    Plain("remove GROUP PRINCIPAL", "groups.remove", "remove_group_member",
          "Remove PRINCIPAL from GROUP, with effect on its next request."),
)  # fmt: skip
