"""`memorywall import-chat`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import click
from tqdm import tqdm

from memorywall.adapters.hosts.host_formats import host_formats
from memorywall.cli.chat_files import Message, read_chats
from memorywall.cli.client_command import (
    Client,
    client_command,
    given_connection,
    user_option,
)
from memorywall.cli.embedding import wait_until_embedded
from memorywall.cli.import_transcripts import import_transcripts
from memorywall.cli.output import count_of
from memorywall.cli.worthiness_command import tell_verdicts
from memorywall.records.entry import Scope
from memorywall.records.errors import (
    ConfigurationError,
    EntryExistsError,
    MemoryAccessError,
    MemorywallError,
    RateLimitedError,
    UnavailableError,
)
from memorywall.records.tier import Tier
from memorywall.records.worthiness import Verdict
from memorywall.sdk.errors import MemoryTransportError
from memorywall.service.requests.validation import (
    check_key,
    check_namespace,
    check_scope,
    encode_value,
)

_CHUNK = 100
_LONGEST_TEXT, _BEGINNING = 60_000, 48_000
"""The most bytes of a text in an entry, and those of the beginning of a larger one."""
_FILE = "message.txt"
_INPUT = "stdin"
_AGAIN = "; run the same command again to continue"
_PASSING = (MemoryTransportError, RateLimitedError, UnavailableError)
"""Errors after which the same command may succeed without any change."""
_TIERS = (Tier.SESSION, Tier.EPISODIC, Tier.SEMANTIC)
"""The tiers for conversations; the other tiers are bound to work or contain no conversations."""


@client_command(name="import-chat")
@user_option
@click.option("--namespace", help="The namespace; chat/ and the name of the chat by default.")
@click.option(
    "--type",
    "tier",
    type=click.Choice([tier.value for tier in _TIERS]),
    default=Tier.SESSION.value,
    show_default=True,
    help="The tier.",
)
@click.option("--tag", "tags", multiple=True, help="A tag for every message.")
@click.option(
    "--sensitivity",
    type=click.Choice(["public", "internal", "confidential", "restricted"]),
    default="internal",
    show_default=True,
    help="The sensitivity of every message; confidential and restricted entries are not searched.",
)
@click.option(
    "--host",
    type=click.Choice(list(host_formats())),
    help="Import what this coding agent has stored: FILE, or else all its conversations, into"
    " sessions; what its hooks have kept is not doubled.",
)
@click.argument("file", type=click.File("rb"), required=False)
def command(
    client: Client,
    host: str | None,
    namespace: str | None,
    tier: str,
    tags: tuple[str, ...],
    sensitivity: str,
    file: BinaryIO | None,
) -> None:
    """Import the messages of a chat, each as an entry; - reads standard input.

    FILE contains JSON Lines of messages ({"role", "content"} and the like) or of conversations
    ({"messages": [...]}), a JSON array of either, or LoCoMo. The whole file is
    checked before anything is written. Existing entries are skipped, so that an import can be
    repeated. A text that is larger than an entry goes to a file of the entry. The end tells how
    many messages are not worth keeping; a tenant may refuse those that no person said.
    """
    connection = given_connection()
    if host is None and file is None and connection is not None:
        host = connection.host
    if host is not None:
        import_transcripts(client, host, file)
        return
    if file is None:
        raise click.UsageError("give FILE, or --host")
    messages = read_chats(file.read(), _name_of(file))
    place = _Location(namespace, several=len({one.chat for one in messages}) > 1)
    common = {"memory_type": tier, "tags": list(tags), "sensitivity": sensitivity}
    elements = [_checked(_shortened(message), place) | common for message in messages]
    writer = _Import(client, len(elements))
    written = writer.write(elements)
    names = [(one["namespace"], *_name_in(one)) for one in elements]
    _attach(client, Tier(tier), dict(zip(names, messages, strict=True)))
    known = len(elements) - written
    known -= sum(one is not None and one.refused for one in writer.verdicts)
    click.echo(f"{count_of(written, 'message')} imported, {known} existed already", err=True)
    tell_verdicts(writer.verdicts)
    _tell_left_out(messages)
    if click.get_current_context().params["data"] is not None:
        wait_until_embedded(client)


def _name_of(file: BinaryIO) -> str:
    """The default name of a chat: the name of its file."""
    name = getattr(file, "name", None)
    return Path(name).stem if isinstance(name, str) and not name.startswith("<") else _INPUT


def _shortened(message: Message) -> Message:
    """A message whose text an entry can hold: its beginning, if it is larger."""
    text = message.value["text"].encode()
    if len(text) <= _LONGEST_TEXT:
        return message
    shown = f"{text[:_BEGINNING].decode(errors='ignore')}\n[{len(text)} bytes in the file {_FILE}]"
    return replace(message, value={**message.value, "text": shown})


def _attach(client: Client, tier: Tier, messages: Mapping[tuple[str | None, ...], Message]) -> None:
    """Attaches the text of messages that were shortened to their entries, unless an earlier import
    has done so."""
    large = {name: one for name, one in messages.items() if _shortened(one) is not one}
    for namespace in {name[0] for name in large}:
        for entry in client.memory.export(namespace=namespace, memory_type=tier):
            message = large.get((namespace, entry.scope.session_id, entry.key))
            if message is not None and not client.memory.attachments.list(entry.id):
                content = message.value["text"].encode()
                client.memory.attachments.upload(entry.id, _FILE, content, mime_type="text/plain")


@dataclass(frozen=True, slots=True)
class _Location:
    """The namespaces of chats.

    given: the namespace from the command line; several chats each have a namespace below it
    """

    given: str | None
    several: bool

    def of(self, chat: str) -> str:
        if self.given is None:
            return f"chat/{chat}"
        return f"{self.given}/{chat}" if self.several else self.given


def _checked(message: Message, place: _Location) -> dict[str, Any]:
    """The entry of a message. Raises ConfigurationError for a message that the server would
    refuse."""
    namespace = place.of(message.chat)
    try:
        check_namespace(namespace)
        check_key(message.key)
        check_scope(Scope(session_id=message.session))
        encode_value(message.value)
    except MemorywallError as error:
        raise ConfigurationError(f"{message.place}: {error.detail}; nothing is imported") from error
    return {
        "namespace": namespace,
        "key": message.key,
        "value": message.value,
        "scope": {"session_id": message.session},
    }


class _Import:
    """Writes entries in order, in batches of a hundred, with a progress bar."""

    def __init__(self, client: Client, total: int) -> None:
        self._client = client
        self._total = total
        self._there: dict[str, set[tuple[str | None, str]]] = {}
        self.verdicts: list[Verdict | None] = []

    def write(self, elements: Sequence[dict[str, Any]]) -> int:
        """Writes missing entries; returns the number of new entries."""
        written = 0
        with tqdm(
            total=self._total, unit=" messages", desc="import-chat", leave=False, disable=None
        ) as bar:
            for start in range(0, len(elements), _CHUNK):
                chunk = elements[start : start + _CHUNK]
                try:
                    written += self._write_some(chunk)
                except MemorywallError as error:
                    raise ConfigurationError(
                        f"{error.detail}; {start} of {self._total} messages are imported"
                        + (_AGAIN if isinstance(error, _PASSING) else "")
                    ) from error
                bar.update(len(chunk))
        return written

    def _write_some(self, chunk: Iterable[dict[str, Any]]) -> int:
        waiting = self._new(chunk)
        while waiting:
            try:
                made = self._client.memory.batch(waiting, judge=True)
                self.verdicts += made.verdicts
                return len(made)
            except EntryExistsError as error:
                if error.index is None:
                    raise
                existing = waiting.pop(error.index)
                self._read_names(existing["namespace"], existing["memory_type"])
                self._there[existing["namespace"]].add(_name_in(existing))
                waiting = self._new(waiting)
        return 0

    def _new(self, elements: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            one for one in elements if _name_in(one) not in self._there.get(one["namespace"], ())
        ]

    def _read_names(self, namespace: str, tier: str) -> None:
        """Reads the names of the entries of a namespace, after a first conflict."""
        if namespace in self._there:
            return
        self._there[namespace] = set()
        try:
            entries = self._client.memory.export(namespace=namespace, memory_type=Tier(tier))
            self._there[namespace].update((entry.scope.session_id, entry.key) for entry in entries)
        except MemoryAccessError:
            # A key without read permission finds existing entries by conflicts, one by one.
            return


def _name_in(element: dict[str, Any]) -> tuple[str | None, str]:
    """Returns the name of an entry in its namespace: a key is unique within a session."""
    return element["scope"]["session_id"], element["key"]


def _tell_left_out(messages: Iterable[Message]) -> None:
    """Prints the names of fields that are not imported."""
    counted = Counter(name for message in messages for name in message.left_out)
    if counted:
        fields = ", ".join(f"{name} ({count})" for name, count in sorted(counted.items()))
        click.echo(f"fields that are not imported: {fields}", err=True)
