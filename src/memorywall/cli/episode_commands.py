"""`memorywall episodes` and `memorywall profile`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.output import as_table
from memorywall.cli.table_options import given_options, table_options
from memorywall.wire.episodes import ProfileQuery, ProfileResponse, RecallEpisodesRequest

if TYPE_CHECKING:
    from memorywall.sdk.episodes import RecalledEpisodes


@click.group()
def command() -> None:
    """The commands of long-term memory, each of which `main` has by its own name."""


@command.group()
def episodes() -> None:
    """Recall episodes: what was tried, and how it ended."""


_TABLE = as_table("id=entry.id", ("score", lambda one: f"{one.score:.3f}"), "text", widest=None)


def _show(found: RecalledEpisodes) -> None:
    _TABLE(found.episodes)


@memory_command(episodes, _show)
@table_options(
    RecallEpisodesRequest, "profile", "outcome", "weights", "min_similarity", "budget_tokens",
    "limit", "agent_id", "namespace", "about",
)  # fmt: skip
@click.argument("words", nargs=-1, required=True)
def recall(client: Client, words: tuple[str, ...], **options: Any) -> RecalledEpisodes:
    """Find the episodes that help with a task, best first; its class sets what helps."""
    return client.recall_episodes(" ".join(words), **given_options(options))


def _print(found: ProfileResponse) -> None:
    click.echo(found.text or "nothing that you may read says anything about this person")


@memory_command(command, _print)
@table_options(ProfileQuery, "tokens")
@click.argument("subject", metavar="PERSON")
def profile(client: Client, subject: str, **options: Any) -> ProfileResponse:
    """Show the stable and recent facts about PERSON that you may read, each with its source."""
    return client.profile(subject, **given_options(options))
