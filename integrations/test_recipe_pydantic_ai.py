"""The recipe for Pydantic AI."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integrations.scripted_model import Reply, ScriptedModel, calls, says
from tests.support.process import ServerProcess


def answers(body: dict[str, Any]) -> Reply:
    knows = "only drinks green tea." in json.dumps(body)
    return says("Green tea." if knows else "I do not know yet.")


def test_the_page(
    recipe: Callable[[str], dict[str, Any]],
    model: ScriptedModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asks = [calls("recall", question="Which tea does the user drink?"), answers]
    model.will(calls("remember", text="The user only drinks green tea."), says("Noted."), *asks * 3)
    with ServerProcess(tmp_path / "data") as server:
        monkeypatch.setenv("MEMORYWALL_URL", server.url)
        monkeypatch.setenv("MEMORYWALL_API_KEY", server.dev_key)
        recipe("pydantic-ai")
    first = json.dumps(model.requests[0])
    assert "Call `recall` before you answer" in first
    assert {one["name"] for one in model.requests[0]["tools"]} >= {"remember", "recall", "forget"}
