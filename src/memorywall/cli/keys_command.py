"""`memorywall keys`."""

from __future__ import annotations

import click

from memorywall.cli.options import administer, json_option, place_options, tenant_option
from memorywall.cli.output import print_json, print_table
from memorywall.records.errors import ConfigurationError
from memorywall.records.principal import (
    DEFAULT_PERMISSIONS,
    ApiKey,
    Permission,
    PrincipalKind,
)
from memorywall.settings import Settings
from memorywall.wall.administration import create_key, list_keys, revoke_key


@click.group()
def command() -> None:
    """Create, list and revoke API keys; a running server heeds each at once."""


@command.command()
@place_options
@tenant_option
@click.option("--agent", required=True, help="The agent, user or service the key is for.")
@click.option("--kind", type=click.Choice([kind.value for kind in PrincipalKind]), default="agent")
@click.option(
    "--permission",
    "permissions",
    type=click.Choice([permission.value for permission in Permission]),
    multiple=True,
    help="May be given several times; memory.read and memory.write when left out.",
)
@json_option
def create(
    place: Settings,
    tenant: str,
    agent: str,
    kind: str,
    permissions: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make a key. It is shown this once; only a digest of it is kept."""
    allowed = frozenset(map(Permission, permissions)) or DEFAULT_PERMISSIONS
    text, key = administer(
        place,
        lambda door: create_key(door, tenant, agent, PrincipalKind(kind), allowed),
        may_create=True,
    )
    if as_json:
        print_json({"key": text, **_public(key)})
    else:
        click.echo(text)
        click.echo("This key is shown only now; keep it where the agent finds it.", err=True)


@command.command("list")
@place_options
@click.option("--tenant", help="Only this tenant's keys.")
@json_option
def list_(place: Settings, tenant: str | None, as_json: bool) -> None:
    """List keys; their secrets are not kept and cannot be shown."""
    keys = [_public(key) for key in administer(place, lambda door: list_keys(door, tenant))]
    if as_json:
        print_json(keys)
        return
    headers = ("prefix", "tenant", "agent", "kind", "permissions", "created_at", "revoked_at")
    print_table(headers, ([_cell(key[name]) for name in headers] for key in keys), widest=None)


@command.command()
@place_options
@click.argument("prefix")
def revoke(place: Settings, prefix: str) -> None:
    """Revoke the key with PREFIX, the part before the dot. Its next request is refused."""
    # Who pastes a whole key means its prefix; the secret is not repeated.
    name = prefix.partition(".")[0]
    if not administer(place, lambda door: revoke_key(door, name)):
        raise ConfigurationError("there is no key with this prefix; see `memorywall keys list`")
    click.echo(f"{name} is revoked")


def _public(key: ApiKey) -> dict[str, object]:
    return {
        "prefix": key.prefix,
        "tenant": key.tenant,
        "agent": key.principal,
        "kind": key.kind,
        "permissions": sorted(key.permissions),
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
    }


def _cell(value: object) -> object:
    return ", ".join(value) if isinstance(value, list) else value
