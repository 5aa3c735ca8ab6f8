"""`memorywall serve`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from memorywall.cli.setting_options import configured
from memorywall.configuration.reader import Configuration
from memorywall.configuration.values import is_loopback
from memorywall.records.errors import AuthenticationError, ConfigurationError
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.service.access.api_keys import ApiKeyAuthenticator
from memorywall.service.administration.tenants import create_key, revoke_key
from memorywall.service.requests.services import SharedServices
from memorywall.settings import DEFAULT_TENANT

_DEV_PRINCIPAL = "dev"
_DEV_KEY = "dev-key"


@click.command()
@configured
@click.option("--dev", is_flag=True, help="Use the key in DATA/dev-key; create it if missing.")
def command(configuration: Configuration, dev: bool) -> None:
    """Start the server on an embedded SQLite database or on a PostgreSQL database.

    A setting without a flag here comes from an environment variable or from the settings file; see
    memorywall config show.
    """
    # Imported here, because no other command needs a web server.
    from memorywall.adapters.mcp.endpoint import mcp_endpoints
    from memorywall.server.logs import configure_logs
    from memorywall.server.serve import listen, serve

    settings = configuration.settings
    if not settings.allow_remote and not is_loopback(settings.host):
        raise ConfigurationError(
            f"other machines can connect to {settings.host}; pass --allow-remote to allow this"
        )
    if settings.openwop_test_seams and not is_loopback(settings.host):
        raise ConfigurationError(
            "--openwop-test-seams is for tests on this machine; listen on 127.0.0.1 or leave it out"
        )
    configure_logs(settings.log_level)
    listener = listen(settings.host, settings.port)

    async def opened(service: SharedServices) -> None:
        if dev:
            key = await _load_dev_key(service)
            if key is None:
                await _revoke_dev_key(service)
                key = await _make_dev_key(service)
            kept = configuration.data / _DEV_KEY
            # What is no terminal is often a log, in which no key belongs.
            shown = f"{key} (kept in {kept})" if sys.stdout.isatty() else f"in {kept}"
            click.echo(f"memorywall: the development key is {shown}")
        else:
            await _revoke_dev_key(service)
        address, bound, *_ = listener.getsockname()
        what = settings.sqlite_path if settings.database_url is None else "PostgreSQL"
        scheme = "http" if settings.tls_cert is None else "https"
        click.echo(f"memorywall: serving {what} at {scheme}://{address}:{bound}/docs")

    serve(settings, listener, opened, mcp_endpoints())
    click.echo("memorywall: stopped")


def _dev_key_file(service: SharedServices) -> Path:
    return service.settings.sqlite_path.with_name(_DEV_KEY)


def _read_dev_key(service: SharedServices) -> str | None:
    """The text in the file of the development key; None without the file."""
    path = _dev_key_file(service)
    return path.read_text(encoding="ascii", errors="replace").strip() if path.exists() else None


async def _load_dev_key(service: SharedServices) -> str | None:
    """The development key of an earlier start; None without one that is accepted and has every
    permission."""
    key = _read_dev_key(service)
    if key is None:
        return None
    try:
        found = await ApiKeyAuthenticator(service).authenticate(key, None)
    except AuthenticationError:
        return None
    return key if found.permissions >= frozenset(Permission) else None


async def _revoke_dev_key(service: SharedServices) -> None:
    """Revokes the development key of an earlier start, which had every permission."""
    key = _read_dev_key(service)
    if key is not None:
        await revoke_key(service, key.partition(".")[0])
        _dev_key_file(service).unlink()


async def _make_dev_key(service: SharedServices) -> str:
    """A fresh key with every permission, in the tenant `default`."""
    path = _dev_key_file(service)
    key, _ = await create_key(
        service, DEFAULT_TENANT, _DEV_PRINCIPAL, PrincipalKind.SERVICE, list(Permission)
    )
    # With PostgreSQL and a key in the environment, the directory may not exist yet.
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key + "\n")
    return key
