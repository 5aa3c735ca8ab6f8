"""The demo ends well however far the first agent comes before it is killed."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memorywall import Client
from memorywall.cli.main import commands
from tests.support.backend import place_options
from tests.support.process import ServerProcess
from tests.test_sdk_support import server

__all__ = ["server"]

EXAMPLES = Path(__file__).parent.parent / "examples"
FILES = 3


class FakeProcess:
    """A worker in this thread: `work` runs at the first look at the process."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work: Callable[[], object] | None = work

    def __enter__(self) -> FakeProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.poll()

    def poll(self) -> int:
        work, self._work = self._work, None
        if work is not None:
            work()
        return 0

    def wait(self, timeout: float) -> None:
        self.poll()

    def kill(self) -> None:
        """The work has ended already."""


def _read_some(client: Client, reading: Any, folder: Path, count: int) -> None:
    """Claims the task as the reading agent does, stores a number of checkpoints, and dies."""
    claimed = client.tasks.next(["reading"], lease_seconds=1)
    assert claimed is not None
    task = client.tasks.update(claimed.task, status="running", fencing_token=_token(claimed))
    scoped = client.scoped(task_id=task.id, fencing_token=_token(claimed))
    progress: dict[str, Any] = {
        "total": FILES, "completed": 0, "last_file": None, "lines": 0, "words": 0,
        "slowest": [], "encodings": {}, "digest": "",
    }  # fmt: skip
    for name in reading.files_of(folder, "*")[:count]:
        progress = reading.read_file(progress, folder, name)
        scoped.memory.set(*reading.PROGRESS, progress, memory_type="working")


def _token(claimed: Any) -> int:
    token: int = claimed.lease.fencing_token
    return token


@pytest.fixture(scope="module")
def keys(server: ServerProcess) -> dict[str, str]:
    """Keys of the agents of the demo, by agent."""
    made = {}
    for agent in ("librarian", "reader-1", "reader-2"):
        words = ["keys", "create", *place_options(server.data), "--agent", agent, "--json"]
        printed = CliRunner().invoke(commands, words, catch_exceptions=False)
        made[agent] = json.loads(printed.stdout)["key"]
    return made


@pytest.mark.parametrize("before_death", [1, FILES, None])
def test_demo_with_few_files_raises_no_false_alarm(
    before_death: int | None,
    server: ServerProcess,
    keys: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """before_death: how many files the first agent reads; None if it completes the task"""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    demo, reading = map(importlib.import_module, ("demo", "reading_agent"))
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number}.txt").write_text("a few words")

    def worker(url: str, agent: str) -> FakeProcess:
        def work() -> None:
            if agent == demo.FIRST and before_death is not None:
                with Client(url, keys[agent]) as client:
                    _read_some(client, reading, folder, before_death)
            else:
                reading.read_library.run(url, keys[agent], until_idle=True)

        return FakeProcess(work)

    @contextmanager
    def running_server() -> Iterator[str]:
        yield server.url

    for name, fake in (
        ("make_key", keys.__getitem__),
        ("worker", worker),
        ("running_server", running_server),
    ):
        monkeypatch.setattr(demo, name, fake)
    monkeypatch.setattr(demo, "LEAST_SECONDS", 0)
    # The namespace of another case belongs to another agent.
    monkeypatch.setattr(reading, "FACTS", f"facts-{before_death}")
    monkeypatch.setattr(sys, "argv", ["demo.py", str(folder)])
    monkeypatch.chdir(tmp_path)
    ended = demo.main()
    printed = capsys.readouterr().out
    assert ended == 0, printed
    read = FILES if before_death is None else before_death
    assert "memorywall intents show int_" in printed
    assert f"--data {demo.DATA} --agent {demo.COORDINATOR}" in printed
    assert f"{FILES} files read, each exactly once: {read} by {demo.FIRST}" in printed
