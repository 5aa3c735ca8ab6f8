"""`memorywall tenants`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memorywall.cli.options import (
    administer,
    place_options,
    print_result,
    storage_options,
    tenant_of_key,
)
from memorywall.cli.output import as_table, print_table
from memorywall.records.errors import ConfigurationError
from memorywall.records.quota import Quota
from memorywall.service.administration.tenants import (
    create_tenant,
    get_quota,
    list_tenants,
    set_quota,
)
from memorywall.settings import Settings

if TYPE_CHECKING:
    from memorywall.sdk.client import Client

    Place = Client | Settings


@click.group()
def command() -> None:
    """Create and list tenants, which are isolated from each other, and limit what they store.

    `list` and `quota` also ask a server about the tenant of the key; tenants are created in a
    store.
    """


@command.command()
@click.argument("name")
@storage_options
def create(name: str, storage: Settings) -> None:
    """Create a tenant."""
    if not administer(storage, lambda context: create_tenant(context, name), may_create=True):
        raise ConfigurationError("there is a tenant of this name already")
    click.echo(f"created tenant {name}")


@command.command("list")
@place_options
@print_result(as_table(("tenant", str)))
def list_(place: Place) -> list[str]:
    """List tenants. A server shows that of the key."""
    if not isinstance(place, Settings):
        return [tenant_of_key(place)]
    return administer(place, list_tenants)


_QUOTA = ("entries", "bytes", "used_entries", "used_bytes")


def _show_quota(quota: dict[str, int | None]) -> None:
    print_table(
        ["", "used", "quota"],
        ([one, quota[f"used_{one}"], _or_none(quota[one])] for one in ("entries", "bytes")),
    )


@command.command()
@click.argument("name")
@click.option("--entries", type=click.IntRange(min=0), help="The most entries of all tiers.")
@click.option(
    "--bytes", "size", type=click.IntRange(min=0), help="The most bytes of their values, as JSON."
)
@click.option("--none", "to_none", is_flag=True, help="Remove the quota.")
@place_options
@print_result(_show_quota)
def quota(
    name: str, entries: int | None, size: int | None, to_none: bool, place: Place
) -> dict[str, int | None]:
    """Show the quota of a tenant and its usage, or set the quota. A limit that is not given is
    removed. An administrator of the tenant may set a lower quota."""
    wanted = Quota(entries=entries, bytes=size)
    if to_none and not wanted.is_empty:
        raise ConfigurationError("give a quota or --none, not both")
    changes = to_none or not wanted.is_empty
    if not isinstance(place, Settings):
        tenant_of_key(place, name)
        shown = place.set_quota(entries=entries, bytes=size) if changes else place.quota()
        return {one: getattr(shown, one) for one in _QUOTA}
    if changes:
        administer(place, lambda context: set_quota(context, name, wanted))
    applies, usage = administer(place, lambda context: get_quota(context, name))
    return {
        "entries": applies.entries,
        "bytes": applies.bytes,
        "used_entries": usage.entries,
        "used_bytes": usage.bytes,
    }


def _or_none(limit: int | None) -> int | str:
    return "none" if limit is None else limit
