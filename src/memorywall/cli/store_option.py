"""The options that name a PostgreSQL database and a suppression ledger, in a module that imports no
client."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.settings import LEDGER_ENVIRONMENT, STORE_ENVIRONMENT

store_option = click.option(
    "--store",
    envvar=STORE_ENVIRONMENT,
    metavar="URL",
    help="A PostgreSQL database (postgresql://...) instead of a file in the data directory.",
)

ledger_option = click.option(
    "--ledger",
    type=click.Path(path_type=Path, file_okay=False),
    help=f"The directory of the suppression ledger (or {LEDGER_ENVIRONMENT}).",
)
