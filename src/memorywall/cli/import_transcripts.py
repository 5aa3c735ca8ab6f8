"""`memorywall import-chat --host`: the conversations that a coding agent has stored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import click
from click.core import ParameterSource
from tqdm import tqdm

from memorywall.adapters.hosts.host_formats import host_formats
from memorywall.adapters.hosts.spool import SpooledTurn
from memorywall.adapters.hosts.transcripts import read_transcript, transcript_files
from memorywall.adapters.hosts.turn_store import REFUSALS, chunks, store_turns
from memorywall.cli.client_command import Client, given_users
from memorywall.cli.output import count_of
from memorywall.records.errors import ConfigurationError, MemorywallError

_OF_ENTRIES = ("namespace", "tier", "tags", "sensitivity")
"""Options that turns of sessions do not have."""


def import_transcripts(client: Client, host: str, file: BinaryIO | None) -> None:
    """Adds the turns of stored conversations to the sessions of the host; existing ones stay.

    file: one conversation; None for all of the host
    Raises ConfigurationError.
    """
    context = click.get_current_context()
    for option in _OF_ENTRIES:
        if context.get_parameter_source(option) is ParameterSource.COMMANDLINE:
            raise click.UsageError("--host stores turns of sessions; leave out what is of entries")
    form = host_formats()[host]
    paths = transcript_files(form) if file is None else [Path(file.name)]
    if not paths:
        raise ConfigurationError(f"{form.title} has stored no conversations in {form.folder}")
    users, added, known, refused = given_users(), 0, 0, 0
    for path in tqdm(paths, unit=" conversations", leave=False, disable=None):
        for turns in chunks(read_transcript(form.transcript, path)):
            try:
                new, gone = _store(client, host, users, turns)
            except MemorywallError as error:
                raise ConfigurationError(
                    f"{error.detail}; {count_of(added, 'turn')} are imported; run the same command"
                    " again to continue"
                ) from error
            added, refused, known = added + new, refused + gone, known + len(turns) - new - gone
    if file is not None and not added + known + refused:
        raise ConfigurationError(f"{file.name} has no turns of {form.title}; nothing is imported")
    click.echo(
        f"{count_of(added, 'turn')} of {count_of(len(paths), 'conversation')} imported, {known}"
        f" existed already, {refused} refused",
        err=True,
    )


def _store(
    client: Client, host: str, users: Sequence[str], turns: Sequence[SpooledTurn]
) -> tuple[int, int]:
    """Returns how many turns are new, and how many are refused."""
    said_at = min(turn.said_at for turn in turns)
    bound = client.for_user(*users, said_at=said_at) if users else client
    try:
        return bound.driver.run(store_turns(host, users[0] if users else None, turns)), 0
    except REFUSALS as error:
        if len(turns) == 1:
            click.echo(f"a turn of {said_at} is refused: {error.detail}", err=True)
            return 0, 1
    each = [_store(client, host, users, [turn]) for turn in turns]
    return sum(new for new, _ in each), sum(gone for _, gone in each)
