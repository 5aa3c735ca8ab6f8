"""`memorywall sessions`."""

from __future__ import annotations

from typing import Any

import click

from memorywall.cli import session_output as shown
from memorywall.cli.client_command import Client, client_command
from memorywall.cli.options import json_option, limit_option
from memorywall.cli.output import print_json
from memorywall.cli.session_input import metadata_of, metadata_option, turns_of_input
from memorywall.cli.table_options import given_options, table_options
from memorywall.kinds.sessions import Participant
from memorywall.wire.events import EventResponse
from memorywall.wire.sessions import (
    MatchRequest,
    MatchResponse,
    ResumeRequest,
    ResumeResponse,
    SessionChange,
    SessionQuery,
    SessionRequest,
    SessionResponse,
    TokenResponse,
)
from memorywall.wire.turns import CheckpointRequest, CheckpointResponse, TurnRequest, TurnResponse

_id_argument = click.argument("session_id", metavar="ID")
_AT_ONCE, _LARGEST = 100, 8 * 1024 * 1024
"""The most turns of a request, and the most characters of input that is not added line by line."""
_ROLES = ("system", "user", "assistant", "tool")


@click.group()
def command() -> None:
    """Create, continue, show and end sessions: conversations that survive a restart."""


class TextCommand(click.Command):
    """A command whose last argument is a text, which may begin with `-`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = {name: one for one in self.get_params(ctx) for name in one.opts}
        for place, text in enumerate(args):
            before = options.get(args[place - 1]) if place else None
            is_value = isinstance(before, click.Option) and not before.is_flag
            if text == "--":
                break
            if text[:1] == "-" != text and text.partition("=")[0] not in options and not is_value:
                args = [*args[:place], *args[place + 1 :], "--", text]
                break
        return super().parse_args(ctx, args)


@client_command(command, shown.SESSION)
@table_options(SessionRequest, "user", "title", "continues", "reuse", "token_budget", "ends_at")
@click.option("--ttl", help="The hard limit, such as 8h or PT8H.")
@click.option("--idle-timeout", help="Close after this time without a turn, such as 30m.")
@table_options(SessionRequest, "state", "policy")
@click.option(
    "--participant",
    "participants",
    multiple=True,
    metavar="AGENT[=ACCESS]",
    help="Another agent that takes part; ACCESS is read or append, the default.",
)
@click.option("--with-state", is_flag=True, help="Begin with the state of the continued session.")
@metadata_option
def create(
    client: Client, participants: tuple[str, ...], metadata: tuple[str, ...], **fields: Any
) -> SessionResponse:
    """Create a session."""
    others = [one.partition("=") for one in participants]
    access = {agent: given or "append" for agent, _, given in others}
    made = client.sessions.create(participants=access, metadata=metadata_of(metadata), **fields)
    return made.info


@client_command(command, shown.SESSIONS, name="list")
@table_options(SessionQuery, "status", "user")
@click.option("--before", metavar="ID", help="Continue after this session, the last one listed.")
@click.option("--of", "agent_id", metavar="AGENT", help="The sessions of this agent.")
@click.option(
    "--participating", is_flag=True, help="The sessions of others in which the agent takes part."
)
@metadata_option
@limit_option(50)
def list_(
    client: Client, agent_id: str | None, metadata: tuple[str, ...], **wanted: Any
) -> list[SessionResponse]:
    """List sessions, newest first."""
    return client.sessions.list(agent=agent_id, metadata=metadata_of(metadata), **wanted).sessions


@client_command(command, shown.SESSION)
@_id_argument
def show(client: Client, session_id: str) -> SessionResponse:
    """Show the session with ID."""
    return client.sessions.get(session_id).info


@client_command(command, shown.SESSION)
@table_options(SessionChange, "title", "token_budget", "state", "policy")
@click.option("--if-version", "version", type=int, help="Only if the session has this version.")
@_id_argument
def update(client: Client, session_id: str, version: int | None, **fields: Any) -> SessionResponse:
    """Replace the title, the token budget, the state or fields of the policy of the session with
    ID."""
    return client.sessions.get(session_id).update(version=version, **given_options(fields))


@client_command(command, shown.TURNS, cls=TextCommand)
@table_options(TurnRequest, "client_id", "name", "source", "valid_for", "said_at",
               "tool_calls", "tool_call_id")  # fmt: skip
@click.option("--untrusted", is_flag=True, help="The text is from a document or a tool.")
@_id_argument
@click.argument("role", type=click.Choice([*_ROLES, "-"]), metavar="ROLE")
@click.argument("content", metavar="[TEXT]", required=False)
def add(
    client: Client,
    untrusted: bool,
    session_id: str,
    role: str,
    content: str | None,
    **fields: Any,
) -> list[TurnResponse]:
    """Add a turn of ROLE with TEXT to the session with ID.

    ROLE is system, user, assistant or tool. With - in its place, each line of the standard input is
    a turn, or a message of OpenAI or Anthropic, as a JSON object; 100 lines at a time are added,
    all or none.
    """
    session = client.sessions.get(session_id)
    given = given_options(fields)
    if untrusted:
        given["trusted"] = False
    if role != "-":
        if content is None and not given.get("tool_calls"):
            raise click.UsageError("Missing argument 'TEXT'.")
        return [session.add(role, content, **given)]
    if content is not None:
        raise click.UsageError("with - the turns come from the standard input, without TEXT")
    lines = [{**one, **given} for one in turns_of_input()]
    added: list[TurnResponse] = []
    at_once = _AT_ONCE if len(str(lines)) <= _LARGEST else 1
    for start in range(0, len(lines), at_once):
        added += session.add_many(lines[start : start + at_once])
    return added


@client_command(command, shown.TURNS)
@click.option("--after", default=0, type=click.IntRange(min=0), help="Only after this sequence.")
@click.option("--limit", type=click.IntRange(min=1), help="At most this many; default: all.")
@click.option("--newest-first", is_flag=True, help="In the reverse order.")
@_id_argument
def turns(client: Client, session_id: str, **wanted: Any) -> list[TurnResponse]:
    """Show the turns of the session with ID."""
    return client.sessions.get(session_id).turns(**wanted)


@client_command(command, shown.CHECKPOINT)
@table_options(CheckpointRequest, "trigger", "working", "state")
@_id_argument
def checkpoint(client: Client, session_id: str, **fields: Any) -> CheckpointResponse:
    """Make a checkpoint of the session with ID."""
    return client.sessions.get(session_id).checkpoint(**given_options(fields))


@client_command(command, shown.CHECKPOINTS)
@_id_argument
def checkpoints(client: Client, session_id: str) -> list[CheckpointResponse]:
    """List the checkpoints of the session with ID, newest first."""
    return client.sessions.get(session_id).checkpoints()


def _show_resumed(resumed: ResumeResponse) -> None:
    if resumed.checkpoint is not None:
        shown.CHECKPOINT(resumed.checkpoint)
    shown.TURNS(resumed.turns)


@client_command(command, _show_resumed)
@table_options(ResumeRequest, "checkpoint", "replay")
@click.option("--reopen", is_flag=True, help="Open a session that its idle timeout has closed.")
@_id_argument
def resume(
    client: Client, session_id: str, checkpoint: int | None, **options: Any
) -> ResumeResponse | None:
    """Resume the session with ID: show its summary and the turns after it."""
    return client.sessions.resume(session_id, checkpoint, **options).resumed


@client_command(command, shown.SESSION)
@click.option("--at", "sequence", type=click.IntRange(min=0), help="The last copied turn.")
@click.option("--title", help="The title of the new session.")
@_id_argument
def fork(
    client: Client, session_id: str, sequence: int | None, title: str | None
) -> SessionResponse:
    """Copy the session with ID into a new one, up to a turn."""
    return client.sessions.get(session_id).fork(sequence, title=title).info


@client_command(command, shown.SESSION)
@click.option("--reason", default="request", show_default=True, help="Why it is closed.")
@_id_argument
def close(client: Client, session_id: str, reason: str) -> SessionResponse:
    """Close the session with ID."""
    return client.sessions.get(session_id).close(reason)


@client_command(command, lambda made: click.echo(made.token))
@click.option("--ttl", help="Refuse the token after this time, such as 1h; at most a day.")
@_id_argument
def token(client: Client, session_id: str, ttl: str | None) -> TokenResponse:
    """Print a token whose requests are inside the session with ID."""
    return client.sessions.get(session_id).token(ttl)


@client_command(command, shown.SESSION)
@_id_argument
def archive(client: Client, session_id: str) -> SessionResponse:
    """Archive the session with ID; it is deleted after its retention."""
    return client.sessions.get(session_id).archive()


def _show_match(found: MatchResponse) -> None:
    shown.MATCH(found)
    shown.CANDIDATES(found.candidates)


@client_command(command, _show_match)
@table_options(MatchRequest, "user")
@click.argument("text")
def match(client: Client, user: str | None, text: str) -> MatchResponse:
    """Find the session of a person that TEXT continues; without --user, of nobody."""
    return client.sessions.match(text, user)


@client_command(command, shown.EVENTS)
@_id_argument
def events(client: Client, session_id: str) -> list[EventResponse]:
    """Show the changes of the session with ID, oldest first."""
    return client.sessions.get(session_id).events()


@client_command(command)
@_id_argument
@json_option
def export(client: Client, session_id: str, as_json: bool) -> None:
    """Print the session with ID, its checkpoints and its turns as JSON."""
    print_json(client.sessions.get(session_id).export())


@client_command(command)
@_id_argument
@json_option
def delete(client: Client, session_id: str, as_json: bool) -> None:
    """Delete the session with ID and everything in it."""
    client.sessions.delete(session_id)


@client_command(command, shown.SESSION, name="remove-turns")
@_id_argument
@click.argument("first", type=click.IntRange(min=1))
def remove_turns(client: Client, session_id: str, first: int) -> SessionResponse:
    """Remove the turns of the session with ID from FIRST on."""
    return client.sessions.get(session_id).remove_turns(first)


@client_command(command, shown.SESSION)
@_id_argument
def clear(client: Client, session_id: str) -> SessionResponse:
    """Remove all turns of the session with ID."""
    return client.sessions.get(session_id).clear()


@client_command(command, shown.PARTICIPANTS)
@click.option("--add", "added", metavar="AGENT", help="Add this agent, or change its access.")
@click.option("--access", type=click.Choice(["read", "append"]), default="append")
@click.option("--remove", "removed", metavar="AGENT", help="Remove this agent.")
@_id_argument
def participants(
    client: Client, session_id: str, added: str | None, access: str, removed: str | None
) -> tuple[Participant, ...]:
    """Show or change the participants of the session with ID."""
    session = client.sessions.get(session_id)
    if added is not None:
        session.set_participant(added, access)
    if removed is not None:
        session.remove_participant(removed)
    return session.refresh().participants
