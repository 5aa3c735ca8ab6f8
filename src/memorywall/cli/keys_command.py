"""`memorywall keys`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memorywall.cli.options import (
    administer,
    json_option,
    place_options,
    print_result,
    storage_options,
    tenant_of_key,
    tenant_option,
)
from memorywall.cli.output import as_table, print_json
from memorywall.cli.table_options import renamed_option
from memorywall.records.errors import ConfigurationError, ResourceNotFoundError
from memorywall.records.principal import (
    DEFAULT_OVERLAP,
    DEFAULT_PERMISSIONS,
    ApiKey,
    Permission,
    PrincipalKind,
)
from memorywall.service.access.key_records import KeyRotation
from memorywall.service.administration.key_rotation import (
    master_key_status,
    rewrap_data_keys,
    rotate_data_key,
)
from memorywall.service.administration.tenants import (
    create_key,
    known_tenant,
    list_keys,
    list_tenants,
    revoke_key,
    rotate_key,
)
from memorywall.service.encryption.key_file import begin_rotation, retire_old_keys
from memorywall.service.requests.services import SharedServices
from memorywall.settings import Settings
from memorywall.wire.keys import KeyResponse

if TYPE_CHECKING:
    from memorywall.sdk.client import Client

    Place = Client | Settings


def _columns(*names: str) -> list[tuple[str, Callable[[Any], Any]]]:
    return [(name, itemgetter(name)) for name in names]


_KEYS = as_table(
    *_columns("prefix", "tenant", "agent", "kind"),
    ("permissions", lambda key: ", ".join(key["permissions"])),
    ("namespaces", lambda key: ", ".join(key["namespaces"])),
    *_columns("created_at", "expires_at", "last_used_at", "revoked_at", "successor"),
    widest=None,
)
_UNKNOWN = "there is no key with this prefix; see `memorywall keys list`"
_LEDGER_LEFT = (
    "the suppression ledger needs an older key; run `memorywall keys rotate-master` as a user that"
    " can write its directory"
)


@click.group()
def command() -> None:
    """Create, list, rotate and revoke API keys, at once, also on a running server.

    `create`, `list`, `rotate` and `revoke` ask a server, or open the store that --data or --store
    names.
    """


def _show_new(made: dict[str, object]) -> None:
    click.echo(made["key"])
    click.echo("This key is shown only once; store it for the agent.", err=True)


@command.command()
@place_options
@tenant_option
@click.option("--agent", required=True, help="The agent, user or service of the key.")
@click.option("--kind", type=click.Choice([kind.value for kind in PrincipalKind]), default="agent")
@click.option(
    "--permission",
    "permissions",
    type=click.Choice([permission.value for permission in Permission]),
    multiple=True,
    help="May be given several times; memory.read and memory.write by default.",
)
@renamed_option(
    "--user",
    "subjects",
    multiple=True,
    help="Limit the key to this person; may be given several times.",
)
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    help="Limit the key to this namespace; may be given several times.",
)
@click.option("--read-only", is_flag=True, help="Keep only permissions that change nothing.")
@click.option("--expires-at", help="An RFC 3339 instant from which the key is refused.")
@print_result(_show_new)
def create(
    place: Place,
    tenant: str,
    agent: str,
    kind: str,
    permissions: tuple[str, ...],
    subjects: tuple[str, ...],
    **limits: Any,
) -> dict[str, object]:
    """Create a key. The key is shown once; only its digest is stored."""
    allowed = frozenset(map(Permission, permissions)) or DEFAULT_PERMISSIONS
    if not isinstance(place, Settings):
        own = tenant_of_key(place)
        made = place.keys.create(
            agent, kind=kind, permissions=sorted(allowed), users=subjects, **limits
        )
        return {"key": made.key, **_public_of_server(own, made)}
    text, key = administer(
        place,
        lambda context: create_key(
            context, tenant, agent, PrincipalKind(kind), allowed, subjects, **limits
        ),
        may_create=True,
    )
    return {"key": text, **_public(key)}


@command.command()
@place_options
@click.argument("prefix")
@click.option("--overlap", help="How long the old key remains valid; default: 24h. 0 for not.")
@click.option("--expires-at", help="The expiry of the new key; default: that of the old key.")
@click.option("--user", help="The person that the key is limited to; required for such a key.")
@print_result(_show_new)
def rotate(
    place: Place, prefix: str, overlap: str | None, expires_at: str | None, user: str | None
) -> dict[str, object]:
    """Replace the key with PREFIX by a key with the same rights, which is shown once.

    The old key ends after the overlap, or at its expiry if that is earlier.
    """
    from memorywall.sdk.fields import duration

    name = _as_prefix(prefix)
    if not isinstance(place, Settings):
        new = place.keys.rotate(name, overlap=overlap, expires_at=expires_at, user=user)
        return {"key": new.key, **_public_of_server(tenant_of_key(place), new)}
    rotation = KeyRotation(
        overlap=duration(overlap or DEFAULT_OVERLAP), expires_at=expires_at, subject=user
    )
    made = administer(place, lambda context: rotate_key(context, name, rotation))
    if made is None:
        raise ConfigurationError(_UNKNOWN)
    text, key = made
    return {"key": text, **_public(key)}


@command.command("list")
@place_options
@click.option("--tenant", help="Only this tenant's keys. A server's key is of one tenant.")
@print_result(_KEYS)
def list_(place: Place, tenant: str | None) -> list[dict[str, object]]:
    """List keys; their secrets are not stored and cannot be shown."""
    if not isinstance(place, Settings):
        own = tenant_of_key(place)
        return [_public_of_server(own, key) for key in place.keys.list()]
    return [_public(key) for key in administer(place, lambda context: list_keys(context, tenant))]


@command.command("rotate-master")
@storage_options
@click.option(
    "--new-key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file with the new key; a random key by default.",
)
@click.option("--status", is_flag=True, help="Only count the data keys that are left.")
@click.option("--retire", is_flag=True, help="Remove the old key after the rotation.")
@json_option
def rotate_master(
    storage: Settings, new_key_file: Path | None, status: bool, retire: bool, as_json: bool
) -> None:
    """Replace the key-encryption key while servers run; may be repeated after an interruption."""
    if status + retire + (new_key_file is not None) > 1:
        raise click.UsageError("give one of --new-key-file, --status and --retire")
    found = administer(storage, master_key_status)
    if not status and not retire:
        begin_rotation(storage, new_key_file)
        administer(storage, rewrap_data_keys)
        found = administer(storage, master_key_status)
    retired = 0
    if retire:
        if found.left:
            raise ConfigurationError(
                f"{found.left:,} data keys need an older key; run `memorywall keys rotate-master`"
            )
        if found.ledger_left:
            raise ConfigurationError(_LEDGER_LEFT)
        retired = retire_old_keys(storage)
    if as_json:
        print_json(asdict(found))
    else:
        if retire:
            click.echo("retired the previous key" if retired else "there is no previous key")
        click.echo(f"newest key {found.newest}: {found.done:,} data keys; {found.left:,} left")
        if found.ledger_left:
            click.echo(_LEDGER_LEFT, err=True)


@command.command("rotate-data")
@storage_options
@tenant_option
@click.option("--agent", help="The agent; by default the data key of the tenant as a whole.")
def rotate_data(storage: Settings, tenant: str, agent: str | None) -> None:
    """Replace a data key, seal all that it has sealed anew, and destroy it."""

    from memorywall.jobs.job_control import run_job
    from memorywall.jobs.reseal import RESEAL_JOB

    async def work(service: SharedServices) -> int | None:
        if not await rotate_data_key(service, tenant, agent or ""):
            return None
        job = await run_job(service, tenant, RESEAL_JOB.name)
        return 0 if job is None else job.done

    resealed = administer(storage, work)
    if resealed is None:
        raise ConfigurationError("nothing is sealed with a data key of this agent or tenant")
    click.echo(f"{resealed:,} entries, records and files are sealed with a new data key")


@command.command("rotate-digest")
@storage_options
@tenant_option
def rotate_digest(storage: Settings, tenant: str) -> None:
    """Start a new digest key for the log of a tenant; earlier digests keep their key."""

    async def work(service: SharedServices) -> str:
        name = await known_tenant(service, tenant)
        if name not in await list_tenants(service):
            raise ConfigurationError("there is no tenant of this name")
        return await service.cipher.rotate_digest_key(service.store, name, service.now())

    click.echo(f"new events are digested with {administer(storage, work)}")


@command.command()
@place_options
@click.argument("prefix")
def revoke(place: Place, prefix: str) -> None:
    """Revoke the key with PREFIX, the part before the dot. Its next request is refused."""
    name = _as_prefix(prefix)
    if isinstance(place, Settings):
        is_known = administer(place, lambda context: revoke_key(context, name))
    else:
        is_known = _revoke_on_server(place, name)
    if not is_known:
        raise ConfigurationError(_UNKNOWN)
    click.echo(f"{name} is revoked")


def _revoke_on_server(client: Client, prefix: str) -> bool:
    try:
        client.keys.revoke(prefix)
    except ResourceNotFoundError:
        return False
    return True


def _as_prefix(key: str) -> str:
    """The prefix of a key. A pasted whole key means its prefix; the secret is not repeated."""
    return key.partition(".")[0]


def _public_of_server(tenant: str, key: KeyResponse) -> dict[str, object]:
    """Returns what `_public` returns, of a key that a server has shown."""
    names = ("permissions", "namespaces", "created_at", "expires_at", "last_used_at", "revoked_at",
             "successor")  # fmt: skip
    own = {"prefix": key.prefix, "tenant": tenant, "agent": key.agent_id, "kind": key.kind}
    return {**own, **{name: getattr(key, name) for name in names}}


def _public(key: ApiKey) -> dict[str, object]:
    return {
        "prefix": key.prefix,
        "tenant": key.tenant,
        "agent": key.principal,
        "kind": key.kind,
        "permissions": sorted(key.permissions),
        "namespaces": list(key.namespaces),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "last_used_at": key.last_used_at,
        "revoked_at": key.revoked_at,
        "successor": key.successor,
    }
