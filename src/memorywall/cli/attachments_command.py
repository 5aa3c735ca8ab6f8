"""`memorywall attachments`."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import BinaryIO

import click

from memorywall.cli.options import json_option, memory_options, open_client
from memorywall.cli.output import print_json, print_table
from memorywall.sdk.client import Client
from memorywall.sdk.groups import AttachmentsClient

_INTENT = "int_"
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


@command.command("list", short_help="List the files of an entry or an intent.")
@memory_options
@json_option
@_parent
def list_(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    as_json: bool,
    parent: str,
) -> None:
    """List the files of the entry or intent with the id PARENT, oldest first."""
    with open_client(url, key, agent, data) as client:
        files = _files_of(client, parent).list(parent)
    if as_json:
        print_json(files)
        return
    print_table(
        ["id", "file", "type", "bytes", "by", "created"],
        (
            [one.id, one.filename, one.mime_type, one.size, one.uploaded_by, one.created_at]
            for one in files
        ),
    )


@command.command(short_help="Attach a file.")
@memory_options
@_fencing_option
@click.option("--type", "mime_type", help="The media type; by default that of the file's name.")
@_parent
@click.argument("file", type=click.Path(path_type=Path))
def add(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    fencing_token: int | None,
    mime_type: str | None,
    parent: str,
    file: Path,
) -> None:
    """Attach FILE to the entry or intent with the id PARENT. Prints the id of the attachment."""
    guessed = mime_type or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    with open_client(url, key, agent, data) as client:
        made = _files_of(client, parent).upload(
            parent, file.name, file.read_bytes(), mime_type=guessed, fencing_token=fencing_token
        )
    click.echo(made.id)


@command.command(short_help="Save the content of a file.")
@memory_options
@click.option(
    "--output",
    type=click.File("wb", lazy=True),
    default="-",
    help="A file; - for standard output, the default.",
)
@_parent
@_attachment
def save(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    output: BinaryIO,
    parent: str,
    attachment: str,
) -> None:
    """Write the content of ATTACHMENT of the entry or intent PARENT to a file."""
    with open_client(url, key, agent, data) as client:
        output.write(_files_of(client, parent).download(parent, attachment))


@command.command(short_help="Delete a file.")
@memory_options
@_fencing_option
@_parent
@_attachment
def delete(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    fencing_token: int | None,
    parent: str,
    attachment: str,
) -> None:
    """Delete ATTACHMENT of the entry or intent PARENT permanently."""
    with open_client(url, key, agent, data) as client:
        _files_of(client, parent).delete(parent, attachment, fencing_token=fencing_token)
    click.echo(f"{attachment} is deleted")


def _files_of(client: Client, parent: str) -> AttachmentsClient:
    return client.attachments if parent.startswith(_INTENT) else client.memory.attachments
