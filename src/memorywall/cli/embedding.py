"""Embedding in a store that a command has opened, which runs only as long as the command."""

from __future__ import annotations

import time

import click
from tqdm import tqdm

from memorywall.cli.client_command import Client

_LOOK_SECONDS = 0.2
_PATIENCE_SECONDS = 30.0
"""Seconds without progress; a command must not wait forever for an unavailable endpoint."""


def wait_until_embedded(client: Client) -> None:
    """Waits until all entries are embedded, with a progress bar. An interrupt ends the wait, and
    the next process that opens the store continues."""
    embedding = client.ready().embedding
    if embedding.model is None:
        return
    behind = embedding.backlog
    moved = time.monotonic()
    try:
        with tqdm(total=behind, unit=" changes", desc="embed", leave=False, disable=None) as bar:
            while behind and time.monotonic() - moved < _PATIENCE_SECONDS:
                time.sleep(_LOOK_SECONDS)
                left = client.ready().embedding.backlog
                if left < behind:
                    bar.update(behind - left)
                    moved = time.monotonic()
                behind = left
    except KeyboardInterrupt:
        behind = client.ready().embedding.backlog
    if behind:
        click.echo(
            f"{behind} changes are not embedded yet; the next to open the store goes on", err=True
        )
