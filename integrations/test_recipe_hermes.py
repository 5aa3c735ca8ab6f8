"""The recipe for Hermes Agent: its own agent, with a scripted model and the files of the page."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from run_agent import AIAgent

from integrations.scripted_model import Reply, ScriptedModel, calls, says
from memorywall import Client
from tests.support.process import ServerProcess, run_cli

TOLD = "I only drink green tea, remember that."
ASKED = "Which tea do I drink?"
KNOWN, UNKNOWN = "Green tea.", "I do not know yet."
ANN, BOB = "4711", "4712"
_LIMIT = 30.0


def answers(body: dict[str, Any]) -> Reply:
    return says(KNOWN if TOLD in json.dumps(body) else UNKNOWN)


class Hermes:
    """Agents over a home of Hermes that has the files of the page."""

    def __init__(self, home: Path, model: ScriptedModel) -> None:
        self.home = home
        self.model = model
        self.waiting = home / "memorywall"

    def hear(
        self, text: str, *replies: Reply, user: str = ANN, session: str = "monday",
        platform: str = "telegram",
    ) -> str:  # fmt: skip
        """What an agent of a new process answers, as far as memory is concerned; the model replies
        so, or says what it knows of the tea."""
        agent = AIAgent(
            base_url=self.model.environment["OPENAI_BASE_URL"],
            api_key="none",
            provider="custom",
            api_mode="chat_completions",
            model="scripted",
            platform=platform,
            user_id=user,
            session_id=session,
            enabled_toolsets=["memory"],
            quiet_mode=True,
            skip_context_files=True,
        )
        assert agent._memory_manager, "Hermes has not loaded the provider"
        self.model.will(*(replies or [answers]))
        try:
            answer: str = agent.run_conversation(text)["final_response"]
            assert agent._memory_manager.flush_pending(_LIMIT)
        finally:
            agent._memory_manager.shutdown_all()
        return answer

    @property
    def injected(self) -> str:
        """What the last message to the model has from memory."""
        return str(self.model.requests[-1]["messages"][-1]["content"]).partition("<memory-")[2]

    def files(self, ending: str) -> list[Path]:
        return sorted(self.waiting.glob(f"*{ending}"))


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path / "data") as running:
        monkeypatch.setenv("MEMORYWALL_URL", running.url)
        monkeypatch.setenv("MEMORYWALL_API_KEY", running.create_key("hermes"))
        yield running


@pytest.fixture
def hermes(
    server: ServerProcess,
    model: ScriptedModel,
    recipe_files: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Hermes:
    home = recipe_files("hermes")
    with (home / "config.yaml").open("a") as file:
        # Otherwise Hermes asks the model how much it reads.
        file.write("model:\n  context_length: 200000\n")
    monkeypatch.setenv("HERMES_HOME", str(home))
    return Hermes(home, model)


def stored(user: str = ANN, field: str = "content") -> list[str]:
    """What the turns of the conversations with a person have in a field, oldest first."""
    with Client() as client:
        found = client.sessions.list(user=f"telegram:{user}").sessions
        sessions = [client.sessions.get(one.id) for one in reversed(found)]
        return [str(getattr(turn, field)) for one in sessions for turn in one.turns()]


def test_hermes_finds_the_provider(hermes: Hermes) -> None:
    command = [Path(sys.executable).parent / "hermes", "memory", "status"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "available ✓" in printed
    assert "memorywall" in next(line for line in printed.splitlines() if "← active" in line)


def test_a_person_is_known_in_the_next_conversation_until_forgotten(
    hermes: Hermes, server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hermes.hear(TOLD, says("Noted.")) == "Noted."
    assert not hermes.injected
    assert hermes.hear(ASKED, session="tuesday") == KNOWN
    assert TOLD in hermes.injected
    # The same number in another messenger is somebody else.
    assert hermes.hear(ASKED, session="of bob", user=BOB) == UNKNOWN
    assert hermes.hear(ASKED, session="elsewhere", platform="signal") == UNKNOWN
    with monkeypatch.context() as other:
        other.setenv("HERMES_MEMORYWALL_USER", f"telegram:{ANN}")
        assert hermes.hear(ASKED, session="at home", user="", platform="cli") == KNOWN
        run_cli("tenants", "create", "other", *server.place)
        other.setenv("MEMORYWALL_API_KEY", server.create_key("hermes", tenant="other"))
        assert hermes.hear(ASKED, session="of another tenant") == UNKNOWN
    with Client(api_key=server.dev_key) as administrator:
        administrator.forget(f"telegram:{ANN}")
    assert hermes.hear(ASKED, session="wednesday") == UNKNOWN
    assert not hermes.injected
    assert stored() == [ASKED, UNKNOWN]


def test_what_was_injected_is_not_stored_again(hermes: Hermes) -> None:
    hermes.hear(TOLD, says("Noted."))
    hermes.hear(ASKED, session="tuesday")
    pasted = f"Look: <memory-context>\n{hermes.injected}\nWhich tea was that?"
    hermes.hear(pasted, says("Green."), session="wednesday")
    assert stored() == [TOLD, "Noted.", ASKED, KNOWN, "Look: \nWhich tea was that?", "Green."]


def test_a_conversation_does_not_recall_itself(hermes: Hermes) -> None:
    hermes.hear(TOLD, says("Noted."))
    assert hermes.hear(ASKED) == UNKNOWN


def test_turns_wait_for_the_server_and_are_stored_once(
    hermes: Hermes, server: ServerProcess, tmp_path: Path
) -> None:
    server.terminate()
    assert hermes.hear(TOLD, says("Noted.")) == "Noted."
    hermes.hear("I live in Graz.", calls("memorywall_remember", text="Graz."), says("Noted."))
    told = hermes.model.requests[-1]["messages"][-1]
    assert told["role"] == "tool"
    assert "failed" in told["content"]
    assert not hermes.injected
    waiting = hermes.files(".json")
    assert len(waiting) == 2
    assert hermes.waiting.stat().st_mode & 0o077 == 0
    kept = tmp_path / "kept"
    shutil.copytree(hermes.waiting, kept)
    _, _, port = server.url.rpartition(":")
    restarted = datetime.now(UTC).isoformat()
    with ServerProcess(tmp_path / "data", "--port", port):
        assert hermes.hear("Hello.", says("Hi."), session="tuesday") == "Hi."
        assert not hermes.files("")
        said_at = stored(field="said_at")
        assert max(said_at[:4]) < restarted < min(said_at[4:])
        expected = [TOLD, "Noted.", "I live in Graz.", "Noted.", "Hello.", "Hi."]
        assert stored() == expected
        # A process that was killed after the server had stored a turn leaves its file.
        for file in waiting:
            shutil.copy(kept / file.name, file)
        assert hermes.hear(ASKED, session="wednesday") == KNOWN
        assert stored() == [*expected, ASKED, KNOWN]


def test_a_turn_that_waits_while_its_person_is_forgotten_is_not_stored(
    hermes: Hermes, server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as away:
        away.setenv("MEMORYWALL_URL", "http://127.0.0.1:1")
        hermes.hear(TOLD, says("Noted."))
        hermes.hear(TOLD, says("Noted."), user=BOB)
    assert len(hermes.files(".json")) == 2
    with Client(api_key=server.dev_key) as administrator:
        administrator.forget(f"telegram:{ANN}")
    hermes.hear("Hello.", says("Hi."))
    assert not hermes.files("")
    assert stored() == ["Hello.", "Hi."]
    assert stored(BOB) == [TOLD, "Noted."]


def test_a_person_is_forgotten_while_the_agent_works(hermes: Hermes, server: ServerProcess) -> None:
    def remember(_: dict[str, Any]) -> Reply:
        with Client(api_key=server.dev_key) as administrator:
            administrator.forget(f"telegram:{ANN}")
        return calls("memorywall_remember", text=TOLD)

    hermes.hear(TOLD, remember, says("Noted."))
    assert "forgotten" in hermes.model.requests[-1]["messages"][-1]["content"]
    assert not hermes.files("")
    assert not stored()


def test_a_refused_turn_keeps_none_from_being_stored(hermes: Hermes) -> None:
    hermes.waiting.mkdir()
    turn = {"role": "nobody", "said_at": "2026-11-26T05:00:00Z"}
    (hermes.waiting / "1-1.json").write_text(json.dumps([f"telegram:{ANN}", "monday", [turn]]))
    hermes.hear(TOLD, says("Noted."))
    assert [file.name for file in hermes.files("")] == ["1-1.refused"]
    assert stored() == [TOLD, "Noted."]


def test_scheduled_jobs_recall_and_store_nothing(hermes: Hermes) -> None:
    hermes.hear(TOLD, says("Noted."), user="", platform="cli")
    assert hermes.hear(ASKED, session="job", user="", platform="cron") == KNOWN
    with Client() as client:
        assert [one.client_id for one in client.sessions.list(user="owner").sessions] == ["monday"]


def test_the_tools(hermes: Hermes) -> None:
    remember = calls("memorywall_remember", text="Ann's cat is called Murr.")
    hermes.hear("Keep the name of my cat.", remember, says("Noted."))
    recall = calls("memorywall_recall", question="What is Ann's cat called?")
    for user, is_known in ((ANN, True), (BOB, False)):
        hermes.hear("Hello.", recall, says("Hi."), user=user, session=f"of {user}")
        told = hermes.model.requests[-1]["messages"][-1]
        assert ("Murr" in told["content"]) is is_known
