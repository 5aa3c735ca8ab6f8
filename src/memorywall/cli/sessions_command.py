"""`memorywall sessions`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from memorywall.cli.options import client_options, json_option, open_client
from memorywall.cli.output import print_fields, print_json, print_table
from memorywall.cli.session_input import metadata_of, metadata_option, turns_of_input
from memorywall.cli.session_output import print_checkpoint, print_session, print_turns
from memorywall.cli.table_options import table_options
from memorywall.sdk.client import Client
from memorywall.wire.sessions import (
    CheckpointRequest,
    ResumeRequest,
    SessionChange,
    SessionQuery,
    SessionRequest,
)
from memorywall.wire.turns import TurnRequest, TurnResponse

_id_argument = click.argument("session_id", metavar="ID")
_ROLES = ("system", "user", "assistant", "tool")
_AT_ONCE = 100


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


def _subcommand(
    name: str | None = None, cls: type[click.Command] = click.Command
) -> Callable[[Callable[..., Any]], click.Command]:
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

        return command.command(name, cls)(client_options(json_option(run)))

    return add


@_subcommand()
@table_options(SessionRequest, "subject", "title", "continues", "reuse", "token_budget", "ends_at")
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
    client: Client,
    as_json: bool,
    participants: tuple[str, ...],
    metadata: tuple[str, ...],
    **fields: Any,
) -> None:
    """Create a session."""
    others = [one.partition("=") for one in participants]
    access = {agent: given or "append" for agent, _, given in others}
    made = client.sessions.create(participants=access, metadata=metadata_of(metadata), **fields)
    print_session(made.info, as_json)


@_subcommand("list")
@table_options(SessionQuery, "status", "subject")
@click.option("--before", metavar="ID", help="Continue after this session, the last one listed.")
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
    print_session(client.sessions.get(session_id).info, as_json)


@_subcommand()
@table_options(SessionChange, "title", "token_budget", "state", "policy")
@click.option("--if-version", "version", type=int, help="Only if the session has this version.")
@_id_argument
def update(
    client: Client, as_json: bool, session_id: str, version: int | None, **fields: Any
) -> None:
    """Replace the title, the token budget, the state or fields of the policy of the session with
    ID."""
    given = {name: value for name, value in fields.items() if value is not None}
    session = client.sessions.get(session_id)
    print_session(session.update(version=version, **given), as_json)


@_subcommand(cls=TextCommand)
@table_options(TurnRequest, "client_id", "name", "source", "valid_for", "tool_calls",
               "tool_call_id")  # fmt: skip
@click.option("--untrusted", is_flag=True, help="The text is from a document or a tool.")
@_id_argument
@click.argument("role", type=click.Choice([*_ROLES, "-"]), metavar="ROLE")
@click.argument("content", metavar="[TEXT]", required=False)
def add(
    client: Client,
    as_json: bool,
    untrusted: bool,
    session_id: str,
    role: str,
    content: str | None,
    **fields: Any,
) -> None:
    """Add a turn of ROLE with TEXT to the session with ID.

    ROLE is system, user, assistant or tool. With - in its place, each line of the standard input is
    a turn, or a message of OpenAI or Anthropic, as a JSON object; 100 lines at a time are added,
    all or none.
    """
    session = client.sessions.get(session_id)
    given = {name: value for name, value in fields.items() if value is not None}
    if untrusted:
        given["trusted"] = False
    if role != "-":
        if content is None and not given.get("tool_calls"):
            raise click.UsageError("Missing argument 'TEXT'.")
        print_turns([session.add(role, content, **given)], as_json)
        return
    if content is not None:
        raise click.UsageError("with - the turns come from the standard input, without TEXT")
    lines = [{**one, **given} for one in turns_of_input()]
    added: list[TurnResponse] = []
    for start in range(0, len(lines), _AT_ONCE):
        added += session.add_many(lines[start : start + _AT_ONCE])
    print_turns(added, as_json)


@_subcommand()
@click.option("--after", default=0, type=click.IntRange(min=0), help="Only after this sequence.")
@click.option("--limit", type=click.IntRange(min=1), help="At most this many; default: all.")
@click.option("--newest-first", is_flag=True, help="In the reverse order.")
@_id_argument
def turns(client: Client, as_json: bool, session_id: str, **wanted: Any) -> None:
    """Show the turns of the session with ID."""
    print_turns(client.sessions.get(session_id).turns(**wanted), as_json)


@_subcommand()
@table_options(CheckpointRequest, "trigger", "working", "state")
@_id_argument
def checkpoint(client: Client, as_json: bool, session_id: str, **fields: Any) -> None:
    """Make a checkpoint of the session with ID."""
    given = {name: value for name, value in fields.items() if value is not None}
    print_checkpoint(client.sessions.get(session_id).checkpoint(**given), as_json)


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
@table_options(ResumeRequest, "checkpoint", "replay")
@click.option("--reopen", is_flag=True, help="Open a session that its idle timeout has closed.")
@_id_argument
def resume(
    client: Client,
    as_json: bool,
    checkpoint: int | None,
    replay: int | None,
    reopen: bool,
    session_id: str,
) -> None:
    """Resume the session with ID: show its summary and the turns after it."""
    again = client.sessions.resume(session_id, checkpoint, replay=replay, reopen=reopen)
    resumed = again.resumed
    assert resumed is not None  # noqa: S101 - resume sets it
    if as_json:
        print_json(resumed)
        return
    if resumed.checkpoint is not None:
        print_checkpoint(resumed.checkpoint, as_json)
    print_turns(resumed.turns, as_json)


@_subcommand()
@click.option("--at", "sequence", type=click.IntRange(min=0), help="The last copied turn.")
@click.option("--title", help="The title of the new session.")
@_id_argument
def fork(
    client: Client, as_json: bool, sequence: int | None, title: str | None, session_id: str
) -> None:
    """Copy the session with ID into a new one, up to a turn."""
    made = client.sessions.get(session_id).fork(sequence, title=title)
    print_session(made.info, as_json)


@_subcommand()
@click.option("--reason", default="request", show_default=True, help="Why it is closed.")
@_id_argument
def close(client: Client, as_json: bool, reason: str, session_id: str) -> None:
    """Close the session with ID."""
    print_session(client.sessions.get(session_id).close(reason), as_json)


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
    print_session(client.sessions.get(session_id).archive(), as_json)


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
    print_session(client.sessions.get(session_id).remove_turns(first), as_json)


@_subcommand()
@_id_argument
def clear(client: Client, as_json: bool, session_id: str) -> None:
    """Remove all turns of the session with ID."""
    print_session(client.sessions.get(session_id).clear(), as_json)


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
