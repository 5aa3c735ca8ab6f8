"""A model that says what a test has it say, behind the interfaces of OpenAI, Anthropic and Google.

A recipe is run as its page has it: the client of the framework finds this model by the environment
variables of its own SDK, and no request leaves the machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.model_server import ModelServer, model_server

Body = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """What the model says, and the tools that it calls with their arguments."""

    text: str = ""
    calls: tuple[tuple[str, Body], ...] = ()


def says(text: str) -> Reply:
    """A reply in words."""
    return Reply(text)


def calls(tool: str, /, **arguments: Any) -> Reply:
    """A reply that calls one tool."""
    return Reply(calls=((tool, arguments),))


class ScriptedModel:
    """Gives the replies of its script in order, whichever interface is asked."""

    def __init__(self, server: ModelServer) -> None:
        self._server = server
        self._script: list[Reply | Callable[[Body], Reply]] = []
        server.answer = self._answer

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which the SDKs of the providers find this model."""
        url = f"http://127.0.0.1:{self._server.server_address[1]}"
        return {
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_BASE": f"{url}/v1",
            "OPENAI_API_KEY": "none",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": url,
            "GOOGLE_API_KEY": "none",
        }

    @property
    def requests(self) -> list[Body]:
        """The bodies of the requests to the model, oldest first."""
        return [body for _, _, body in self._server.asked if body]

    def will(self, *replies: Reply | Callable[[Body], Reply]) -> None:
        """Adds replies to the script; a function is given the body of the request."""
        self._script += replies

    def _answer(self) -> bytes:
        path, _, body = self._server.asked[-1]
        reply = self._script.pop(0) if self._script else says("The script has no more replies.")
        if callable(reply):
            reply = reply(body)
        number = len(self._server.asked)
        (render,) = (
            one for ending, one in _INTERFACES.items() if path.partition("?")[0].endswith(ending)
        )
        rendered = render(reply, number)
        return _stream(rendered) if body.get("stream") else json.dumps(rendered).encode()


@contextmanager
def scripted_model() -> Iterator[ScriptedModel]:
    """A model behind a port of this machine."""
    with model_server() as server:
        yield ScriptedModel(server)


def _chat_completion(reply: Reply, number: int) -> Body:
    message: Body = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}_{place}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for place, (name, arguments) in enumerate(reply.calls)
        ]
    reason = "tool_calls" if reply.calls else "stop"
    return {
        "id": f"chatcmpl_{number}", "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }  # fmt: skip


def _stream(completion: Body) -> bytes:
    """A chat completion as the only chunk of a stream; the other interfaces are not streamed."""
    (choice,) = completion["choices"]
    delta = choice.pop("message")
    for place, call in enumerate(delta.get("tool_calls", ())):
        call["index"] = place
    chunk = {
        **completion,
        "object": "chat.completion.chunk",
        "choices": [{**choice, "delta": delta}],
    }
    return f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()


def _response(reply: Reply, number: int) -> Body:
    output: list[Body] = []
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        output.append({
            "type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed",
            "content": [part],
        })  # fmt: skip
    for place, (name, arguments) in enumerate(reply.calls):
        output.append({
            "type": "function_call", "id": f"fc_{number}_{place}", "status": "completed",
            "call_id": f"call_{number}_{place}", "name": name, "arguments": json.dumps(arguments),
        })  # fmt: skip
    return {
        "id": f"resp_{number}", "object": "response", "created_at": 0, "status": "completed",
        "model": "scripted", "output": output, "parallel_tool_calls": True, "tools": [],
        "tool_choice": "auto",
        "usage": {
            "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
        },
    }  # fmt: skip


def _message(reply: Reply, number: int) -> Body:
    content: list[Body] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [
        {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": name, "input": arguments}
        for place, (name, arguments) in enumerate(reply.calls)
    ]
    return {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted",
        "content": content, "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip


def _generated_content(reply: Reply, number: int) -> Body:
    parts: list[Body] = [{"text": reply.text}] if reply.text else []
    parts += [{"functionCall": {"name": name, "args": given}} for name, given in reply.calls]
    return {
        "candidates": [
            {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        ],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        "responseId": str(number),
    }


_INTERFACES: dict[str, Callable[[Reply, int], Body]] = {
    "/chat/completions": _chat_completion,
    "/responses": _response,
    "/messages": _message,
    ":generateContent": _generated_content,
}
