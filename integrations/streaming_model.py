"""A model that streams one text, as Claude Code and Codex ask for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Event = tuple[str, dict[str, Any]]


class StreamingModel(ThreadingHTTPServer):
    """A model behind a port of this machine, which keeps the bodies that it was asked with."""

    daemon_threads = True

    def __init__(self, text: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.text = text
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StreamingModel

    def do_HEAD(self) -> None:
        self._reply("application/json", b"")

    def do_GET(self) -> None:
        self._reply("application/json", b"{}")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        path = self.path.partition("?")[0]
        if path.endswith("/responses"):
            events = _response(self.server.text)
        elif path.endswith("/messages"):
            events = _message(self.server.text)
        else:
            self._reply("application/json", b'{"input_tokens": 1}')
            return
        self.server.asked.append(body.decode())
        stream = "".join(f"event: {name}\ndata: {json.dumps(one)}\n\n" for name, one in events)
        self._reply("text/event-stream", stream.encode())

    def log_message(self, format: str, *arguments: Any) -> None:
        """Says nothing."""

    def _reply(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@contextmanager
def streaming_model(text: str) -> Iterator[StreamingModel]:
    """A running model."""
    with StreamingModel(text) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _message(text: str) -> list[Event]:
    """The events of Anthropic's Messages."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    begin = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": text}
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    return [
        (one["type"], one)
        for one in (
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": begin},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        )
    ]


def _response(text: str) -> list[Event]:
    """The events of OpenAI's Responses."""
    content = [{"type": "output_text", "text": text}]
    item = {"type": "message", "role": "assistant", "id": "msg_1", "content": content}
    usage = {
        "input_tokens": 1, "input_tokens_details": None, "output_tokens": 1,
        "output_tokens_details": None, "total_tokens": 2,
    }  # fmt: skip
    return [
        (one["type"], one)
        for one in (
            {"type": "response.created", "response": {"id": "resp_1"}},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}},
        )
    ]
