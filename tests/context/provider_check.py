"""What providers refuse, checked without them."""

from __future__ import annotations

import re
from typing import Any

from memorywall.context.provider_rules import KNOWN_PARTS, RULES, Provider, ProviderRules

Message = dict[str, Any]


def check_openai(messages: list[Message]) -> None:
    """Asserts that OpenAI accepts the messages of a chat completion."""
    rules = RULES.providers["openai"]
    open_calls: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0)
        else:
            assert not open_calls
        calls = message.get("tool_calls", ())
        for call in calls:
            _check_call(rules, seen, call["id"], call["function"]["name"])
            assert isinstance(call["function"]["arguments"], str)
        open_calls = open_calls or [call["id"] for call in calls]
        content = message["content"]
        assert (calls and content is None) or content
        if isinstance(content, str):
            assert content.strip()
        else:
            _check_parts("openai", message["role"], content or [])
    assert not open_calls


def check_responses(items: list[Message]) -> None:
    """Asserts that OpenAI's Responses accept items as `input`."""
    rules = RULES.providers["responses"]
    open_calls: set[str] = set()
    seen: set[str] = set()
    for item in items:
        if item.get("type") == "function_call":
            _check_call(rules, seen, item["call_id"], item["name"])
            assert isinstance(item["arguments"], str)
            open_calls.add(item["call_id"])
            continue
        is_output = item.get("type") == "function_call_output"
        if is_output:
            open_calls.remove(item["call_id"])
        content = item["output"] if is_output else item["content"]
        assert content
        if isinstance(content, list):
            _check_parts("responses", "tool" if is_output else item["role"], content)
    assert not open_calls


def check_anthropic(messages: list[Message], system: list[Message] | None = None) -> None:
    """Asserts that Anthropic accepts messages, and the blocks of the system."""
    rules = RULES.providers["anthropic"]
    _check_parts("anthropic", "system", system or [])
    open_calls: list[str] = []
    seen: set[str] = set()
    cached = len([one for one in system or () if "cache_control" in one])
    for place, message in enumerate(messages):
        role, parts = message["role"], message["content"]
        assert role == ("assistant" if place % 2 else "user")
        assert parts
        results = [part for part in parts if part["type"] == "tool_result"]
        assert [one["tool_use_id"] for one in results] == open_calls
        assert parts[: len(results)] == results
        for one in results:
            _check_parts("anthropic", "tool", one["content"])
        calls = [part for part in parts if part["type"] == "tool_use"]
        for call in calls:
            _check_call(rules, seen, call["id"], call["name"])
            assert isinstance(call["input"], dict)
            assert role == "assistant"
        _check_parts("anthropic", role, [one for one in parts if one not in (*results, *calls)])
        open_calls = [part["id"] for part in calls]
        assert not parts[-1]["type"].endswith("thinking")
        cached += len([one for one in parts if "cache_control" in one])
    assert not open_calls
    assert cached <= 4
    if messages and messages[-1]["role"] == "assistant":
        last = messages[-1]["content"][-1].get("text", "")
        assert last == last.rstrip()


def _check_call(rules: ProviderRules, seen: set[str], call_id: str, name: str) -> None:
    assert call_id not in seen
    seen.add(call_id)
    assert re.fullmatch(f"(?:{rules.id_pattern}){{1,{rules.longest_id}}}", call_id), call_id
    assert re.fullmatch(f"[a-zA-Z0-9_-]{{1,{rules.longest_name}}}", name), name


def _check_parts(provider: Provider, role: Any, parts: list[Message]) -> None:
    for part in parts:
        kind = part["type"]
        is_of_user = role in ("user", "assistant")
        allowed = RULES.providers[provider].parts[role]
        assert kind in allowed or (is_of_user and kind not in KNOWN_PARTS), (role, kind)
        assert "text" not in part or part["text"].strip()
        assert kind != "thinking" or part["signature"]
        assert kind != "refusal" or part["refusal"].strip()
        assert kind != "image_url" or part["image_url"]["url"]
        assert kind != "image" or len(part["source"]) > 1
