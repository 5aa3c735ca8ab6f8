"""`memorywall put`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memorywall.cli.entries import print_entry
from memorywall.cli.entry_fields import field_options, given_fields, read_value
from memorywall.cli.options import json_option, memory_options, open_client
from memorywall.records.tier import Tier


@click.command()
@memory_options
@field_options
@click.option("--if-match", type=int, help="Replace the entry only at this version.")
@click.option("--if-absent", is_flag=True, help="Create the entry and never replace one.")
@json_option
@click.argument("namespace")
@click.argument("entry_key", metavar="KEY")
@click.argument("value")
def command(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    task_id: str | None,
    intent_id: str | None,
    session_id: str | None,
    as_json: bool,
    namespace: str,
    entry_key: str,
    value: str,
    memory_type: Tier | None,
    if_match: int | None,
    if_absent: bool,
    **fields: Any,
) -> None:
    """Create an entry, or replace its value. VALUE is a JSON object, @FILE, or - for standard
    input.

    Fields that are not given stay as they are. Without --if-match, the entry is replaced at the
    version that it has now.
    """
    if if_absent and if_match is not None:
        raise click.UsageError("give --if-match or --if-absent, and not both")
    given, _ = given_fields(fields, task_id, intent_id, session_id)
    content = read_value(value)
    with open_client(url, key, agent, data) as client:
        entry = client.memory.put(
            namespace,
            entry_key,
            content,
            memory_type,
            version=if_match,
            if_absent=if_absent,
            **given,
        )
        print_entry(entry, as_json)
