"""An endpoint of a model with OpenAI's interface, which behaves well or badly."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GOOD = "The user's dishwasher leaks and the user is annoyed. The technician comes on 3 May."
"""A summary that the turns of `tests.summaries.conversations.REPAIR` support."""


class ModelServer(ThreadingHTTPServer):
    """An endpoint whose answer a test sets; it keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer: Callable[[], bytes] = lambda: completion(GOOD)
        self.status = 200
        self.released = threading.Event()
        self.asked: list[tuple[str, str | None, dict[str, Any]]] = []

    @property
    def spec(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1#small"

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing: a client may leave before the reply is written."""


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"], {}))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers["Authorization"], body))
        content = self.server.answer()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Says nothing."""


def completion(text: str) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """A running endpoint."""
    server = ModelServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
