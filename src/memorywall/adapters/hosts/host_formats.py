"""The declared formats of hosts, from `host_formats.toml`."""

from __future__ import annotations

import os
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec


class McpFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file with the MCP servers of a host.

    file: below the host's folder, or from `~`
    file_in_variable: below the folder that the environment variable names; default: `file`
    at: the names that lead to the table of servers
    entry: what a server has besides its command
    """

    file: str
    file_in_variable: str | None = None
    at: tuple[str, ...]
    entry: dict[str, Any] = {}


class HooksFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file with the hooks of a host, which are lists by event in the table `hooks`.

    is_nested: whether an element of a list has its commands in a list `hooks`
    entry: what a command has besides it
    constant: what a new file has besides its hooks
    """

    file: str
    is_nested: bool = False
    entry: dict[str, Any] = {}
    constant: dict[str, Any] = {}


class HookEvents(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The events before a prompt is sent, and after its reply is complete."""

    prompt: str
    reply: str


class HookFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of what a hook reads.

    session, turn: the ids of the conversation, and of a prompt and its reply
    prompt, reply: the texts
    is_repeated: whether there was a reply to the prompt before this one
    folders: the folder or the folders that the host works in
    """

    session: str
    turn: str
    prompt: str
    reply: str
    is_repeated: str | None = None
    folders: str


class HookOutput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the hook before a prompt prints.

    constant: the object
    context: the names that lead to the text for the model
    """

    constant: dict[str, Any]
    context: tuple[str, ...]


class TranscriptFormat(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The lines of a stored conversation. A name with dots leads into objects.

    files: a pattern below the host's folder
    where: what the fields of a message's line are equal to
    roles, content, date, session: the fields of a message; without a session that of the file name
    turn: the fields with the id of a prompt and its reply, in any line; it holds until the next
    leave_out: fields that are true in lines that are no message of the conversation
    prefixes: beginnings of texts that the host wrote in the name of the user
    tags: the tags in which the host wraps what the user wrote
    """

    files: str
    where: dict[str, str] = {}
    roles: str
    content: str
    date: str | None = None
    session: str | None = None
    turn: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class HostFormat(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What memorywall knows of a host.

    tried, date: the version with which it was tried and when; without one when it was written
    after_connecting: what its user does next
    """

    title: str
    tried: str | None = None
    date: str
    home: str
    home_variable: str | None = None
    after_connecting: str
    mcp: McpFile
    hooks: HooksFile
    events: HookEvents
    fields: HookFields
    output: HookOutput
    transcript: TranscriptFormat

    @property
    def folder(self) -> Path:
        """The host's folder of this user."""
        return Path(self._named_folder or self.home).expanduser()

    @property
    def mcp_file(self) -> Path:
        """The file with the MCP servers."""
        if self._named_folder and self.mcp.file_in_variable:
            return self.folder / self.mcp.file_in_variable
        return self.folder / Path(self.mcp.file).expanduser()

    @property
    def hooks_file(self) -> Path:
        """The file with the hooks."""
        return self.folder / self.hooks.file

    @property
    def _named_folder(self) -> str | None:
        return os.environ.get(self.home_variable) if self.home_variable else None


@cache
def host_formats() -> dict[str, HostFormat]:
    """The formats by the names of the hosts."""
    text = resources.files(__package__).joinpath("host_formats.toml").read_bytes()
    return msgspec.toml.decode(text, type=dict[str, HostFormat])
