"""The socket by which hooks reach the process that has the memory of their connection open.

This side of it needs none of the modules of a client, so that a hook starts quickly.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec

from memorywall.sdk.local_sockets import socket_in

MOST_BYTES = 2**20
NEWLINE = b"\n"
SOCKET = "hooks.sock"


class RelayRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request of a hook: to recall for a prompt, or, without one, to empty the spool."""

    session: str
    prompt: str | None = None


class RelayReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The text for the model, or why there is none."""

    text: str | None = None
    error: str | None = None


_decode_reply = msgspec.json.Decoder(RelayReply).decode


def ask_relay(folder: Path, request: RelayRequest, patience: float = 2) -> RelayReply | None:
    """Returns the reply of the process that answers for a folder; None if there is none.

    patience: the seconds after which it counts as none
    """
    path = socket_in(folder, SOCKET)
    if path is None or not path.exists():
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(patience)
        try:
            connection.connect(os.fspath(path))
            connection.sendall(msgspec.json.encode(request) + NEWLINE)
            return _decode_reply(connection.makefile("rb").readline(MOST_BYTES))
        except (OSError, ValueError):
            return None
