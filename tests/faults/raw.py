"""HTTP by hand, to send half of a request and to see exactly what came back."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class RawReply:
    """What came back: `status` is 0 when nothing did, `whole` tells whether it came to its end."""

    status: int
    head: bytes
    body: bytes
    whole: bool


class RawConnection:
    """One connection, without any help."""

    def __init__(self, url: str, key: str, timeout: float = 30.0) -> None:
        address = urlsplit(url)
        assert address.hostname is not None
        self._key = key
        self._received = b""
        self.socket = socket.create_connection((address.hostname, address.port), timeout)

    def request_bytes(
        self, method: str, path: str, body: dict[str, Any] | None = None, *headers: str
    ) -> bytes:
        """A whole request as it goes over the line."""
        content = b"" if body is None else json.dumps(body).encode()
        lines = [
            f"{method} {path} HTTP/1.1",
            "host: memorywall.test",
            f"x-api-key: {self._key}",
            *headers,
        ]
        if body is not None:
            lines += ["content-type: application/json", f"content-length: {len(content)}"]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + content

    def send(self, content: bytes) -> None:
        self.socket.sendall(content)

    def read_reply(self) -> RawReply:
        """The next reply with a content length, or as much of it as came before the end."""
        while b"\r\n\r\n" not in self._received:
            if not self._receive():
                return RawReply(0, self._received, b"", whole=not self._received)
        head, _, rest = self._received.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, content = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(content)
        while len(rest) < length:
            if not (piece := self._receive()):
                return RawReply(_status(head), head, rest, whole=False)
            rest += piece
        self._received = rest[length:]
        return RawReply(_status(head), head, rest[:length], whole=True)

    def read_until(self, ending: bytes) -> bytes:
        """Everything up to `ending`; what comes after it is left."""
        while ending not in self._received:
            assert self._receive(), f"the connection was closed before {ending!r} came"
        found, _, self._received = self._received.partition(ending)
        return found + ending

    def read_to_end(self) -> bytes:
        """Everything until the server closes the connection."""
        while self._receive():
            pass
        return self._received

    def close(self) -> None:
        self.socket.close()

    def _receive(self) -> bytes:
        try:
            piece = self.socket.recv(65_536)
        except ConnectionError:
            piece = b""
        self._received += piece
        return piece

    def __enter__(self) -> RawConnection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _status(head: bytes) -> int:
    return int(head.split(b" ", 2)[1])
