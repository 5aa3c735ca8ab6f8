"""A restore of an older backup brings back nobody who was forgotten since the backup."""

from __future__ import annotations

import signal
from pathlib import Path
from urllib.parse import quote

import pytest

from memorywall.jobs import replay_ledger, restoration
from memorywall.records.event import Event, WorkEventType
from memorywall.storage.suppression_ledger import SuppressionLedger
from tests.cli.shell import environment, refuse, run, succeed
from tests.http.checks import MEMORY, everything
from tests.support.backend import is_on_file
from tests.support.damage import verified
from tests.support.extent import extent
from tests.support.forgotten import (
    EVERYTHING,
    World,
    check_restored,
    make_entry_of,
    world_of,
)
from tests.support.programs import run_python
from tests.support.service import RunningService, draft

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


def test_people_of_earlier_versions_and_of_the_log_alone_do_not_come_back(tmp_path: Path) -> None:
    made = World(tmp_path)

    async def fill(service: RunningService) -> None:
        chief = await service.agent("chief", permissions=EVERYTHING)
        facts = {"memory_type": "semantic", "subjects": ["cleo-1", "bob"]}
        made.ids["facts"] = await make_entry_of(chief, "facts", "cleo-1", **facts)
        change = {"subjects": ["bob"], "value": {"text": "of-bob"}}
        path = f"{MEMORY}/{made.ids['facts']}"
        assert (await chief.patch(path, json=change, headers={"If-Match": "1"})).is_success
        gone = await make_entry_of(chief, "dora-1", "dora-1", subjects=["dora-1"])
        assert (await chief.delete(f"{MEMORY}/{gone}")).is_success
        gone = await make_entry_of(chief, "k", "nobody", namespace='user/e"v-1/notes')
        assert (await chief.delete(f"{MEMORY}/{gone}")).is_success

    people = {"cleo-1": b"cleo-1", "dora-1": b"dora-1", 'e"v-1': b"v-1/notes"}
    made.work(made.data, fill)
    made.file = made.backup(made.data, "file")
    before = made.file.read_bytes()
    assert all(name in before for name in people.values())
    for person in people:
        made.forget(made.data, "--subject", person)
    goal = made.room / "goal"
    told = made.restore(goal)
    assert told["agree"] is True
    content = made.content(goal)
    assert [name for name in people.values() if name in content] == []
    assert b"of-bob" in content
    assert verified(goal / "memory.db").problems == []


def _store_late(
    world: World, goal: Path, person: str, *instants: str
) -> list[tuple[str, int, str | None]]:
    """What a restored store answers to what was said about a person at some instants."""

    async def send(service: RunningService) -> list[tuple[str, int, str | None]]:
        chief = await service.agent("chief", permissions=EVERYTHING)
        answers = []
        for said_at in instants:
            headers = [(b"X-User", person.encode()), (b"X-Said-At", said_at.encode())]
            reply = await chief.post(MEMORY, json=draft(said_at), headers=headers)
            answers.append((said_at, reply.status_code, reply.json().get("error")))
        return answers

    told: list[tuple[str, int, str | None]] = world.work(goal, send)
    return told


_BEFORE, _AT, _AFTER = (f"2026-02-02T02:{moment}Z" for moment in ("39:59", "40:00", "40:01"))
_ZOE = "zo\u00eb"
_REFUSED, _STORED = (409, "SUBJECT_FORGOTTEN"), (201, None)


def test_what_was_said_before_the_forgetting_is_refused_after_a_restore(world: World) -> None:
    goal = world.room / "goal"
    world.restore(goal)
    # They were forgotten at the instant of the clock of the tests, long before the restore.
    assert _store_late(world, goal, "ann", _BEFORE, _AT, _AFTER) == [
        (_BEFORE, *_REFUSED), (_AT, *_REFUSED), (_AFTER, *_STORED),
    ]  # fmt: skip
    assert _store_late(world, goal, "bob", _BEFORE) == [(_BEFORE, *_STORED)]


@pytest.mark.parametrize("named", [_ZOE, "zoe\u0308"])
def test_nobody_need_be_in_the_backup_to_stay_forgotten(tmp_path: Path, named: str) -> None:
    made = World(tmp_path)

    async def forget_zoe(service: RunningService) -> None:
        chief = await service.agent("chief", permissions=EVERYTHING)
        reply = await chief.post(f"/api/v1/subjects/{quote(_ZOE)}/forget")
        assert reply.json()["receipt"] is None

    async def fill(service: RunningService) -> None:
        await make_entry_of(await service.agent("chief", permissions=EVERYTHING), "k", "chief")

    made.work(made.data, fill)
    made.file = made.backup(made.data, "file")
    made.work(made.data, forget_zoe)
    goal = made.room / "goal"
    made.restore(goal)
    assert _store_late(made, goal, named, _AT, _AFTER) == [(_AT, *_REFUSED), (_AFTER, *_STORED)]
    assert _store_late(made, goal, "ann", _AT) == [(_AT, *_STORED)]
    assert verified(goal / "memory.db").problems == []
    assert b"zo" not in b"".join(
        one.data or b"" for one in made.work(goal, _forgettings)
    )  # fmt: skip


async def _forgettings(service: RunningService) -> list[Event]:
    events = (await everything(service)).events
    return [one for one in events if one.type == WorkEventType.SUBJECT_FORGOTTEN]


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
