"""The recipe for Anthropic's SDK."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from integrations.scripted_model import Reply, ScriptedModel, calls, says


def answers(body: dict[str, Any]) -> Reply:
    knows = "only drinks green tea." in json.dumps(body)
    return says("Green tea." if knows else "I do not know yet.")


def test_the_page(recipe: Callable[[str], dict[str, Any]], model: ScriptedModel) -> None:
    model.will(
        calls("remember", text="Ann only drinks green tea."),
        says("Noted."),
        answers,
        answers,
        answers,
    )
    recipe("anthropic")
