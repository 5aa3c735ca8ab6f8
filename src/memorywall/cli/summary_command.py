"""`memorywall summary`."""

from __future__ import annotations

from pathlib import Path

import click

from memorywall.cli.options import json_option, memory_options, open_client
from memorywall.cli.output import print_fields, print_json


@click.command()
@memory_options
@json_option
def command(
    url: str | None, key: str | None, agent: str | None, data: Path | None, as_json: bool
) -> None:
    """Show counts and sizes of an agent's memory."""
    with open_client(url, key, agent, data) as client:
        summary = client.memory.summary()
    if as_json:
        print_json(summary)
        return
    working, episodic = summary.working, summary.episodic
    print_fields(
        [
            ("agent", summary.agent_id),
            ("working", f"{working.entry_count} entries, {working.total_size_kb} KB"),
            ("working tasks", ", ".join(working.tasks_with_memory)),
            (
                "episodic",
                f"{episodic.entry_count} of {episodic.capacity} entries,"
                f" {episodic.pinned_count} pinned, {episodic.total_size_kb} KB",
            ),
            ("oldest episode", episodic.oldest_entry),
            ("newest episode", episodic.newest_entry),
            ("namespaces", ", ".join(summary.semantic_namespaces_accessible)),
        ]
    )
