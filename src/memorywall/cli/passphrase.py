"""The passphrase of the keys in a backup, from a file, the environment or the terminal."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import click

from memorywall.records.errors import ConfigurationError

VARIABLE = "MEMORYWALL_PASSPHRASE"

passphrase_option = click.option(
    "--passphrase-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"A file with the passphrase of the keys (or {VARIABLE}); asked on a terminal by default.",
)


def ask_passphrase(file: Path | None, *, is_new: bool) -> str:
    """The passphrase of the keys in a backup. A terminal does not show it.

    file: its file, of which only the first line counts; None for the environment or the terminal
    is_new: whether the passphrase is chosen now, so that the terminal asks for it twice

    Raises ConfigurationError if there is none.
    """
    if file is not None:
        return _read(file)
    if passphrase := os.environ.get(VARIABLE):
        return passphrase
    if not sys.stdin.isatty():
        raise ConfigurationError(
            f"give the passphrase of the keys in {VARIABLE} or with --passphrase-file, or run the"
            " command on a terminal"
        )
    text: str = click.prompt(
        "Passphrase of the keys", hide_input=True, confirmation_prompt=is_new, err=True
    )
    return text


def _read(file: Path) -> str:
    try:
        if stat.S_IMODE(file.stat().st_mode) & 0o077:
            raise ConfigurationError(f"{file} can be read by others; `chmod 600` it")
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error
    passphrase = text.partition("\n")[0].removesuffix("\r")
    if not passphrase:
        raise ConfigurationError(f"{file} must hold the passphrase in its first line")
    return passphrase
