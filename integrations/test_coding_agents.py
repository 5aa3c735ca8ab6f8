"""Claude Code and Codex themselves, with a scripted model: what `memorywall connect` gives them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from integrations.npm_packages import install_packages
from integrations.streaming_model import StreamingModel, streaming_model
from memorywall.adapters.hosts.host_formats import host_formats

PACKAGES = {"claude-code": "@anthropic-ai/claude-code", "codex": "@openai/codex"}
PROGRAMS = {"claude-code": "claude", "codex": "codex"}
ARGUMENTS = {
    "claude-code": ["-p"],
    "codex": ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"],
}
CONNECTED = {"claude-code": "Connected", "codex": "mcp --connection codex"}
FACT = "We deploy with Kamal to the Frankfurt machines, never on Fridays."
PROMPT = "Which tool do we deploy with to the Frankfurt machines?"
REPLY = "Noted, I remember that."


@dataclass(frozen=True)
class Agent:
    """A coding agent of a user with a home folder of its own."""

    host: str
    program: Path
    home: Path
    model: StreamingModel

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "SCRIPTED_KEY": "none",
        }

    def run(self, *arguments: str) -> str:
        """Runs the agent; returns what it prints."""
        done = subprocess.run(
            [self.program, *arguments],
            cwd=self.home / "project",
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def say(self, prompt: str) -> str:
        """Has a conversation of one prompt; returns what the agent asked its model."""
        known = len(self.model.asked)
        assert REPLY in self.run(*ARGUMENTS[self.host], prompt)
        return "\n".join(self.model.asked[known:])

    def memorywall(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "memorywall", *arguments]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True, timeout=120
        )

    def turns(self) -> list[int]:
        """The numbers of turns of the conversations in memory, oldest first."""
        shown = self.memorywall("sessions", "list", "--connection", self.host, "--json").stdout
        return [one["counts"]["turn_count"] for one in reversed(json.loads(shown))]


@pytest.fixture(params=sorted(PROGRAMS))
def agent(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    record_testsuite_property: Callable[[str, object], None],
) -> Iterator[Agent]:
    package = f"{PACKAGES[request.param]}@{host_formats()[request.param].tried}"
    program = install_packages(request.param, package) / ".bin" / PROGRAMS[request.param]
    with streaming_model(REPLY) as model:
        found = Agent(request.param, program, tmp_path / "home", model)
        (found.home / "project").mkdir(parents=True)
        record_testsuite_property(request.param, host_formats()[request.param].tried)
        if request.param == "codex":
            folder = found.home / ".codex"
            folder.mkdir(exist_ok=True)
            (folder / "config.toml").write_text(
                'model = "gpt-5"\nmodel_provider = "scripted"\n\n[model_providers.scripted]\n'
                f'name = "scripted"\nbase_url = "{model.url}/v1"\nwire_api = "responses"\n'
                'env_key = "SCRIPTED_KEY"\n'
            )
        yield found


def test_memory_of_one_conversation_is_in_the_next(agent: Agent) -> None:
    agent.memorywall("connect", agent.host, "--yes")
    first = agent.say(FACT)
    assert "memorywall-recall" not in first
    agent.memorywall("hook", agent.host, "--drain")
    assert agent.turns() == [2]
    second = agent.say(PROMPT)
    assert "memorywall-recall" in second
    assert second.count(FACT) == 1
    # Neither agent waits for its MCP servers before it asks its model for the first time.
    assert CONNECTED[agent.host] in agent.run("mcp", "list")
    agent.memorywall("hook", agent.host, "--drain")
    assert agent.turns() == [2, 2]
    # The transcripts of the agent have the same turns, under the same ids.
    line = ("import-chat", "--connection", agent.host, "--host", agent.host)
    imported = agent.memorywall(*line).stderr
    assert imported == "0 turns of 2 conversations imported, 4 existed already, 0 refused\n"
    agent.memorywall("connect", agent.host, "--undo", "--yes")
    assert "memorywall-recall" not in agent.say(PROMPT)


def test_what_was_said_before_memory_was_there_is_filled_in(agent: Agent) -> None:
    agent.say(FACT)
    agent.memorywall("connect", agent.host, "--yes")
    line = ("import-chat", "--connection", agent.host, "--host", agent.host)
    assert agent.memorywall(*line).stderr.startswith("2 turns of 1 conversation imported")
    assert FACT in agent.say(PROMPT).partition("memorywall-recall")[2]
