"""`memorywall serve`."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path

import click

from memorywall.assembly import settings_for
from memorywall.cli.store_option import store_option
from memorywall.records.errors import ConfigurationError
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.settings import DEFAULT_DATA, DEFAULT_PORT, DEFAULT_TENANT, EMBEDDER_ENVIRONMENT
from memorywall.wall.administration import create_key, revoke_key
from memorywall.wall.door import Door

_DEV_PRINCIPAL = "dev"
_DEV_KEY = "dev-key"
_MEGABYTE = 1024 * 1024


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_DATA,
    show_default=True,
    help="The data directory; made if missing.",
)
@store_option
@click.option(
    "--store-connections",
    type=click.IntRange(min=2),
    help="Connections to PostgreSQL at most.",
)
@click.option(
    "--store-deadline",
    type=click.FloatRange(min=0.1),
    help="Seconds PostgreSQL has to answer a request.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=DEFAULT_PORT,
    show_default=True,
    help="The port; 0 picks one.",
)
@click.option("--dev", is_flag=True, help="Make a key for trying things out, in DATA/dev-key.")
@click.option("--allow-remote", is_flag=True, help="Allow an address other machines can reach.")
@click.option("--episodic-capacity", type=click.IntRange(min=1), help="Entries per agent.")
@click.option("--working-capacity", type=click.IntRange(min=1), help="Entries per task.")
@click.option(
    "--embedder",
    envvar=EMBEDDER_ENVIRONMENT,
    help="What turns texts into vectors for search: none (words only), static, local,"
    " onnx:FOLDER, or the address of an embeddings endpoint with #MODEL.",
)
@click.option(
    "--recall-memory",
    type=click.IntRange(min=1),
    metavar="MEGABYTES",
    help="Of entries held in memory to search in, besides those being searched.",
)
@click.option("--author-field", metavar="NAME", help="The field of a value that says who said it.")
@click.option("--date-field", metavar="NAME", help="The field of a value that says when.")
@click.option("--sweep-interval", type=click.FloatRange(min=0.1), help="Seconds between sweeps.")
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
) -> None:
    """Start the server on an embedded SQLite database, or one of several on a PostgreSQL one."""
    # Imported here because every other command does without a web server.
    from memorywall.server.logs import configure_logs
    from memorywall.server.serve import listen, serve

    if not allow_remote and not _is_loopback(host):
        raise ConfigurationError(
            f"{host} can be reached from other machines; say --allow-remote if that is meant"
        )
    configure_logs(log_level)
    given = {
        "store": store or None,
        "store_connections": store_connections,
        "store_deadline": store_deadline,
        "episodic_capacity": episodic_capacity,
        "working_capacity_per_task": working_capacity,
        "embedder": embedder or None,
        "recall_memory": None if recall_memory is None else recall_memory * _MEGABYTE,
        "recall_author_field": author_field,
        "recall_date_field": date_field,
        "sweep_interval": sweep_interval,
    }
    settings = settings_for(data, **{name: to for name, to in given.items() if to is not None})
    listener = listen(host, port)

    async def opened(door: Door) -> None:
        await _revoke_dev_key(door)
        if dev:
            key = await _make_dev_key(door)
            click.echo(f"memorywall: the development key is {key} (kept in {data / _DEV_KEY})")
        address, bound, *_ = listener.getsockname()
        what = settings.database if settings.store is None else "PostgreSQL"
        click.echo(f"memorywall: serving {what} at http://{address}:{bound}/docs")

    serve(settings, listener, opened)
    click.echo("memorywall: stopped")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _revoke_dev_key(door: Door) -> None:
    """Takes back the key of an earlier start: it may do everything, and was for that start only."""
    path = door.settings.database.with_name(_DEV_KEY)
    if path.exists():
        prefix = path.read_text(encoding="ascii", errors="replace").partition(".")[0]
        await revoke_key(door, prefix)
        path.unlink()


async def _make_dev_key(door: Door) -> str:
    """A fresh key with every permission, in the tenant `default`."""
    path = door.settings.database.with_name(_DEV_KEY)
    key, _ = await create_key(
        door, DEFAULT_TENANT, _DEV_PRINCIPAL, PrincipalKind.SERVICE, list(Permission)
    )
    # Where the store is a server and the key is in the environment, nothing has made it yet.
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key + "\n")
    return key
