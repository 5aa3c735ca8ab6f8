"""Where processes of one user find each other."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from hashlib import sha256
from pathlib import Path

_LONGEST_PATH = 100
"""The most bytes of the path of a socket, on every system."""


def socket_in(folder: Path, name: str) -> Path | None:
    """The path of a socket for a folder; None where there are no such sockets.

    It is in the folder, or, if that path is too long for a socket, in one of this user alone below
    the folder for temporary files.
    """
    if not hasattr(socket, "AF_UNIX"):
        return None
    path = folder / name
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        return path
    short = Path(tempfile.gettempdir()) / f"memorywall-{os.getuid()}"
    short.mkdir(mode=0o700, exist_ok=True)
    found = short.lstat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) != 0o700:
        # Somebody else has made it, who could answer in place of memory.
        return None
    return short / f"{sha256(os.fsencode(path)).hexdigest()[:24]}.sock"
