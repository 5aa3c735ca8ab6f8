"""`memorywall claims`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from memorywall.cli.client_command import Client, client_command
from memorywall.cli.output import as_table, print_all_fields
from memorywall.cli.plain_commands import Plain, add_plain_commands
from memorywall.cli.signals import BY_SIGNAL, handle_sigterm
from memorywall.records.errors import ConfigurationError, LeaseHeldError
from memorywall.wire.leases import ClaimResponse

if TYPE_CHECKING:
    from memorywall.sdk.claims import Claim

TOKEN_ENVIRONMENT = "MEMORYWALL_FENCING_TOKEN"  # noqa: S105 - a variable's name, and no secret
_LOST = 75
"""The exit code after the claim was lost while the command ran; the command may be retried."""
_LOOKS_EVERY = 0.2
_ENDS_WITHIN = 5.0
_SECONDS = click.IntRange(1, 86_400)

_scope = click.option(
    "--scope",
    default="global",
    show_default=True,
    help="global, agent, or team: followed by a team.",
)
_ttl = click.option(
    "--ttl", default=300, show_default=True, type=_SECONDS, help="Seconds it is held."
)
_purpose = click.option("--purpose", help="A text about the purpose, for other agents.")
_wait = click.option(
    "--wait",
    default=0.0,
    type=click.FloatRange(min=0),
    help="Seconds to retry while another agent has the claim.",
)


@click.group()
def command() -> None:
    """Claim keys of shared state, for exclusive ownership by one agent at a time."""


add_plain_commands(
    command,
    Plain("list", "claims.list", "list_claims",
          "List live claims: the agent's own, or with --scope all claims in the scope.",
          as_table("id", "scope", "key", "agent=agent_id", "token=fencing_token",
                   "expires=expires_at", "purpose"),
          [click.option("--scope", help="All claims in this scope.")],
          short_help="List live claims."),
    Plain("renew ID", "claims.renew", "renew_claim", "Renew the claim with ID.",
          print_all_fields, [_ttl], short_help="Hold a claim longer."),
    Plain("release ID", "claims.release", "release_claim", "Release the claim with ID.",
          short_help="Give a claim back.", done="{claim_id} is released"),
)  # fmt: skip


@client_command(command, print_all_fields, short_help="Claim a key.")
@_scope
@_ttl
@_purpose
@_wait
@click.argument("name", metavar="KEY")
def acquire(
    client: Client, name: str, ttl: int, scope: str, purpose: str | None, wait: float
) -> ClaimResponse:
    """Claim KEY. While the claim is live, writes to the key of shared state need its fencing
    token; see `memorywall set --fencing-token`."""
    with _naming_the_holder(name):
        return client.claims.acquire(name, ttl, scope, purpose=purpose, wait=wait)


@client_command(command, short_help="Run a command while a key is claimed.")
@_scope
@click.option(
    "--ttl",
    default=30,
    show_default=True,
    type=_SECONDS,
    help="Seconds until the claim expires if this program dies; it is renewed until then.",
)
@_purpose
@_wait
@click.argument("name", metavar="KEY")
@click.argument("words", metavar="-- COMMAND...", nargs=-1, required=True)
def hold(client: Client, name: str, words: tuple[str, ...], ttl: int, **options: Any) -> None:
    """Run COMMAND while KEY is claimed, and end it if the claim is lost.

    COMMAND gets the fencing token in MEMORYWALL_FENCING_TOKEN, which `memorywall set` reads. The
    exit code is that of COMMAND, or 75 if the claim was lost. COMMAND cannot open the directory of
    --data, because this program has it open.
    """
    with (
        handle_sigterm(),
        _naming_the_holder(name),
        client.claims.hold(name, ttl, **options) as claim,
    ):
        code = _run(words, claim)
    sys.exit(code)


@contextmanager
def _naming_the_holder(name: str) -> Iterator[None]:
    """Adds the holder of the claim to a refusal."""
    try:
        yield
    except LeaseHeldError as error:
        held = error.existing_lease or {}
        if "agent_id" not in held:
            raise
        raise LeaseHeldError(
            f"{name} is held by {held['agent_id']} until {held.get('expires_at')}"
        ) from error


def _run(words: Sequence[str], claim: Claim) -> int:
    """Runs a command and returns its exit code; ends the command when the claim is lost."""
    # Without a terminal the command gets a process group, so that its children can be ended with
    # it. With a terminal a group of its own would lose the terminal.
    in_group = os.name == "posix" and not sys.stdin.isatty()
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's own command
            words,
            env={**os.environ, TOKEN_ENVIRONMENT: str(claim.token)},
            process_group=0 if in_group else None,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigurationError(f"{words[0]} cannot be run: {reason}") from error
    try:
        while not claim.lost:
            try:
                code = process.wait(_LOOKS_EVERY)
            except subprocess.TimeoutExpired:
                continue
            return code if code >= 0 else BY_SIGNAL - code
    except KeyboardInterrupt:
        if not in_group:
            # The terminal has sent the signal to the command, too.
            _has_ended(process)
        raise
    finally:
        if process.poll() is None:
            _end(process, in_group)
    click.echo("memorywall: the claim was lost, and the command has been ended", err=True)
    return _LOST


def _end(process: subprocess.Popen[bytes], in_group: bool) -> None:
    """Asks the command to end, and kills it after a while."""
    steps: tuple[Callable[[], None], ...] = (process.terminate, process.kill)
    if in_group:
        steps = tuple(
            partial(os.killpg, process.pid, number) for number in (signal.SIGTERM, signal.SIGKILL)
        )
    for step in steps:
        step()
        if _has_ended(process):
            return


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the command ends within a short time."""
    try:
        process.wait(_ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        return False
    return True
