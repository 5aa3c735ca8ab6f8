"""connect and hook: a coding agent gets memory, and keeps what is said whatever is killed."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from memorywall.adapters.hosts.hook_socket import SOCKET, RelayRequest, ask_relay
from memorywall.adapters.hosts.host_formats import host_formats
from memorywall.sdk.client import Client
from memorywall.sdk.local_sockets import socket_in
from tests.cli.shell import Printed, environment, refuse, run, succeed
from tests.support.extent import chosen_seed, extent
from tests.support.postgres_process import wait_until
from tests.support.process import ServerProcess

PROMPT = "Which tool do we deploy with to the Frankfurt machines?"
FACT = "We deploy with Kamal to the Frankfurt machines, never on Fridays."
_NUMBERS = count(1)


@dataclass
class User:
    """A user with a home folder, and a coding agent that runs hooks as it would."""

    home: Path
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home.mkdir(exist_ok=True)
        self.variables = {"HOME": str(self.home)}
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR"):
            self.variables[name] = ""

    @property
    def folder(self) -> Path:
        """The folder of the spool."""
        return self.home / ".local/state/memorywall/claude-code"

    def connect(self, *options: str) -> str:
        return succeed("connect", "claude-code", "--yes", *options, variables=self.variables)

    def hook(self, event: str, session: str, text: str, turn: str | None = None) -> str | None:
        """Runs the hook; returns what it gives to the model."""
        name = "prompt" if event == "UserPromptSubmit" else "last_assistant_message"
        given = {"hook_event_name": event, "session_id": session, name: text}
        given["prompt_id"] = turn or f"turn-{next(_NUMBERS)}"
        printed = self.run_hook(json.dumps(given))
        assert (printed.returncode, printed.stderr) == (0, "")
        if not printed.stdout:
            return None
        output = json.loads(printed.stdout)["hookSpecificOutput"]
        assert output["hookEventName"] == "UserPromptSubmit"
        return str(output["additionalContext"])

    def prompt(self, session: str, text: str, turn: str | None = None) -> str | None:
        return self.hook("UserPromptSubmit", session, text, turn)

    def reply(self, session: str, text: str, turn: str | None = None) -> None:
        assert self.hook("Stop", session, text, turn) is None

    def run_hook(self, given: str) -> Printed:
        return run("hook", "claude-code", input=given, variables=self.variables)

    def succeed(self, *arguments: str) -> str:
        return succeed(*arguments, variables=self.variables)

    def turns(self, client: Client, session: str, user: str | None = None) -> list[tuple[str, str]]:
        """The turns of a conversation of the agent."""
        bound = client if user is None else client.for_user(user)
        page = bound.sessions.list(client_id=session, user=user)
        found = [bound.sessions.get(one.id).turns() for one in page.sessions]
        return [(one.role, str(one.content)) for turns in found for one in turns]


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path / "home")


@pytest.fixture
def connected(user: User, server: ServerProcess) -> Iterator[tuple[User, Client]]:
    """A user whose agent has the memory of a server, with a client of this memory."""
    key = server.create_key(f"agent-{next(_NUMBERS)}")
    user.connect("--url", server.url, "--key", key)
    with Client(server.url, key) as client:
        yield user, client


def test_the_key_is_in_no_configuration(connected: tuple[User, Client]) -> None:
    user, _ = connected
    private = user.home / ".config/memorywall/claude-code.json"
    key = json.loads(private.read_text())["key"]
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    files = [path for path in user.home.rglob("*") if path.is_file() and path != private]
    assert len(files) == 2
    assert all(key not in path.read_text() for path in files)
    user.succeed("connect", "claude-code", "--undo", "--yes")
    assert [path for path in user.home.rglob("*") if path.is_file()] == []


def test_dry_run_and_a_no_change_nothing(user: User) -> None:
    shown = user.succeed("connect", "codex", "--dry-run")
    assert "+[mcp_servers.memorywall]" in shown
    assert shown.endswith("nothing is changed\n")
    refused = run("connect", "codex", input="n\n", variables=user.variables)
    assert refused.stdout.endswith("nothing is changed\n")
    assert list(user.home.rglob("*")) == []


def test_what_was_said_is_recalled_in_another_conversation(
    connected: tuple[User, Client],
) -> None:
    user, client = connected
    assert user.prompt("one", FACT, "a") is None
    user.reply("one", "Noted.", "a")
    assert user.turns(client, "one") == [("user", FACT), ("assistant", "Noted.")]
    assert FACT[:60] in user.succeed("sessions", "list", "--connection", "claude-code")
    recalled = user.prompt("two", PROMPT, "b")
    assert recalled is not None
    assert FACT in recalled
    # The conversation has what was said in it already, and noise is worse than nothing.
    assert user.prompt("one", PROMPT, "c") is None
    assert user.prompt("three", "What is the capital of Peru?", "d") is None
    # What was recalled is not stored again, also where a host hands it to the hook.
    user.reply("two", f"{recalled} With Kamal.", "b")
    assert user.turns(client, "two") == [("user", PROMPT), ("assistant", "With Kamal.")]
    assert "0 turns waiting" in user.succeed("hook", "claude-code", "--status")
    assert FACT in user.succeed("recall", "--connection", "claude-code", PROMPT, "--json")


def test_turns_wait_while_the_server_is_away_and_are_stored_once(tmp_path: Path) -> None:
    user = User(tmp_path / "home")
    with ServerProcess(tmp_path / "data") as server:
        key = server.create_key("coder")
        port = server.url.rpartition(":")[2]
        user.connect("--url", server.url, "--key", key)
        user.prompt("one", "first", "a")
    assert user.prompt("one", "second", "b") is None
    user.reply("one", "reply to second", "b")
    status = user.succeed("hook", "claude-code", "--status")
    assert status.startswith("3 turns waiting")
    assert "cannot be reached" in status or "connect" in status.lower()
    spool = (user.folder / "spool.jsonl").read_bytes()
    with (
        ServerProcess(tmp_path / "data", "--port", port) as server,
        Client(server.url, key) as client,
    ):
        assert user.succeed("hook", "claude-code", "--drain") == "3 turns stored, 0 refused\n"
        expected = [("user", "first"), ("user", "second"), ("assistant", "reply to second")]
        assert user.turns(client, "one") == expected
        assert (user.folder / "spool.jsonl").read_bytes() == b""
        # As if the process had been killed before it emptied the file.
        (user.folder / "spool.jsonl").write_bytes(spool)
        user.reply("one", "another", "c")
        assert user.turns(client, "one") == [*expected, ("assistant", "another")]


def test_a_conversation_goes_on_after_its_session_is_closed(
    connected: tuple[User, Client],
) -> None:
    user, client = connected
    user.prompt("one", "first", "a")
    user.reply("one", "done", "a")
    (session,) = client.sessions.list(client_id="one").sessions
    client.sessions.get(session.id).close()
    user.prompt("one", "second", "b")
    user.reply("one", "done again", "b")
    assert user.turns(client, "one") == [("user", "first"), ("assistant", "done")]
    assert user.turns(client, "one#2") == [("user", "second"), ("assistant", "done again")]


def test_what_was_said_before_a_person_was_forgotten_is_refused(
    user: User, server: ServerProcess
) -> None:
    key = server.create_key(f"agent-{next(_NUMBERS)}")
    user.connect("--url", server.url, "--key", key, "--user", "ana")
    with Client(server.url, key) as client, Client(server.url, server.dev_key) as boss:
        user.prompt("one", "Ana moves to Graz.", "a")
        boss.forget("ana")
        user.reply("one", "Noted.", "b")
        assert user.turns(client, "one", "ana") == [("assistant", "Noted.")]
        status = user.succeed("hook", "claude-code", "--status")
        assert status.startswith("0 turns waiting")
        assert "refused" in status
        assert "Graz" not in status
        assert "Graz" not in "".join(path.read_text() for path in user.folder.iterdir())


def test_a_hook_never_fails_its_host(connected: tuple[User, Client]) -> None:
    user, _ = connected
    for given in (
        "",
        "{",
        "[]",
        '{"hook_event_name": "Stop"}',
        '{"hook_event_name": 1}',
        "[" * 9999,
    ):
        printed = user.run_hook(given)
        assert (printed.returncode, printed.stdout) == (0, "")
    line = [sys.executable, "-m", "memorywall", "hook", "claude-code"]
    given = b'{"hook_event_name": "\xff"}'
    done = subprocess.run(line, input=given, env=environment(**user.variables), check=True)
    assert done.returncode == 0
    assert user.prompt("one", "   ") is None
    assert "there is no connection other" in refuse(
        "hook", "other", input="{}", variables=user.variables
    )


def test_an_excluded_folder_is_left_alone(user: User, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    user.connect("--exclude", str(secret))
    for folder, waiting in ((secret / "deep", 0), (tmp_path / "secrets", 1)):
        given = {"hook_event_name": "Stop", "session_id": "s", "last_assistant_message": "x"}
        user.run_hook(json.dumps({**given, "cwd": str(folder)}))
        user.succeed("hook", "claude-code", "--drain")
        shown = user.succeed("sessions", "list", "--connection", "claude-code", "--json")
        assert len(json.loads(shown)) == waiting


def test_another_place_is_refused_while_turns_wait(user: User, tmp_path: Path) -> None:
    user.connect("--url", "http://127.0.0.1:9", "--key", "k")
    user.reply("one", "waits")
    options = ("connect", "claude-code", "--yes", "--data", str(tmp_path / "other"))
    assert "1 turn is waiting" in refuse(*options, variables=user.variables)
    # A new key of the same agent is another thing.
    user.connect("--url", "http://127.0.0.1:9", "--key", "new")
    assert "1 turn waiting" in user.succeed("hook", "claude-code", "--status")


@contextmanager
def started(user: User, connection: str) -> Iterator[subprocess.Popen[bytes]]:
    """The MCP server of a host, as the host starts it; it answers hooks."""
    command = [sys.executable, "-m", "memorywall", "mcp", "--connection", connection]
    surroundings = environment(**user.variables)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=surroundings, stdin=pipe, stdout=pipe) as host:
        folder = user.folder.with_name(connection)
        wait_until(lambda: ask_relay(folder, RelayRequest("")) is not None, "a socket")
        try:
            yield host
        finally:
            host.kill()


@pytest.mark.sqlite("the host opens the directory itself")
def test_hosts_of_one_directory_share_it_and_take_it_over(user: User, tmp_path: Path) -> None:
    """One process has the directory open. It answers the others, the command line too; after it was
    killed another one has it open."""
    data = tmp_path / "mine" / "data"
    user.connect("--data", str(data))
    user.succeed("connect", "codex", "--yes", "--data", str(data))
    spools = [user.folder / "spool.jsonl", user.folder.with_name("codex") / "spool.jsonl"]

    def codex(event: str, **given: str) -> str:
        line = json.dumps({"hook_event_name": event, "session_id": "two", "turn_id": "b", **given})
        return succeed("hook", "codex", input=line, variables=user.variables)

    def wait_until_stored() -> None:
        wait_until(lambda: not any(one.exists() and one.read_bytes() for one in spools), "no turns")

    with started(user, "claude-code") as first:
        user.prompt("one", FACT, "a")
        wait_until_stored()
        with started(user, "codex"):
            assert FACT in codex("UserPromptSubmit", prompt=PROMPT)
            assert FACT in user.succeed("recall", "--connection", "claude-code", PROMPT, "--json")
            # An agent has over the socket what it has in the directory: everything.
            user.succeed("worthiness", "--connection", "codex")
            first.send_signal(signal.SIGKILL)
            first.wait()
            codex("Stop", last_assistant_message="With Kamal.")
            wait_until_stored()
            with started(user, "claude-code"):
                assert FACT in (user.prompt("three", PROMPT, "c") or "")
                user.reply("three", "With Kamal, again.", "c")
                wait_until_stored()
    user.reply("one", "and alone", "d")
    user.succeed("hook", "claude-code", "--drain")
    shown = user.succeed("sessions", "list", "--connection", "claude-code", "--json")
    counts = {one["client_id"]: one["counts"]["turn_count"] for one in json.loads(shown)}
    assert counts == {"one": 2, "two": 2, "three": 2}


@pytest.mark.sqlite("the host opens the directory itself")
def test_sockets_are_for_their_user_alone(user: User, tmp_path: Path) -> None:
    data = tmp_path / "data"
    user.connect("--data", str(data))
    with started(user, "claude-code"):
        user.reply("one", "opens the directory")
        found = [socket_in(data, "memory.sock"), socket_in(user.folder, SOCKET)]
        paths = [path for path in found if path is not None]
        for path in paths:
            wait_until(path.exists, "a socket")
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(paths) == 2


def test_transcripts_fill_in_what_hooks_have_not_kept(connected: tuple[User, Client]) -> None:
    user, client = connected
    session = "0b0c8f4e-7d5e-4c3a-9a53-0123456789ab"
    user.prompt(session, "first", "p1")
    user.reply(session, "reply to first", "p1")
    said: list[Any] = []
    for turn, role, text in [
        ("p1", "user", "first"),
        ("p1", "assistant", "reply to first"),
        ("p2", "user", "second"),
        ("p2", "assistant", "reply to second"),
    ]:
        message = {"role": role, "content": text}
        line = {"type": role, "sessionId": session, "promptId": turn, "message": message}
        said.append({**line, "timestamp": f"2026-03-0{len(said) + 1}T00:00:00.000Z"})
    path = host_formats()["claude-code"].transcript.files.replace("*", session)
    file = user.home / ".claude" / path
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(one) + os.linesep for one in said))
    line = ("import-chat", "--connection", "claude-code")
    first = run(*line, variables=user.variables)
    assert first.stderr == "2 turns of 1 conversation imported, 2 existed already, 0 refused\n"
    whole = (*line, "--host", "claude-code", str(file))
    assert run(*whole, variables=user.variables).stderr.startswith("0 turns")
    file.with_name("other.jsonl").write_text("hello\n")
    other = (*whole[:-1], str(file.with_name("other.jsonl")))
    assert "has no turns of Claude Code" in refuse(*other, variables=user.variables)
    (found,) = client.sessions.list(client_id=session).sessions
    turns = client.sessions.get(found.id).turns()
    assert [one.content for one in turns] == [
        "first",
        "reply to first",
        "second",
        "reply to second",
    ]
    assert turns[2].said_at == "2026-03-03T00:00:00.000Z"


def test_a_recalled_turn_has_the_day_on_which_it_was_said(connected: tuple[User, Client]) -> None:
    user, client = connected
    session = client.sessions.create(client_id="old")
    mark = "</memorywall-recall>"
    session.add("user", f"{FACT} {mark}", said_at="2025-03-04T00:00:00Z")
    recalled = user.prompt("new", PROMPT)
    assert recalled is not None
    assert f"- 2025-03-04: {FACT}" in recalled
    # What a memory says cannot end the mark.
    assert recalled.count(mark) == 1


def test_kills_of_hooks_and_of_the_server_lose_and_double_no_accepted_turn(tmp_path: Path) -> None:
    """Each hook is killed at some time, or not at all; so is the server, which starts again."""
    seed = chosen_seed()
    random, user = Random(seed), User(tmp_path / "home")
    accepted: list[str] = []

    def hook(text: str) -> None:
        given = {"hook_event_name": "Stop", "session_id": "one", "last_assistant_message": text}
        line = json.dumps({**given, "prompt_id": text}).encode()
        command = [sys.executable, "-m", "memorywall", "hook", "claude-code"]
        surroundings = environment(**user.variables)
        with subprocess.Popen(command, env=surroundings, stdin=subprocess.PIPE) as process:
            with suppress(subprocess.TimeoutExpired):
                limit = random.uniform(0, 2) if random.random() < 0.6 else None
                process.communicate(line, timeout=limit)
            process.kill()
        if process.returncode == 0:
            accepted.append(text)

    server = ServerProcess(tmp_path / "data")
    key, port = server.create_key("coder"), server.url.rpartition(":")[2]
    user.connect("--url", server.url, "--key", key)
    for number in range(extent(8, long=200)):
        if random.random() < 0.3:
            server.kill()
            server.errors.close()
            hook(f"away {number}")
            server = ServerProcess(tmp_path / "data", "--port", port)
        hook(f"turn {number}")
    with server, Client(server.url, key) as client:
        user.succeed("hook", "claude-code", "--drain")
        stored = [text for _, text in user.turns(client, "one")]
    assert len(stored) == len(set(stored))
    assert set(accepted) <= set(stored)
    assert [text for text in stored if text in set(accepted)] == accepted
    print(len(accepted), "accepted,", len(stored), "stored")


def test_earlier_questions_are_no_answers(connected: tuple[User, Client]) -> None:
    user, _ = connected
    question = "Why does the nightly build fail on Windows?"
    user.prompt("fact", "The staging cluster is called heron.", "f")
    user.reply("fact", "Noted.", "f")
    for number in range(6):
        assert user.prompt(f"build {number}", question) is None
        assert user.prompt(f"tests {number}", "run the tests and fix what fails") is None
        user.reply(f"build {number}", "I looked at it.")
    for number in range(3):
        assert user.prompt(f"on {number}", "continue") is None
        user.reply(f"on {number}", "Done.")
        recalled = user.prompt(f"cluster {number}", "What is the staging cluster called?")
        user.reply(f"cluster {number}", "It is heron.")
        assert recalled is not None
        assert recalled.count("The staging cluster is called heron.") == 1
        assert "?" not in recalled


def test_two_connections_of_a_host_stand_beside_each_other(user: User, tmp_path: Path) -> None:
    user.connect("--data", str(tmp_path / "one"))
    user.connect("--data", str(tmp_path / "two"), "--name", "work")
    file = user.home / ".claude.json"
    servers = json.loads(file.read_text())["mcpServers"]
    assert {name: one["args"][-1] for name, one in servers.items()} == {
        "memorywall": "claude-code",
        "memorywall-work": "work",
    }
    user.succeed("connect", "claude-code", "--name", "work", "--undo", "--yes")
    assert list(json.loads(file.read_text())["mcpServers"]) == ["memorywall"]
    hooks = json.loads((user.home / ".claude/settings.json").read_text())["hooks"]
    assert [len(one) for one in hooks.values()] == [1, 1]


def test_only_options_choose_a_server_and_it_is_asked(user: User, server: ServerProcess) -> None:
    environment_key = {"MEMORYWALL_URL": server.url, "MEMORYWALL_API_KEY": server.dev_key}
    variables = {**user.variables, **environment_key}
    shown = succeed("connect", "claude-code", "--yes", variables=variables)
    assert "in /" in shown
    assert "of the agent local" in shown
    for options, reason in (
        (("--url", server.url), "--key"),
        (("--url", server.url, "--key", "wrong"), "key"),
        (("--url", "nohttp", "--key", "k"), "http"),
        (("--agent", "", "--dry-run"), "--agent"),
        (("--user", "a/b", "--dry-run"), "--user"),
    ):
        refused = refuse("connect", "codex", "--yes", *options, variables=user.variables)
        assert reason in refused, refused
    away = run(
        *("connect", "codex", "--yes", "--url", "http://127.0.0.1:9", "--key", "k"),
        variables=user.variables,
    )
    assert away.returncode == 0
    assert "turns wait until it answers" in away.stderr


def test_a_damaged_connection_is_replaced_and_undo_keeps_turns(user: User) -> None:
    user.connect()
    file = user.home / ".config/memorywall/claude-code.json"
    file.write_text("garbage")
    assert "is damaged" in refuse("hook", "claude-code", "--status", variables=user.variables)
    user.connect()
    assert json.loads(file.read_text())["agent"] == "local"
    file.write_text("garbage")
    user.succeed("connect", "claude-code", "--undo", "--yes")
    assert not file.exists()
    undone = user.succeed("connect", "claude-code", "--undo", "--yes")
    assert undone.startswith("nothing to do")
    user.connect("--url", "http://127.0.0.1:9", "--key", "k")
    user.reply("one", "waits")
    undo = ("connect", "claude-code", "--undo", "--yes")
    assert "1 turn is waiting" in refuse(*undo, variables=user.variables)
