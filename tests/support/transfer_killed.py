"""A copy in a process of its own that kills itself, as `python -m` with what it is to do."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from memorywall.jobs.copy import OverwritePolicy, copy
from memorywall.storage.postgres import transfer as postgres_transfer
from memorywall.storage.postgres import transfer_statements
from memorywall.storage.rows import decode_names
from memorywall.storage.sqlite import transfer as sqlite_transfer
from memorywall.storage.sqlite.backup import SqliteBackup
from memorywall.storage.transfer import CopyTarget
from tests.support.programs import run_python
from tests.support.transfer import File, Place, Server

BETWEEN, WITHIN = "between", "within"
"""The point of the kill: between two pages, or within a transaction that writes entries."""


def kill_copy(source: Place, target: Place | Path, where: str, count: int) -> None:
    """Runs a copy that dies at the `count`th time it comes to such a place. A path stands for a
    backup."""
    died = run_python(
        "-m", __name__, _name(source), _name(target), where, str(count),
        cwd=Path(__file__).parent.parent.parent, check=False, limit=120,
    )  # fmt: skip
    assert died.returncode == -signal.SIGKILL, (died.returncode, died.stdout, died.stderr)


def _name(place: Place | Path) -> str:
    if isinstance(place, Server):
        return place.url
    return f"directory:{place.directory}" if isinstance(place, File) else f"backup:{place}"


def _place(name: str) -> Place:
    return Server(name) if "://" in name else File(Path(name.removeprefix("directory:")))


async def _copy(source: str, target: str, where: str, count: int) -> None:
    left = count

    def come() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def decode(text: str) -> tuple[str, ...]:
        come()
        return decode_names(text)

    for module in (sqlite_transfer, transfer_statements):
        setattr(module, "PAGE", 5)  # noqa: B010 - it is a constant to everybody else
    if where == WITHIN:
        for module in (sqlite_transfer, postgres_transfer):
            setattr(module, "decode_names", decode)  # noqa: B010
    origin = await _place(source).origin()
    goal: CopyTarget
    if target.startswith("backup:"):
        goal = SqliteBackup.create(Path(target.removeprefix("backup:")))
    else:
        goal = await _place(target).target()
    await copy(
        origin, goal, OverwritePolicy.FAST_FORWARD, lambda _: come() if where == BETWEEN else None
    )


if __name__ == "__main__":
    asyncio.run(_copy(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
