"""`memorywall attachments`."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.output import as_table
from memorywall.wire.attachments import AttachmentResponse

if TYPE_CHECKING:
    from memorywall.sdk.attachments import AttachmentsClient

_INTENT = "int_"
_FILES = as_table(
    "id", "file=filename", "type=mime_type", "bytes=size", "by=uploaded_by", "created=created_at"
)
_parent = click.argument("parent")
_attachment = click.argument("attachment")
_fencing_option = click.option(
    "--fencing-token", type=int, help="The token of the lease or claim of the entry, if it has one."
)


@click.group()
def command() -> None:
    """List, add, save and delete files of entries and intents.

    PARENT is the id of an entry or of an intent, and ATTACHMENT the id of one of its files.
    """


@memory_command(command, _FILES, name="list", short_help="List the files of an entry or an intent.")
@_parent
def list_(client: Client, parent: str) -> Sequence[AttachmentResponse]:
    """List the files of the entry or intent with the id PARENT, oldest first."""
    return _files_of(client, parent).list(parent)


@memory_command(command, short_help="Attach a file.")
@_fencing_option
@click.option("--type", "mime_type", help="The media type; by default that of the file's name.")
@_parent
@click.argument("file", type=click.Path(path_type=Path))
def add(
    client: Client, parent: str, file: Path, fencing_token: int | None, mime_type: str | None
) -> None:
    """Attach FILE to the entry or intent with the id PARENT. Prints the id of the attachment."""
    guessed = mime_type or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    made = _files_of(client, parent).upload(
        parent, file.name, file.read_bytes(), mime_type=guessed, fencing_token=fencing_token
    )
    click.echo(made.id)


@memory_command(command, short_help="Save the content of a file.")
@click.option(
    "--output",
    type=click.File("wb", lazy=True),
    default="-",
    help="A file; - for standard output, the default.",
)
@_parent
@_attachment
def save(client: Client, parent: str, attachment: str, output: BinaryIO) -> None:
    """Write the content of ATTACHMENT of the entry or intent PARENT to a file."""
    output.write(_files_of(client, parent).download(parent, attachment))


@memory_command(command, short_help="Delete a file.")
@_fencing_option
@_parent
@_attachment
def delete(client: Client, parent: str, attachment: str, fencing_token: int | None) -> None:
    """Delete ATTACHMENT of the entry or intent PARENT permanently."""
    _files_of(client, parent).delete(parent, attachment, fencing_token=fencing_token)
    click.echo(f"{attachment} is deleted")


def _files_of(client: Client, parent: str) -> AttachmentsClient:
    return client.attachments if parent.startswith(_INTENT) else client.memory.attachments
