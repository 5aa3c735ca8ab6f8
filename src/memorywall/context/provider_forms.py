"""Content parts and tools in the form of a provider, whichever provider's form they were stored in.

Texts, images and functions are converted. Everything else, such as a document or a tool that a
provider runs itself, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_TEXTS = ("text", "input_text", "output_text")
_SCHEMAS = ("parameters", "input_schema", "inputSchema")
_DATA_URL = re.compile(r"data:(?P<type>[\w.+/-]+);base64,(?P<data>.*)", re.DOTALL)
_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


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
    if part.get("type") == "input_image":
        return {"type": "image_url", "image_url": {"url": part.get("image_url")}}
    return dict(part)


def anthropic_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a content part as a message of Anthropic has it."""
    if part.get("type") in _TEXTS:
        return {**part, "type": "text"}
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
