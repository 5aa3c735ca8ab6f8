"""`memorywall summary`."""

from __future__ import annotations

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.output import as_fields
from memorywall.wire.agents import SummaryResponse


def _working(summary: SummaryResponse) -> str:
    working = summary.working
    return f"{working.entry_count} entries, {working.total_size_kb} KB"


def _episodic(summary: SummaryResponse) -> str:
    episodic = summary.episodic
    return (
        f"{episodic.entry_count} of {episodic.capacity} entries,"
        f" {episodic.pinned_count} pinned, {episodic.total_size_kb} KB"
    )


_FIELDS = as_fields(
    "agent=agent_id", ("working", _working), "working tasks=working.tasks_with_memory",
    ("episodic", _episodic), "oldest episode=episodic.oldest_entry",
    "newest episode=episodic.newest_entry", "namespaces=semantic_namespaces_accessible",
)  # fmt: skip


@memory_command(show=_FIELDS)
def command(client: Client) -> SummaryResponse:
    """Show counts and sizes of an agent's memory."""
    return client.memory.summary()
