"""`memorywall sessions`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from memorywall.cli.options import client_options, json_option, open_client
from memorywall.cli.output import print_fields, print_json, print_table
from memorywall.cli.session_metadata import metadata_of, metadata_option
from memorywall.kinds.sessions import content_text
from memorywall.records.errors import ValidationError
from memorywall.sdk.client import Client
from memorywall.wire.sessions import (
    CheckpointResponse,
    ListedStatus,
    SessionResponse,
)
from memorywall.wire.turns import (
    TurnResponse,
)

_id_argument = click.argument("session_id", metavar="ID")
_ROLES = ("system", "user", "assistant", "tool")


@click.group()
def command() -> None:
    """Create, continue, show and end sessions: conversations that survive a restart."""


def _subcommand(name: str | None = None) -> Callable[[Callable[..., Any]], click.Command]:
    """Adds a subcommand, which gets an open client and whether to print JSON."""

    def add(function: Callable[..., Any]) -> click.Command:
        @functools.wraps(function)
        def run(
            url: str | None,
            key: str | None,
            agent: str | None,
            data: Path | None,
            as_json: bool,
            **options: Any,
        ) -> None:
            with open_client(url, key, agent, data) as client:
                function(client, as_json, **options)

        return command.command(name)(client_options(json_option(run)))

    return add


@_subcommand()
@click.option("--subject", help="The person that the session is held with.")
@click.option("--title", default="", help="A text for people.")
@click.option("--ttl", help="The hard limit, such as 8h or PT8H.")
@click.option("--idle-timeout", help="Close after this time without a turn, such as 30m.")
@click.option("--continues", metavar="ID", help="The session of the subject that it continues.")
@click.option(
    "--reuse", is_flag=True, help="Return the newest open session with the subject, if any."
)
@click.option("--with-state", is_flag=True, help="Begin with the state of the continued session.")
@metadata_option
def create(client: Client, as_json: bool, metadata: tuple[str, ...], **fields: Any) -> None:
    """Create a session."""
    made = client.sessions.create(metadata=metadata_of(metadata), **fields)
    _print_session(made.info, as_json)


@_subcommand("list")
@click.option(
    "--status",
    type=click.Choice(get_args(ListedStatus)),
    help="Only with this status; `open` stands for active and checkpointed.",
)
@click.option("--subject", help="Only with this person.")
@click.option("--of", "of_agent", metavar="AGENT", help="The sessions of this agent.")
@click.option(
    "--participating", is_flag=True, help="The sessions of others in which the agent takes part."
)
@metadata_option
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 1000))
def list_(
    client: Client,
    as_json: bool,
    of_agent: str | None,
    metadata: tuple[str, ...],
    **wanted: Any,
) -> None:
    """List sessions, newest first."""
    page = client.sessions.list(agent=of_agent, metadata=metadata_of(metadata), **wanted)
    if as_json:
        print_json(page.sessions)
        return
    print_table(
        ["id", "status", "subject", "title", "turns", "last activity"],
        (
            [
                one.id,
                one.status,
                one.subject,
                one.title,
                one.counts.turn_count,
                one.counts.last_activity_at,
            ]
            for one in page.sessions
        ),
    )


@_subcommand()
@_id_argument
def show(client: Client, as_json: bool, session_id: str) -> None:
    """Show the session with ID."""
    _print_session(client.sessions.get(session_id).info, as_json)


@_subcommand()
@click.option("--client-id", help="An id that makes a repetition harmless.")
@click.option("--untrusted", is_flag=True, help="The text is from a document or a tool.")
@_id_argument
@click.argument("role", type=click.Choice(_ROLES), metavar="ROLE")
@click.argument("content", metavar="TEXT")
def add(
    client: Client,
    as_json: bool,
    client_id: str | None,
    untrusted: bool,
    session_id: str,
    role: str,
    content: str,
) -> None:
    """Add a turn of ROLE with TEXT to the session with ID.

    ROLE is system, user, assistant or tool.
    """
    session = client.sessions.get(session_id)
    turn = session.add(role, content, client_id=client_id, trusted=not untrusted)
    _print_turns([turn], as_json)


@_subcommand()
@click.option("--after", default=0, type=click.IntRange(min=0), help="Only after this sequence.")
@click.option("--limit", type=click.IntRange(min=1), help="At most this many; default: all.")
@click.option("--newest-first", is_flag=True, help="In the reverse order.")
@_id_argument
def turns(client: Client, as_json: bool, session_id: str, **wanted: Any) -> None:
    """Show the turns of the session with ID."""
    _print_turns(client.sessions.get(session_id).turns(**wanted), as_json)


@_subcommand()
@click.option("--state", help="The new state of the session, a JSON object.")
@_id_argument
def checkpoint(client: Client, as_json: bool, state: str | None, session_id: str) -> None:
    """Make a checkpoint of the session with ID."""
    fields = {} if state is None else {"state": _json("--state", state)}
    _print_checkpoint(client.sessions.get(session_id).checkpoint(**fields), as_json)


@_subcommand()
@_id_argument
def checkpoints(client: Client, as_json: bool, session_id: str) -> None:
    """List the checkpoints of the session with ID, newest first."""
    made = client.sessions.get(session_id).checkpoints()
    if as_json:
        print_json(made)
        return
    print_table(
        ["checkpoint", "trigger", "turns", "tokens", "summarized", "created"],
        (
            [one.number, one.trigger, one.turn_count, one.token_usage, one.summarized_through,
             one.created_at]
            for one in made
        ),
    )  # fmt: skip


@_subcommand()
@click.option("--checkpoint", "number", type=click.IntRange(min=1), help="Default: the newest.")
@click.option("--reopen", is_flag=True, help="Open a session that its idle timeout has closed.")
@_id_argument
def resume(
    client: Client, as_json: bool, number: int | None, reopen: bool, session_id: str
) -> None:
    """Resume the session with ID: show its summary and the turns after it."""
    resumed = client.sessions.resume(session_id, number, reopen=reopen).resumed
    assert resumed is not None  # noqa: S101 - resume sets it
    if as_json:
        print_json(resumed)
        return
    if resumed.checkpoint is not None:
        _print_checkpoint(resumed.checkpoint, as_json)
    _print_turns(resumed.turns, as_json)


@_subcommand()
@click.option("--at", "sequence", type=click.IntRange(min=0), help="The last copied turn.")
@click.option("--title", help="The title of the new session.")
@_id_argument
def fork(
    client: Client, as_json: bool, sequence: int | None, title: str | None, session_id: str
) -> None:
    """Copy the session with ID into a new one, up to a turn."""
    made = client.sessions.get(session_id).fork(sequence, title=title)
    _print_session(made.info, as_json)


@_subcommand()
@click.option("--reason", default="request", show_default=True, help="Why it is closed.")
@_id_argument
def close(client: Client, as_json: bool, reason: str, session_id: str) -> None:
    """Close the session with ID."""
    _print_session(client.sessions.get(session_id).close(reason), as_json)


@_subcommand()
@click.option("--ttl", help="Refuse the token after this time, such as 1h; at most a day.")
@_id_argument
def token(client: Client, as_json: bool, ttl: str | None, session_id: str) -> None:
    """Print a token whose requests are inside the session with ID."""
    made = client.sessions.get(session_id).token(ttl)
    if as_json:
        print_json(made)
    else:
        click.echo(made.token)


@_subcommand()
@_id_argument
def archive(client: Client, as_json: bool, session_id: str) -> None:
    """Archive the session with ID; it is deleted after its retention."""
    _print_session(client.sessions.get(session_id).archive(), as_json)


@_subcommand()
@click.option("--subject", required=True, help="The person.")
@click.argument("text")
def match(client: Client, as_json: bool, subject: str, text: str) -> None:
    """Find the session of a person that TEXT continues."""
    found = client.sessions.match(text, subject)
    if as_json:
        print_json(found)
        return
    print_fields(
        (
            ("session", found.session_id or "none"),
            ("status", found.status),
            ("method", found.method),
        )
    )
    print_table(["session", "score"], ([one.session_id, one.score] for one in found.candidates))


@_subcommand()
@_id_argument
def events(client: Client, as_json: bool, session_id: str) -> None:
    """Show the changes of the session with ID, oldest first."""
    found = client.sessions.get(session_id).events()
    if as_json:
        print_json(found)
        return
    print_table(
        ["seq", "when", "type", "version", "before", "status", "reason", "actor"],
        (
            [one.seq, one.timestamp, one.type, one.data.version, one.data.previous_status,
             one.data.status, one.data.closed_reason, one.actor]
            for one in found
        ),
    )  # fmt: skip


@_subcommand()
@_id_argument
def export(client: Client, as_json: bool, session_id: str) -> None:
    """Print the session with ID, its checkpoints and its turns as JSON."""
    print_json(client.sessions.get(session_id).export())


@_subcommand()
@_id_argument
def delete(client: Client, as_json: bool, session_id: str) -> None:
    """Delete the session with ID and everything in it."""
    client.sessions.delete(session_id)


@_subcommand("remove-turns")
@_id_argument
@click.argument("first", type=click.IntRange(min=1))
def remove_turns(client: Client, as_json: bool, session_id: str, first: int) -> None:
    """Remove the turns of the session with ID from FIRST on."""
    _print_session(client.sessions.get(session_id).remove_turns(first), as_json)


@_subcommand()
@_id_argument
def clear(client: Client, as_json: bool, session_id: str) -> None:
    """Remove all turns of the session with ID."""
    _print_session(client.sessions.get(session_id).clear(), as_json)


@_subcommand()
@click.option("--add", "added", metavar="AGENT", help="Add this agent, or change its access.")
@click.option("--access", type=click.Choice(["read", "append"]), default="append")
@click.option("--remove", "removed", metavar="AGENT", help="Remove this agent.")
@_id_argument
def participants(
    client: Client,
    as_json: bool,
    added: str | None,
    access: str,
    removed: str | None,
    session_id: str,
) -> None:
    """Show or change the participants of the session with ID."""
    session = client.sessions.get(session_id)
    if added is not None:
        session.set_participant(added, access)
    if removed is not None:
        session.remove_participant(removed)
    found = session.refresh().participants
    if as_json:
        print_json(found)
        return
    print_table(["agent", "access"], ([one.agent_id, one.access] for one in found))


def _json(option: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise ValidationError(f"{option} must be a JSON object") from None


def _print_session(session: SessionResponse, as_json: bool) -> None:
    if as_json:
        print_json(session)
        return
    print_fields(
        (
            ("id", session.id),
            ("status", session.status),
            ("agent", session.agent_id),
            ("subject", session.subject),
            ("title", session.title),
            ("turns", session.counts.turn_count),
            ("tokens", session.counts.token_usage),
            ("ends", session.ends_at),
            ("idle timeout", session.idle_timeout),
            ("idle at", session.idle_at),
            ("continues", session.continues),
            ("closed because", session.closed_reason),
            ("created", session.created_at),
        )
    )


def _print_turns(turns: list[TurnResponse], as_json: bool) -> None:
    if as_json:
        print_json(turns)
        return
    print_table(
        ["turn", "role", "text", "author", "created"],
        (
            [one.sequence, one.role, content_text(one.content), one.author, one.created_at]
            for one in turns
        ),
    )


def _print_checkpoint(made: CheckpointResponse, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    print_fields(
        (
            ("checkpoint", made.number),
            ("trigger", made.trigger),
            ("turns", made.turn_count),
            ("tokens", made.token_usage),
            ("summary", made.summary),
            ("created", made.created_at),
        )
    )
