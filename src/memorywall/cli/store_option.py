"""The option that names a PostgreSQL database, in a module that imports no client."""

from __future__ import annotations

import click

from memorywall.settings import STORE_ENVIRONMENT

store_option = click.option(
    "--store",
    envvar=STORE_ENVIRONMENT,
    metavar="URL",
    help="A PostgreSQL database (postgresql://...) instead of a file in the data directory.",
)
