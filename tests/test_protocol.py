"""What the HTTP protocol does beyond uvicorn's."""

from __future__ import annotations

import asyncio
import socket

import uvicorn
import uvloop
from starlette.types import Receive, Scope, Send

from memorywall.server.uvicorn_transport import CoalescingProtocol

_KEPT = 1
_REQUEST = b"GET / HTTP/1.1\r\nhost: memorywall.test\r\n\r\n"


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_a_request_that_lies_unread_when_the_connection_is_over_is_answered() -> None:
    answered, end = uvloop.run(_run_out_of_time())
    assert answered.startswith(b"HTTP/1.1 204")
    assert end == b"", "an idle connection was not closed"


async def _run_out_of_time() -> tuple[bytes, bytes]:
    """What is answered to a request that came just before the timer, and after the next timer. A
    process that stood still finds both at once, and may turn to the timer first."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        _answer,
        http=CoalescingProtocol,
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_keep_alive=_KEPT,
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve([listener]))
    with socket.create_connection(listener.getsockname(), timeout=10) as client:
        client.sendall(_REQUEST)
        await asyncio.to_thread(client.recv, 1_000)
        (protocol,) = server.server_state.connections
        assert isinstance(protocol, CoalescingProtocol)
        client.sendall(_REQUEST)
        protocol.timeout_keep_alive_handler()
        answered = await asyncio.to_thread(client.recv, 1_000)
        end = await asyncio.to_thread(client.recv, 1_000)
    server.should_exit = True
    await asyncio.wait_for(serving, 10)
    return answered, end
