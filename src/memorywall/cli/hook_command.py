"""`memorywall hook`."""

from __future__ import annotations

import sys

import click
import msgspec

from memorywall.adapters.hosts.connection import HostConnection, require_connection
from memorywall.adapters.hosts.hook import drain_spool, run_hook
from memorywall.adapters.hosts.spool import Spool
from memorywall.cli.output import count_of
from memorywall.records.clock import SystemClock

_LAST_LINES = 5


@click.command()
@click.option("--drain", is_flag=True, help="Store the turns that wait, instead.")
@click.option("--status", is_flag=True, help="Show what waits and what went wrong, instead.")
@click.argument("connection")
def command(connection: str, drain: bool, status: bool) -> None:
    """Recall and keep turns, as the hook of a coding agent.

    `memorywall connect` adds this command to the configuration of a host, which writes each event
    as JSON to standard input. It never fails because of memory: turns wait in a file until memory
    can be reached.
    """
    found = require_connection(connection)
    if status:
        _show_status(found)
    elif drain:
        counts = drain_spool(found, SystemClock())
        click.echo(f"{count_of(counts.stored, 'turn')} stored, {counts.refused} refused")
    else:
        _run(found)


def _run(connection: HostConnection) -> None:
    try:
        given = msgspec.json.decode(sys.stdin.buffer.read(), type=dict)
    except (ValueError, RecursionError):
        click.echo("memorywall hook: the host wrote no JSON object; nothing is kept", err=True)
        return
    output = run_hook(connection, given, SystemClock())
    if output is not None:
        click.echo(msgspec.json.encode(output))


def _show_status(connection: HostConnection) -> None:
    waiting = len(Spool(connection.folder).read().turns)
    click.echo(f"{count_of(waiting, 'turn')} waiting in {connection.folder}")
    log = connection.folder / "hooks.log"
    if log.exists():
        for line in log.read_text(encoding="utf-8").splitlines()[-_LAST_LINES:]:
            click.echo(f"  {line}")
