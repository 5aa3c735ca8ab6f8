"""claims: list, acquire, renew, release, and hold with a command under it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from memorywall.sdk.client import Client
from tests.cli.groups import claims, fields
from tests.cli.shell import Printed, Shell, columns, environment
from tests.support.process import ServerProcess, run_process
from tests.support.programs import start_program

LIMIT = 30.0
MEMORYWALL = [sys.executable, "-m", "memorywall"]
TOKEN = 'echo "token $MEMORYWALL_FENCING_TOKEN"'


def _mine(agent: Shell) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = claims(agent).json("list")
    return found


def _hold(agent: Shell, options: Sequence[str], *command: str) -> Printed:
    return claims(agent).run("hold", *options, "--", *command)


def test_acquired_claim_is_shown_and_listed(anywhere: Shell) -> None:
    shown = fields(claims(anywhere).succeed("acquire", "ticket-1", "--purpose", "refund it"))
    assert shown["id"].startswith("clm_")
    assert (shown["key"], shown["scope"]) == ("ticket-1", "global")
    assert (shown["agent_id"], shown["purpose"]) == (anywhere.agent, "refund it")
    assert shown["fencing_token"].isdigit()
    assert shown["expires_at"] > shown["acquired_at"]

    other = claims(anywhere).json("acquire", "ticket-2", "--scope", "agent", "--ttl", "60")
    assert (other["key"], other["scope"]) == ("ticket-2", "agent")
    assert other["fencing_token"] > int(shown["fencing_token"])

    table = claims(anywhere).succeed("list")
    assert columns(table) == ["id", "scope", "key", "agent", "token", "expires", "purpose"]
    rows = [line.split(maxsplit=6) for line in table.splitlines()[2:]]
    assert {row[0] for row in rows} == {shown["id"], other["id"]}
    (row,) = (row for row in rows if row[0] == shown["id"])
    assert row[1:] == [
        "global", "ticket-1", anywhere.agent, shown["fencing_token"], shown["expires_at"],
        "refund it",
    ]  # fmt: skip
    assert {one["id"] for one in _mine(anywhere)} == {shown["id"], other["id"]}
    for claim_id in (shown["id"], other["id"]):
        claims(anywhere).succeed("release", claim_id)


def test_claims_of_a_scope_are_visible_to_all_its_readers(new_agent: Callable[..., Shell]) -> None:
    one, other = new_agent(), new_agent()
    team = f"team:{one.agent}"
    claim = claims(one).json("acquire", "k", "--scope", team)
    mine = claims(one).json("acquire", f"k of {one.agent}")
    assert [found["id"] for found in claims(one).json("list", "--scope", team)] == [claim["id"]]
    assert claims(other).json("list") == []
    seen = claims(other).json("list", "--scope", "global")
    assert mine["id"] in {found["id"] for found in seen}
    # What one may not read is left out of a list.
    assert claims(other).json("list", "--scope", team) == []


def test_a_claim_is_renewed_and_given_back(anywhere: Shell) -> None:
    claim = claims(anywhere).json("acquire", "k", "--ttl", "5")
    longer = claims(anywhere).json("renew", claim["id"], "--ttl", "1000")
    assert longer["expires_at"] > claim["expires_at"]
    assert longer["fencing_token"] == claim["fencing_token"]
    shown = claims(anywhere).succeed("renew", claim["id"])
    assert fields(shown)["id"] == claim["id"]
    assert claims(anywhere).succeed("release", claim["id"]) == f"{claim['id']} is released\n"
    assert _mine(anywhere) == []
    assert len(claims(anywhere).succeed("list").splitlines()) == 2
    for command in ("renew", "release"):
        assert "lease not found" in claims(anywhere).refuse(command, claim["id"])


def test_held_claim_is_refused_with_its_holder(new_agent: Callable[..., Shell]) -> None:
    one, other = new_agent(), new_agent()
    name = f"key of {one.agent}"
    claim = claims(one).json("acquire", name)
    said = f"{name} is held by {one.agent} until {claim['expires_at']}"
    assert claims(other).refuse("acquire", name) == said
    assert claims(one).refuse("acquire", name) == said
    assert claims(other).refuse("hold", name, "--", "true") == said
    begun = time.monotonic()
    assert claims(other).refuse("acquire", name, "--wait", "0.5") == said
    assert time.monotonic() - begun >= 0.5
    claims(one).succeed("release", claim["id"])
    assert claims(other).json("acquire", name)["fencing_token"] > claim["fencing_token"]


def test_invalid_claim_arguments_are_refused(anywhere: Shell) -> None:
    assert "scope" in claims(anywhere).refuse("acquire", "k", "--scope", "planet")
    assert "scope" in claims(anywhere).refuse("list", "--scope", "planet")
    assert claims(anywhere).refuse("acquire", "")
    for options in (["--ttl", "0"], ["--ttl", "86401"], ["--wait", "-1"]):
        printed = claims(anywhere).run("acquire", "k", *options)
        assert (printed.returncode, printed.stdout) == (2, "")
        assert options[0] in printed.stderr
    assert _mine(anywhere) == []


def test_events_tell_of_claims(anywhere: Shell) -> None:
    claim = claims(anywhere).json("acquire", "ticket-9", "--scope", "agent")
    claims(anywhere).succeed("release", claim["id"])
    rows = [line.split() for line in anywhere.succeed("events").splitlines()[2:]]
    assert [row[2] for row in rows] == ["claim.acquired", "claim.released"]
    assert all("ticket-9" in row and row[-1] == anywhere.agent for row in rows)
    events = anywhere.json_lines("events", "--json")
    assert [event["data"]["fencing_token"] for event in events] == [claim["fencing_token"]] * 2


def test_hold_runs_a_command_under_the_claim(anywhere: Shell) -> None:
    printed = _hold(anywhere, ["deploy"], "sh", "-c", f"{TOKEN}; exit 7")
    assert printed.returncode == 7
    word, token = printed.stdout.split()
    assert (word, token.isdigit()) == ("token", True)
    assert printed.stderr == ""
    assert _mine(anywhere) == []
    later = claims(anywhere).json("acquire", "deploy")
    assert later["fencing_token"] > int(token)


def test_what_is_held_is_written_with_the_token_only(agent: Shell) -> None:
    name = f"state of {agent.agent}"
    set_it = [*MEMORYWALL, "set", *agent.where, "shared/global", name, "--type", "shared"]
    by_environment = [*set_it, '{"by": "environment"}']
    by_option = 'exec "$@" --fencing-token "$TOKEN"'
    without = ["env", "-u", "MEMORYWALL_FENCING_TOKEN", *set_it, '{"by": "nobody"}']

    printed = _hold(agent, [name], *by_environment)
    assert printed.returncode == 0, printed.stderr
    assert agent.json("get", "shared/global", name)["value"] == {"by": "environment"}

    printed = _hold(agent, [name], *without)
    assert printed.returncode == 1
    assert "claim" in printed.stderr

    script = f'TOKEN="$MEMORYWALL_FENCING_TOKEN"; unset MEMORYWALL_FENCING_TOKEN; {by_option}'
    printed = _hold(agent, [name], "sh", "-c", script, "sh", *set_it, '{"by": "option"}')
    assert printed.returncode == 0, printed.stderr
    assert agent.json("get", "shared/global", name)["value"] == {"by": "option"}

    # A token that is over is good for nothing, even when nobody holds the key.
    _, stale = _hold(agent, [name], "sh", "-c", TOKEN).stdout.split()
    said = agent.refuse(
        "set", "shared/global", name, "{}", "--type", "shared", "--fencing-token", stale
    )
    assert "fencing token" in said
    agent.succeed("set", "shared/global", name, "{}", "--type", "shared")


def test_the_command_sees_the_claim_and_a_second_hold_is_refused(agent: Shell) -> None:
    listing = [*MEMORYWALL, "claims", "list", *agent.where, "--json"]
    printed = _hold(agent, ["k", "--scope", "agent", "--purpose", "why", "--ttl", "9"], *listing)
    (claim,) = json.loads(printed.stdout)
    assert (claim["key"], claim["scope"], claim["purpose"]) == ("k", "agent", "why")

    second = [*MEMORYWALL, "claims", "hold", *agent.where, "k", "--scope", "agent", "--", "echo"]
    printed = _hold(agent, ["k", "--scope", "agent"], *second, "never")
    assert printed.returncode == 1
    assert "never" not in printed.stdout
    assert f"k is held by {agent.agent} until " in printed.stderr


def test_a_hold_waits_for_its_turn(agent: Shell) -> None:
    claim = claims(agent).json("acquire", "k", "--scope", "agent", "--ttl", "2")
    printed = _hold(agent, ["k", "--scope", "agent", "--wait", "20"], "sh", "-c", TOKEN)
    assert printed.returncode == 0, printed.stderr
    assert int(printed.stdout.split()[1]) > claim["fencing_token"]


def test_commands_that_end_oddly(agent: Shell) -> None:
    said = claims(agent).refuse("hold", "k", "--", "no-such-command-here")
    assert said == "no-such-command-here cannot be run: No such file or directory"
    assert _hold(agent, ["k"], "sh", "-c", "kill -KILL $$").returncode == 128 + signal.SIGKILL
    printed = claims(agent).run("hold", "k", "sh", "-c", "true")
    assert printed.returncode == 2
    assert "unknown options: `-c`" in printed.stderr
    printed = claims(agent).run("hold", "k")
    assert printed.returncode == 2
    assert "COMMAND" in printed.stderr
    assert _mine(agent) == []


class Holding:
    """A running `claims hold` whose command says `ready`, then how it is ended.

    trap: what the command does about signals, before it is ready
    """

    def __init__(self, agent: Shell, script: str, *options: str, trap: str = "") -> None:
        self.process = start_program(
            "claims", "hold", *agent.where, *options, "k", "--scope", "agent", "--",
            "sh", "-c", f"{trap}\necho ready $$; {script}",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment(),
        )  # fmt: skip
        assert self.process.stdout is not None
        word, pid = self.process.stdout.readline().split()
        assert word == "ready"
        self.command = int(pid)

    def end(self) -> tuple[int, str, str]:
        """The exit code and what was printed."""
        out, err = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, out, err


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _release(agent: Shell) -> None:
    """Gives the claim back behind the back of whoever holds it."""
    (claim,) = _mine(agent)
    claims(agent).succeed("release", claim["id"])


def test_a_claim_that_is_lost_ends_the_command(agent: Shell) -> None:
    # A shell that is ended alone leaves its child behind, which here would hold the output open.
    holding = Holding(agent, "sleep 120; true", "--ttl", "2")
    _release(agent)
    code, _, err = holding.end()
    assert code == 75
    assert err == "memorywall: the claim was lost, and the command has been ended\n"
    assert not _is_alive(holding.command)


def test_a_command_that_does_not_want_to_end_is_made_to(agent: Shell) -> None:
    holding = Holding(agent, "while :; do sleep 0.1; done", "--ttl", "1", trap="trap '' TERM")
    _release(agent)
    assert holding.end()[0] == 75
    assert not _is_alive(holding.command)


def test_a_claim_lasts_as_long_as_its_command(agent: Shell) -> None:
    code, out, err = Holding(agent, "sleep 3; echo done", "--ttl", "1").end()
    assert (code, out, err) == (0, "done\n", "")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, 130)]
)
def test_a_hold_that_is_ended_ends_its_command_and_gives_back(
    agent: Shell, number: signal.Signals, code: int
) -> None:
    trap = 'trap "echo ended; exit 1" TERM'
    holding = Holding(agent, "while :; do sleep 0.1; done", trap=trap)
    assert len(_mine(agent)) == 1
    holding.process.send_signal(number)
    ended, out, err = holding.end()
    assert (ended, out) == (code, "ended\n")
    assert "Traceback" not in err
    assert not _is_alive(holding.command)
    assert _mine(agent) == []


def test_a_hold_that_is_killed_is_over_when_its_time_is(
    server: ServerProcess, agent: Shell
) -> None:
    holding = Holding(agent, "exec sleep 60", "--ttl", "2")
    holding.process.kill()
    os.kill(holding.command, signal.SIGKILL)
    holding.end()
    with Client(server.url, agent.where[3]) as client:
        assert client.claims.acquire("k", 5, "agent", wait=LIMIT).agent_id == agent.agent


@pytest.mark.sqlite("a file is open once, a database as often as it likes")
def test_in_a_directory_the_command_cannot_open_it(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    run_process("keys", "create", "--data", data, "--agent", "a")
    agent = Shell("a", ("--data", data, "--agent", "a"))
    inside = shlex.join([*MEMORYWALL, "query", "--data", data, "--agent", "a"])
    printed = _hold(agent, ["k"], "sh", "-c", f"{inside}; echo code $?")
    assert printed.stdout == "code 1\n"
    assert len(printed.stderr.splitlines()) == 1
    assert "has this directory open" in printed.stderr
