"""The published client's own environment, made once and kept at the root of the repository."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.environments import create_environment as create_environment

ROOT = Path(__file__).resolve().parent.parent.parent
# Without extras: they bring its server and model adapters, and the client needs neither.
PACKAGE = "openintent==0.17.0"
_ENVIRONMENT = ROOT / ".published-client"
_STAMP = _ENVIRONMENT / "made-from"


def client_python() -> Path:
    """The interpreter that has the published client, which is installed where that is needed."""
    python = _ENVIRONMENT / "bin" / "python"
    wanted = f"{PACKAGE} for Python {sys.version}"
    with _one_at_a_time():
        if not (python.exists() and _STAMP.is_file() and _STAMP.read_text() == wanted):
            create_environment(_ENVIRONMENT, PACKAGE)
            # Last, so that what was cut short is made again.
            _STAMP.write_text(wanted)
    return python


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Several workers of one run want the environment at the same time."""
    directory = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)
