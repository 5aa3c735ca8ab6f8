"""`memorywall claims`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
import msgspec

from memorywall.cli.options import client_options, json_option, open_client
from memorywall.cli.output import print_fields, print_json, print_table
from memorywall.cli.stopping import BY_SIGNAL, heeding_sigterm
from memorywall.records.errors import ConfigurationError, HeldError
from memorywall.sdk.claims import Claim
from memorywall.wire.leases import ClaimView

TOKEN_ENVIRONMENT = "MEMORYWALL_FENCING_TOKEN"  # noqa: S105 - a variable's name, and no secret
_LOST = 75
"""The exit code when the claim was lost while the command ran: it may be tried again."""
_LOOKS_EVERY = 0.2
_ENDS_WITHIN = 5.0
_SECONDS = click.IntRange(1, 86_400)

_scope = click.option(
    "--scope", default="global", show_default=True, help="global, agent, or team: and a team."
)
_ttl = click.option(
    "--ttl", default=300, show_default=True, type=_SECONDS, help="Seconds it is held."
)
_purpose = click.option("--purpose", help="What for; for others to read.")
_wait = click.option(
    "--wait",
    default=0.0,
    type=click.FloatRange(min=0),
    help="Seconds to try again while it is held already.",
)


@click.group()
def command() -> None:
    """Claim keys of shared state, so that one agent at a time works on something."""


@command.command("list", short_help="List live claims.")
@client_options
@click.option("--scope", help="Everybody's claims in this scope.")
@json_option
def list_(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    scope: str | None,
    as_json: bool,
) -> None:
    """List live claims: the agent's own, or with --scope everybody's in it."""
    with open_client(url, key, agent, data) as client:
        claims = client.claims.list(scope)
    if as_json:
        print_json(claims)
        return
    print_table(
        ["id", "scope", "key", "agent", "token", "expires", "purpose"],
        (
            [
                one.id,
                one.scope,
                one.key,
                one.agent_id,
                one.fencing_token,
                one.expires_at,
                one.purpose,
            ]
            for one in claims
        ),
    )


@command.command(short_help="Claim a key.")
@client_options
@_scope
@_ttl
@_purpose
@_wait
@json_option
@click.argument("name", metavar="KEY")
def acquire(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    scope: str,
    ttl: int,
    purpose: str | None,
    wait: float,
    as_json: bool,
    name: str,
) -> None:
    """Claim KEY. While the claim lasts, nobody can write that key of shared state without its
    fencing token; see `memorywall set --fencing-token`."""
    with open_client(url, key, agent, data) as client, _naming_the_holder(name):
        _print(client.claims.acquire(name, ttl, scope, purpose=purpose, wait=wait), as_json)


@command.command(short_help="Hold a claim longer.")
@client_options
@_ttl
@json_option
@click.argument("claim_id", metavar="ID")
def renew(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    ttl: int,
    as_json: bool,
    claim_id: str,
) -> None:
    """Hold the claim with ID longer, from now on."""
    with open_client(url, key, agent, data) as client:
        _print(client.claims.renew(claim_id, ttl), as_json)


@command.command(short_help="Give a claim back.")
@client_options
@click.argument("claim_id", metavar="ID")
def release(
    url: str | None, key: str | None, agent: str | None, data: Path | None, claim_id: str
) -> None:
    """Give the claim with ID back."""
    with open_client(url, key, agent, data) as client:
        client.claims.release(claim_id)
    click.echo(f"{claim_id} is released")


@command.command(short_help="Run a command while a key is claimed.")
@client_options
@_scope
@click.option(
    "--ttl",
    default=30,
    show_default=True,
    type=_SECONDS,
    help="Seconds it is held if this program dies; it is renewed until then.",
)
@_purpose
@_wait
@click.argument("name", metavar="KEY")
@click.argument("words", metavar="-- COMMAND...", nargs=-1, required=True)
def hold(
    url: str | None,
    key: str | None,
    agent: str | None,
    data: Path | None,
    scope: str,
    ttl: int,
    purpose: str | None,
    wait: float,
    name: str,
    words: tuple[str, ...],
) -> None:
    """Run COMMAND while KEY is claimed, and end it if the claim is lost.

    COMMAND finds the claim's fencing token in MEMORYWALL_FENCING_TOKEN, where `memorywall set`
    looks for it. Its exit code is passed on; 75 says that the claim was lost. It cannot open the
    directory of --data meanwhile, which this program has open.
    """
    with (
        heeding_sigterm(),
        _naming_the_holder(name),
        open_client(url, key, agent, data) as client,
        client.claims.hold(name, ttl, scope=scope, purpose=purpose, wait=wait) as claim,
    ):
        code = _run(words, claim)
    sys.exit(code)


@contextmanager
def _naming_the_holder(name: str) -> Iterator[None]:
    """Says who holds a key that is refused."""
    try:
        yield
    except HeldError as error:
        held = error.existing_lease or {}
        if "agent_id" not in held:
            raise
        raise HeldError(
            f"{name} is held by {held['agent_id']} until {held.get('expires_at')}"
        ) from error


def _run(words: Sequence[str], claim: Claim) -> int:
    """The command's exit code. It is ended as soon as the claim is seen to be lost."""
    # What has no terminal is put into a group, so that its own children can be ended with it; a
    # group of its own would cut it off from a terminal.
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
            # The terminal has told the command as well.
            _has_ended(process)
        raise
    finally:
        if process.poll() is None:
            _end(process, in_group)
    click.echo("memorywall: the claim was lost, and the command has been ended", err=True)
    return _LOST


def _end(process: subprocess.Popen[bytes], in_group: bool) -> None:
    """Asks the command to end, and makes it if it does not."""
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
    """Gives it a little time to."""
    try:
        process.wait(_ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        return False
    return True


def _print(claim: ClaimView, as_json: bool) -> None:
    if as_json:
        print_json(claim)
    else:
        print_fields(msgspec.to_builtins(claim).items())
