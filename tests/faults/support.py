"""Small things that several fault tests need."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.process import ServerProcess, run_cli
from tests.support.programs import start_program

ACTING = ("--kind", "service", "--permission", "act_as")
WRITING = ("--permission", "memory.read", "--permission", "memory.write")


def acting_key(server: ServerProcess) -> str:
    """A key that may act for every agent and lives on when the server does not."""
    return server.create_key("load", *ACTING, *WRITING)


def assert_verified(data: Path) -> None:
    """`memorywall verify` finds nothing and says so with its exit code."""
    printed = run_cli("verify", "--data", str(data), check=False)
    assert printed.returncode == 0, printed.stdout + printed.stderr


def wait_until(
    condition: Callable[[], Any], seconds: float, what: str, *, pause: float = 0.02
) -> None:
    """Waits for a condition, which is examined after each `pause` in seconds. Fails when it has not
    come after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(pause)


def spawn(data: Path, *arguments: str) -> subprocess.Popen[str]:
    """A server process nobody has waited for yet."""
    command = ["serve", "--data", str(data), "--port", "0"]
    return start_program(
        *command,
        *arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def resident_megabytes(process: int) -> float:
    """How much memory a process holds."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("the process is gone")
