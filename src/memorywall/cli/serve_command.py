"""`memorywall serve`."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from typing import Any

import click

from memorywall.assembly import settings_for
from memorywall.cli.server_options import server_options, server_settings
from memorywall.cli.store_option import ledger_option, store_option
from memorywall.records.errors import ConfigurationError
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.service.administration import create_key, revoke_key
from memorywall.service.context import ServiceContext
from memorywall.settings import DEFAULT_DATA, DEFAULT_PORT, DEFAULT_TENANT, EMBEDDER_ENVIRONMENT

_DEV_PRINCIPAL = "dev"
_DEV_KEY = "dev-key"
_MEGABYTE = 1024 * 1024


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_DATA,
    show_default=True,
    help="The data directory; created if missing.",
)
@store_option
@ledger_option
@click.option(
    "--store-connections",
    type=click.IntRange(min=2),
    help="The most connections to PostgreSQL.",
)
@click.option(
    "--store-deadline",
    type=click.FloatRange(min=0.1),
    help="Seconds for PostgreSQL to answer a request.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=DEFAULT_PORT,
    show_default=True,
    help="The port; 0 picks one.",
)
@click.option("--dev", is_flag=True, help="Create a development key in DATA/dev-key.")
@click.option(
    "--allow-remote", is_flag=True, help="Allow an address that other machines can connect to."
)
@click.option("--episodic-capacity", type=click.IntRange(min=1), help="Entries per agent.")
@click.option("--working-capacity", type=click.IntRange(min=1), help="Entries per task.")
@click.option(
    "--embedder",
    envvar=EMBEDDER_ENVIRONMENT,
    help="The embedder for search: none (words only), static, local,"
    " onnx:FOLDER, or the URL of an embeddings endpoint with #MODEL.",
)
@click.option(
    "--recall-memory",
    type=click.IntRange(min=1),
    metavar="MEGABYTES",
    help="Megabytes for the search index in memory, besides shards in use.",
)
@click.option("--author-field", metavar="NAME", help="The field of a value that names its author.")
@click.option("--date-field", metavar="NAME", help="The field of a value that contains its date.")
@click.option("--sweep-interval", type=click.FloatRange(min=0.1), help="Seconds between sweeps.")
@server_options
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="How much to log.",
)
def command(
    data: Path,
    store: str | None,
    ledger: Path | None,
    store_connections: int | None,
    store_deadline: float | None,
    host: str,
    port: int,
    dev: bool,
    allow_remote: bool,
    episodic_capacity: int | None,
    working_capacity: int | None,
    embedder: str | None,
    recall_memory: int | None,
    author_field: str | None,
    date_field: str | None,
    sweep_interval: float | None,
    log_level: str,
    **server: Any,
) -> None:
    """Start the server on an embedded SQLite database or on a PostgreSQL database."""
    # Imported here, because no other command needs a web server.
    from memorywall.server.logs import configure_logs
    from memorywall.server.serve import listen, serve

    if not allow_remote and not _is_loopback(host):
        raise ConfigurationError(
            f"other machines can connect to {host}; pass --allow-remote to allow this"
        )
    configure_logs(log_level)
    given = {
        "database_url": store or None,
        "ledger": ledger,
        "pool_size": store_connections,
        "query_timeout": store_deadline,
        "episodic_capacity": episodic_capacity,
        "working_capacity_per_task": working_capacity,
        "embedder": embedder or None,
        "index_cache_bytes": None if recall_memory is None else recall_memory * _MEGABYTE,
        "recall_author_field": author_field,
        "recall_date_field": date_field,
        "expiry_interval": sweep_interval,
        **server_settings(**server),
    }
    settings = settings_for(data, **{name: to for name, to in given.items() if to is not None})
    listener = listen(host, port)

    async def opened(service: ServiceContext) -> None:
        await _revoke_dev_key(service)
        if dev:
            key = await _make_dev_key(service)
            click.echo(f"memorywall: the development key is {key} (kept in {data / _DEV_KEY})")
        address, bound, *_ = listener.getsockname()
        what = settings.sqlite_path if settings.database_url is None else "PostgreSQL"
        scheme = "http" if settings.tls_cert is None else "https"
        click.echo(f"memorywall: serving {what} at {scheme}://{address}:{bound}/docs")

    serve(settings, listener, opened)
    click.echo("memorywall: stopped")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _revoke_dev_key(service: ServiceContext) -> None:
    """Revokes the development key of an earlier start, which had every permission."""
    path = service.settings.sqlite_path.with_name(_DEV_KEY)
    if path.exists():
        prefix = path.read_text(encoding="ascii", errors="replace").partition(".")[0]
        await revoke_key(service, prefix)
        path.unlink()


async def _make_dev_key(service: ServiceContext) -> str:
    """A fresh key with every permission, in the tenant `default`."""
    path = service.settings.sqlite_path.with_name(_DEV_KEY)
    key, _ = await create_key(
        service, DEFAULT_TENANT, _DEV_PRINCIPAL, PrincipalKind.SERVICE, list(Permission)
    )
    # With PostgreSQL and a key in the environment, the directory may not exist yet.
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key + "\n")
    return key
