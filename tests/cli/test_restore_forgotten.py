"""A restore of an older backup brings back nobody who was forgotten since the backup."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from memorywall.cli import restoration
from memorywall.jobs import replay_ledger
from memorywall.storage.suppression_ledger import SuppressionLedger
from tests.cli.shell import environment, refuse, run, succeed
from tests.support.backend import is_on_file
from tests.support.damage import verified
from tests.support.extent import extent
from tests.support.forgotten import World, check_restored, world_of
from tests.support.programs import run_python

_LIMIT = 60
_POINTS = ("begin_segment", "erase_stored_subject", "erase_entries", "forget", "append", "end")


class Killed(BaseException):
    """Ends a command at once."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A store whose backup has a person and an agent that have been forgotten since."""
    return world_of(tmp_path)


def test_nobody_comes_back(world: World) -> None:
    goal = world.room / "goal"
    told = world.restore(goal)
    assert told["agree"] is True
    assert told["forgotten"] == {"agents": 1, "subjects": 2, "entries": 5}
    report = verified(goal / "memory.db")
    assert report.problems == []
    (segment,) = report.segments
    assert segment.restored is not None
    assert segment.restored.seq == segment.first - 1
    assert segment.restored.ledger is not None
    assert segment.restored.ledger.lines >= 2
    assert f"at event {segment.first:,}, after event" in succeed("verify", "--data", str(goal))
    check_restored(world, goal)


def _kill_at(point: str, patch: pytest.MonkeyPatch) -> None:
    def die(*arguments: object, **named: object) -> None:
        raise Killed

    async def die_later(*arguments: object, **named: object) -> None:
        raise Killed

    if point == "append":
        patch.setattr(SuppressionLedger, "append", die)
    elif point == "end":
        patch.setattr(restoration, "wait_until_erased", die_later)
    else:
        patch.setattr(replay_ledger, point, die_later)


def _kill(world: World, goal: Path) -> None:
    """Runs a restore that ends with SIGKILL, which leaves what nobody cleans up."""
    code = (
        "import os, signal, sys;"
        "from memorywall.jobs import replay_ledger as r; from memorywall.cli import main;"
        "r.erase_entries = lambda *_: os.kill(os.getpid(), signal.SIGKILL); main()"
    )
    command = world.command(goal)
    died = run_python("-c", code, *command, check=False, limit=_LIMIT, env=environment(*command))
    assert died.returncode == -signal.SIGKILL, (died.returncode, died.stderr)


def test_interrupted_restore_is_completed_by_another_run(world: World) -> None:
    goal = world.room / "goal"
    for point in extent(_POINTS[::2], long=_POINTS):
        with pytest.MonkeyPatch.context() as patch:
            _kill_at(point, patch)
            with pytest.raises(Killed):
                run(*world.command(goal))
        if is_on_file():
            assert not (goal / "memory.db").exists()
    _kill(world, goal)
    opening = ("keys", "create", "--data", str(goal), "--agent", "somebody")
    assert "run `memorywall restore` again" in refuse(*opening)
    if not is_on_file():
        file = str(world.room / "unfinished")
        assert "a restore into this" in refuse("backup", "--data", str(goal), file)
    world.restore(goal)
    succeed(*opening)
    check_restored(world, goal)
