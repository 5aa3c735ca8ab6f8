"""The ceiling: an ASGI application that reads every request whole and answers from a list.

It is served by the same uvicorn with the same event loop and parser, receives the very requests
the measured server receives, and its replies are replies that server gave before.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

import uvicorn

from benchmarks.plan import HOST, Operation

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


def application(canned: dict[str, tuple[int, str]]) -> Application:
    """Make the application; `canned` gives status and body for each operation."""
    replies = {
        operation: _messages(*canned[operation]) for operation in Operation if operation in canned
    }
    healthy = _messages(200, '{"status":"ok"}')

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        operation = _operation(scope["method"], scope["path"])
        head, tail = healthy if operation is None else replies[operation]
        await send(head)
        await send(tail)

    return answer


def _operation(method: str, path: str) -> Operation | None:
    if path == "/health":
        return None
    if method == "GET":
        return Operation.QUERY if path == "/api/v1/memory" else Operation.GET
    if method == "PATCH":
        return Operation.PATCH
    return Operation.BATCH if path.endswith("/batch") else Operation.CREATE


def _messages(status: int, text: str) -> tuple[Message, Message]:
    body = text.encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    return (
        {"type": "http.response.start", "status": status, "headers": headers},
        {"type": "http.response.body", "body": body},
    )


def main() -> None:
    """Serve the replies of a file until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--canned", type=Path, required=True)
    options = parser.parse_args()
    canned = json.loads(options.canned.read_text())
    uvicorn.run(
        application(canned),
        host=HOST,
        port=options.port,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_level="warning",
    )


if __name__ == "__main__":
    main()
