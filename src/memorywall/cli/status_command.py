"""`memorywall status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memorywall.cli.jobs_command import TenantJob, show_jobs
from memorywall.cli.options import (
    administer,
    names_store,
    print_result,
    require_database,
    server_options,
)
from memorywall.cli.output import print_fields, print_table
from memorywall.cli.setting_options import located
from memorywall.configuration.reader import Configuration
from memorywall.diagnosis.state import StoreState, state_of_server, state_of_store
from memorywall.records.errors import MemoryAccessError
from memorywall.settings import Settings

if TYPE_CHECKING:
    from memorywall.sdk.client import Client


def _print(state: StoreState) -> None:
    store, embedding = state.store, state.embedding
    lag = "unknown, the embedder cannot be opened"
    if embedding is not None:
        lag = f"{embedding.model or 'none'}, {embedding.backlog:,} changes to embed"
    print_fields(
        [
            ("status", state.status),
            ("version", state.version),
            ("store", store and f"{store.engine} {store.version}, schema {store.schema}"),
            ("embedding", lag),
        ]
    )
    if not state.tenants:
        return
    click.echo()
    print_table(
        ["tenant", "tier", "entries", "bytes"],
        (
            [one.tenant, tier.memory_type, f"{tier.entries:,}", f"{tier.bytes:,}"]
            for one in state.tenants
            for tier in one.tiers
        ),
    )
    for one in state.tenants:
        for tier in one.tiers:
            for full in tier.nearly_full:
                click.echo(
                    f"nearly full: {tier.memory_type} memory of {full.agent_id} in {one.tenant},"
                    f" {full.entries:,} of {full.capacity:,} entries"
                )
    click.echo()
    show_jobs(TenantJob(one.tenant, job) for one in state.tenants for job in one.jobs)


@click.command()
@located
@server_options
@print_result(_print)
def command(configuration: Configuration, url: str | None, key: str | None) -> StoreState:
    """Show versions, entries by tier, background jobs and the embedding lag.

    Asks a server, or opens the store that --data or --store names, also beside a server. A server
    shows entries and jobs only to an administrator of the tenant.
    """
    if names_store(configuration, url):
        return _open(configuration.settings)
    from memorywall.sdk.client import Client

    with Client(url, key) as client:
        return _ask(client, key)


def _open(storage: Settings) -> StoreState:
    import asyncio

    from memorywall.assembly import is_served

    require_database(storage)
    # Asked first, because on PostgreSQL the connections of this process count as well.
    served = asyncio.run(is_served(storage))
    return administer(storage, lambda service: state_of_store(service, served=served))


def _ask(client: Client, key: str | None) -> StoreState:
    if key:
        try:
            return state_of_server(client.status())
        except MemoryAccessError:
            click.echo("the key is not that of an administrator: no entries, no jobs", err=True)
    ready = client.ready()
    return StoreState(
        status=ready.status,
        version=client.capabilities().version,
        store=None,
        embedding=ready.embedding,
        tenants=[],
    )
