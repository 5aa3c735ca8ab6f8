"""A process that holds a session is killed; and the chat of docs/sessions.md is run twice."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

import memorywall
from memorywall.exceptions import ResourceConflictError
from tests.support.backend import store_of
from tests.support.extent import extent
from tests.support.programs import start_python

_ROOT = Path(__file__).parent.parent
_ADDING = """
import sys
import memorywall

with memorywall.open(sys.argv[1], agent="ada") as client:
    session = client.sessions.get(sys.argv[2])
    for number in range(10**6):
        session.add("user", f"turn {number}", client_id=f"{sys.argv[3]}-{number}")
        print(number, flush=True)
        client.jobs.run("end_sessions")
        if number % 3 == 2:
            session.checkpoint(state={"number": number})
"""


def test_a_kill_loses_no_committed_turn(tmp_path: Path) -> None:
    place = store_of(tmp_path) or str(tmp_path / "memory.db")
    policy = {"checkpoint_turns": 2, "compaction_threshold": 0.01}
    with memorywall.open(place, agent="ada") as client:
        session_id = client.sessions.create("ann", policy=policy, token_budget=400).id
    expected = 0
    for name in range(extent(1, long=30)):
        command = ["-c", _ADDING, place, session_id, str(name)]
        # Between a turn and the compaction or the checkpoint after it, or within the next turn.
        last = 5 + name % 3
        with start_python(*command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if int(line) == last:
                    os.kill(process.pid, signal.SIGKILL)
                    break
        with memorywall.open(place, agent="ada") as client:
            session = client.sessions.resume(session_id)
            turns = session.export().turns
            committed = [one for one in turns if (one.client_id or "").startswith(f"{name}-")]
            # The process may go on until the signal reaches it.
            assert len(committed) > last
            ids = [one.client_id for one in committed]
            assert ids == [f"{name}-{number}" for number in range(len(committed))]
            assert [one.sequence for one in turns] == list(range(1, len(turns) + 1))
            assert len(turns) == expected + len(committed)
            repeated = session.add("user", f"turn {last}", client_id=f"{name}-{last}")
            assert repeated in turns
            with pytest.raises(ResourceConflictError):
                session.add("user", "again", client_id=f"{name}-{last}")
            assert session.resumed is not None
            assert session.resumed.checkpoint is not None
            covered = session.resumed.checkpoint.summarized_through
            assert [one.sequence for one in session.resumed.turns] == [
                one.sequence for one in turns[covered:]
            ]
            expected = len(turns)


def test_the_chat_of_the_documentation_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (_ROOT / "docs" / "sessions.md").read_text(encoding="utf-8")
    chat = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert chat is not None
    monkeypatch.chdir(tmp_path)
    for expected in ("4 turns", "8 turns"):
        assert f"`{expected}`" in page
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(chat[1], "docs/sessions.md", "exec"), {})
        assert printed.getvalue().startswith(f"{expected} of session ")
