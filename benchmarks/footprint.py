"""The cost of an idle server, and the speed of the disk."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.servers import Recipe, Servers

SETTLE_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ColdStart:
    """Seconds from spawning a server on an empty directory to its first reply, and its memory."""

    fastest: float
    median: float
    idle_megabytes: float


def cold_start(servers: Servers, recipe: Recipe, times: int) -> ColdStart:
    """Start a server several times; weigh the last one once it has come to rest."""
    seconds = []
    idle = 0.0
    for number in range(times):
        server = servers.start(recipe)
        seconds.append(server.wait_for(recipe.alive_path))
        if number == times - 1:
            server.wait_for(recipe.ready_path)
            time.sleep(SETTLE_SECONDS)
            idle = resident_megabytes(server.process.pid)
        servers.stop(server)
    return ColdStart(fastest=min(seconds), median=median(seconds), idle_megabytes=idle)


def resident_megabytes(pid: int) -> float:
    """The resident memory of a process and all its descendants, in millions of bytes."""
    pending, total = [pid], 0
    while pending:
        process = Path("/proc") / str(pending.pop())
        for line in (process / "status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1]) * 1024
        for children in process.glob("task/*/children"):
            pending.extend(int(child) for child in children.read_text().split())
    return total / 1e6


def synced_appends_per_second(directory: Path, seconds: float = 0.5) -> float:
    """Returns the number of durable appends of a block in a second, by one writer on this disk."""
    block = bytes(4096)
    appended = 0
    with (directory / "appends").open("wb", buffering=0) as file:
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            file.write(block)
            os.fdatasync(file.fileno())
            appended += 1
        elapsed = time.perf_counter() - start
    (directory / "appends").unlink()
    return appended / elapsed


def file_system(directory: Path) -> str:
    """The kind of file system a directory is on; `unknown` where nothing says."""
    best, kind = "", "unknown"
    mounts = Path("/proc/mounts")
    if mounts.exists():
        for line in mounts.read_text().splitlines():
            point, name = line.split()[1:3]
            if directory.resolve().is_relative_to(point) and len(point) >= len(best):
                best, kind = point, name
    return kind
