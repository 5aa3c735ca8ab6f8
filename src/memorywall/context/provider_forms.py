"""Content parts and tools in the form of a provider, whichever provider's form they were stored in.

Texts, images and functions are converted. A part that only another provider accepts is shown as its
text. What the rules of no provider name, and a tool that a provider runs itself, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from memorywall.context.item import ContextItem
from memorywall.context.provider_rules import KNOWN_PARTS, RULES, Provider
from memorywall.kinds.content_parts import Content, part_text
from memorywall.kinds.sessions import Role

_TEXTS = ("text", "input_text", "output_text")
_THINKING = ("thinking", "redacted_thinking", "reasoning")
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "image_url": ("image_url", "url"),
    "image": ("source",),
    "document": ("source",),
    "search_result": ("content",),
    "file": ("file",),
    "input_audio": ("input_audio",),
    "refusal": ("refusal",),
    "thinking": ("signature",),
    "redacted_thinking": ("data",),
}
"""The names that lead to what a part of a type is for."""
_SOURCES = ("data", "url", "file_id", "content")
_SCHEMAS = ("parameters", "input_schema", "inputSchema")
_DATA_URL = re.compile(r"data:(?P<type>[\w.+/-]+);base64,(?P<data>.*)", re.DOTALL)
_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


def parts_of(
    content: Sequence[Mapping[str, Any]], provider: Provider, role: str
) -> list[dict[str, Any]]:
    """Returns content parts as a message of a role may have them, without empty texts and without
    thinking that the provider did not sign."""
    found = [_fitted(part, provider, role) for part in content]
    return [one for one in found if one and (one["type"] != "text" or one["text"].strip())]


def media_of(content: Content, provider: Provider) -> list[dict[str, Any]]:
    """Returns the parts of the result of a tool that only a message of the user may have."""
    if isinstance(content, str):
        return []
    allowed = RULES.providers[provider].parts
    found = [_converted(part, provider) for part in content]
    wanted = allowed["user"] - allowed["tool"]
    return [one for one in found if one["type"] in wanted and _is_whole(one)]


def shown_role(turn: ContextItem) -> str:
    """Returns the role of the message of a turn. Untrusted text of the system and a result without
    its call are data in a message of the user."""
    if turn.role == "tool" or (turn.role == "system" and not turn.trusted):
        return "user"
    return turn.role


def with_lead(lead: str, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the parts of a message with words before its text. No parts stay none."""
    if not lead or not parts:
        return parts
    texts = [at for at, part in enumerate(parts) if part["type"] == "text"]
    thinking = sum(part["type"] in _THINKING for part in parts)
    at = texts[0] if texts else thinking
    first = parts[at] if texts else {"type": "text", "text": ""}
    text = {**first, "text": f"{lead}{first['text']}"}
    return [*parts[:at], text, *parts[at + len(texts[:1]) :]]


def _fitted(part: Mapping[str, Any], provider: Provider, role: str) -> dict[str, Any] | None:
    """Returns a part as a message of a role may have it; None for nothing to show."""
    converted = _converted(part, provider)
    allowed = RULES.providers[provider].parts[cast(Role, role)]
    kind = converted["type"]
    if kind in allowed and _is_whole(converted):
        return converted
    if kind in _THINKING:
        return None
    if kind not in KNOWN_PARTS and role in ("user", "assistant"):
        return converted
    return {"type": "text", "text": part_text(part) or f"[{kind}]"}


def _converted(part: Mapping[str, Any], provider: Provider) -> dict[str, Any]:
    found = openai_part(part) if provider == "openai" else anthropic_part(part)
    if found["type"] == "text" and not isinstance(found.get("text"), str):
        return {"type": "text", "text": part_text(part)}
    return found


def _is_whole(part: Mapping[str, Any]) -> bool:
    """Returns whether a part has what its type is for, without which a provider refuses it."""
    value: Any = part
    for name in _NEEDED.get(part["type"], ()):
        value = value.get(name) if isinstance(value, Mapping) else None
    if part["type"] in ("image", "document"):
        return isinstance(value, Mapping) and any(value.get(name) for name in _SOURCES)
    return bool(value.strip() if isinstance(value, str) else value)


def openai_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a content part as a chat completion of OpenAI has it."""
    if part.get("type") in _TEXTS:
        return {"type": "text", "text": part.get("text", "")}
    source = part.get("source")
    if part.get("type") == "image" and isinstance(source, Mapping):
        url = source.get("url")
        if source.get("type") == "base64":
            url = f"data:{source.get('media_type')};base64,{source.get('data')}"
        return {"type": "image_url", "image_url": {"url": url}}
    image = part.get("image_url")
    if part.get("type") in ("input_image", "image_url") and not isinstance(image, Mapping):
        return {"type": "image_url", "image_url": {"url": image}}
    names = ("file_id", "file_data", "filename")
    if part.get("type") == "input_file" and not part.keys().isdisjoint(names[:2]):
        return {"type": "file", "file": {name: part[name] for name in names if name in part}}
    return dict(part)


def anthropic_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a content part as a message of Anthropic has it."""
    if part.get("type") in _TEXTS:
        # Items of OpenAI have fields that Anthropic refuses.
        kept = {name: part[name] for name in ("citations", "cache_control") if name in part}
        return {"type": "text", "text": part.get("text", ""), **kept}
    if part.get("type") not in ("image_url", "input_image"):
        return dict(part)
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else image
    source: dict[str, Any] = {"type": "url", "url": url}
    if isinstance(url, str) and (inline := _DATA_URL.fullmatch(url)):
        source = {"type": "base64", "media_type": inline["type"], "data": inline["data"]}
    return {"type": "image", "source": source}


def openai_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a function as OpenAI describes it."""
    function = _function(tool)
    return dict(tool) if function is None else {"type": "function", "function": function}


def responses_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a function as OpenAI's Responses describe it."""
    function = _function(tool)
    return dict(tool) if function is None else {"type": "function", **function}


def anthropic_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a function as Anthropic describes it."""
    function = _function(tool)
    if function is None:
        return dict(tool)
    schema = function.pop("parameters", dict(_NO_PARAMETERS))
    function.pop("strict", None)
    return {**function, "input_schema": schema}


def _function(tool: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the name, the description, the parameters and what else describes a function; None
    for a tool that a provider runs itself."""
    if tool.get("type", "function") not in ("function", "custom"):
        return None
    described = tool.get("function", tool)
    if not isinstance(described, Mapping) or "name" not in described:
        return None
    function = {name: value for name, value in described.items() if name != "type"}
    for name in _SCHEMAS:
        if name in function:
            function["parameters"] = function.pop(name)
    return function
