"""The suppression ledger: which erasures a restore repeats, and which ledgers it refuses."""

from __future__ import annotations

import hashlib
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import memorywall
from memorywall.jobs import restoration
from memorywall.jobs.log_segments import RestoredLog, begin_segment
from memorywall.records.event import LogEvent
from memorywall.records.event_chain import NO_EVENTS
from memorywall.records.feature_errors import LedgerDamagedError
from memorywall.records.suppression import LedgerKey, SuppressionKind
from memorywall.service.encryption.ledger_key import open_ledger
from memorywall.service.encryption.master_keys import MasterKeys
from memorywall.service.erasure.entry_erasure import forget
from memorywall.service.requests.event_log import append_log_event
from memorywall.storage import suppression_ledger
from memorywall.storage.port import Transaction
from memorywall.storage.suppression_ledger import SuppressionLedger, ensure_ledger
from tests.cli.shell import misuse, refuse, succeed
from tests.http.checks import MEMORY
from tests.support.damage import verified
from tests.support.forgotten import (
    EVERYTHING,
    SECRETS,
    World,
    look_for_the_forgotten,
    make_entry_of,
    world_of,
)
from tests.support.service import RunningService, open_service


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A store whose backup has a person and an agent that have been forgotten since; not to be
    changed."""
    return world_of(tmp_path_factory.mktemp("original"))


@pytest.fixture
def world(original: World, tmp_path: Path) -> World:
    """Such a store for one test."""
    copied = World(shutil.copytree(original.room, tmp_path / "world"))
    copied.ids = original.ids
    return copied


def test_test_fails_without_the_replay(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The defect that the other tests have to find."""

    async def skip(*arguments: object) -> None:
        pass

    monkeypatch.setattr(restoration, "replay", skip)
    goal = world.room / "goal"
    world.restore(goal)
    with pytest.raises(AssertionError):
        world.work(goal, lambda service: look_for_the_forgotten(service, world.ids))
    content = world.content(goal)
    assert all(secret in content for secret in SECRETS)


def test_without_ledger_everything_comes_back(world: World) -> None:
    goal = world.room / "goal"
    told = world.restore(goal, None, "--without-ledger")
    assert set(told["forgotten"].values()) == {0}
    (segment,) = verified(goal / "memory.db").segments
    assert segment.restored is not None
    assert segment.restored.ledger is None
    assert all(secret in world.content(goal) for secret in SECRETS)


def test_what_is_written_after_an_erasure_stays(world: World) -> None:
    """Only erasures that the backup does not contain are repeated."""

    async def write(service: RunningService) -> None:
        chief = await service.agent("chief", permissions=EVERYTHING)
        await make_entry_of(chief, "anew", "of-anew", subjects=["ann"])
        await make_entry_of(await service.agent("billing"), "anew", "of-anew")

    world.work(world.data, write)
    later = world.backup(world.data, "later")
    assert set(world.restore(world.room / "one", later)["forgotten"].values()) == {0}
    # A restored store is another timeline, in which the erasures are applied.
    restored = world.room / "restored"
    world.restore(restored)
    world.work(restored, write)
    again = world.backup(restored, "again")
    assert set(world.restore(world.room / "two", again)["forgotten"].values()) == {0}
    assert world.content(world.room / "two").count(b"of-anew") >= 2
    # In a third timeline the person is forgotten once more, which the second does not contain.
    world.forget(world.room / "one", "--subject", "ann")
    # The backup has the name, and in the events the digest that replaces it.
    assert world.restore(world.room / "three", again)["forgotten"]["subjects"] == 2
    assert world.restore(world.room / "four")["forgotten"]["agents"] == 1


def _refused(world: World, *options: str) -> str:
    goal = world.room / "refused"
    command = world.command(goal, None, *options)
    (goal / "memory.db.ledger").mkdir(exist_ok=True)
    said = refuse(*command)
    assert sorted(os.listdir(goal)) == ["memory.db.key", "memory.db.ledger"]
    assert os.listdir(goal / "memory.db.ledger") == []
    return said


@pytest.mark.parametrize("file", ["suppressed", "head", "key"])
def test_changed_or_cut_ledger_is_refused(world: World, file: str) -> None:
    path = world.ledger / file
    intact = path.read_bytes()
    for place in range(0, len(intact), 40):
        path.write_bytes(intact[:place] + bytes([intact[place] ^ 1]) + intact[place + 1 :])
        assert "the suppression ledger in" in _refused(world), place
    lines = intact.splitlines(keepends=True)
    for cut in (b"".join(lines[:-1]), b"".join(lines[1:]), intact[:-9], b""):
        path.write_bytes(cut)
        said = _refused(world)
        assert "is damaged" in said
        assert "put back a copy" in said
    path.unlink()
    assert "is damaged" in _refused(world)
    path.write_bytes(intact)
    world.restore(world.room / "goal")


def test_ledger_of_another_store_is_refused(world: World, tmp_path: Path) -> None:
    intact = shutil.copytree(world.ledger, tmp_path / "intact")
    shutil.rmtree(world.ledger)
    assert "there is no suppression ledger in" in _refused(world)
    other = World(tmp_path / "other")
    other.work(other.data, lambda service: service.key("a"))
    other.ledger = world.ledger
    other.backup(other.data, "any")
    assert "is not the one of the backed-up store" in _refused(world)
    shutil.rmtree(world.ledger)
    other.forget(other.data, "--agent", "a")
    assert "another key-encryption key" in _refused(world)
    shutil.rmtree(world.ledger)
    shutil.copytree(intact, world.ledger)
    assert "give either" in misuse(*world.command(tmp_path / "g"), "--without-ledger")


def test_restore_needs_the_key(world: World) -> None:
    goal = world.room / "keyless"
    command = ("restore", str(world.file), "--data", str(goal), "--ledger", str(world.ledger))
    assert "the key-encryption key" in refuse(*command)
    assert not goal.exists()
    other = world.room / "other"
    succeed("keys", "create", "--data", str(other), "--agent", "a")
    goal.mkdir()
    shutil.copy(other / "memory.db.key", goal)
    assert "key-encryption key is not the one" in refuse(*command)
    assert os.listdir(goal) == ["memory.db.key"]


async def _begin_segment(service: RunningService, seq: int, digest: str) -> None:
    data = RestoredLog(seq=seq, hash=digest, ledger=None)

    async def script(transaction: Transaction) -> None:
        now = service.services.now()
        await append_log_event(transaction, LogEvent.RESTORED, now, data)

    await service.services.store.write("default", script)


@pytest.mark.anyio
async def test_verify_finds_another_end_of_the_backup(tmp_path: Path) -> None:
    """The first event of a segment must name the event before it."""
    async with open_service(tmp_path / "data") as service:
        await make_entry_of(await service.agent("a"), "one", "a")
        assert await begin_segment(service.services, "default", None) is not None
        assert verified(tmp_path / "data" / "memory.db").problems == []
        await _begin_segment(service, 2, "00" * 32)
    report = verified(tmp_path / "data" / "memory.db")
    assert [one.first for one in report.segments] == [2, 3]
    expected = "default: event 3 names another end of the backup than the event before it"
    assert report.problems == [expected]


@pytest.mark.anyio
async def test_ledger_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "occupied").write_text("")
    async with open_service(tmp_path / "data", ledger=tmp_path / "occupied") as service:
        chief = await service.agent("chief", permissions=EVERYTHING)
        await make_entry_of(chief, "ann", "of-ann", subjects=["ann"])
        response = await chief.post("/api/v1/subjects/ann/forget")
        assert response.status_code == 503
        assert "then forget again" in response.json()["message"]
        assert (await chief.get(MEMORY, params={"subject": "ann"})).json()["total"] == 0
        (tmp_path / "occupied").unlink()
        gone = await forget(service.services, "default", "nobody")
        assert gone.in_ledger


# The file


def _ledger(directory: Path) -> SuppressionLedger:
    return open_ledger(directory, MasterKeys([bytes(32)]))


def _append(ledger: SuppressionLedger, name: str) -> None:
    line = ledger.key.make_line("now", SuppressionKind.AGENT, "acme", [name], NO_EVENTS)
    ledger.append([line])


def test_lines_have_no_names_and_depend_on_the_key(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    _append(ledger, "billing")
    text = (tmp_path / "suppressed").read_bytes()
    assert b"billing" not in text
    assert b"acme" not in text
    assert hashlib.sha256(b"billing").hexdigest()[:16].encode() not in text
    (line,) = ledger.read().lines
    key = ledger.key
    assert line.digests == (key.digest("acme", "agent", "billing"),)
    others = {key.digest("acme", "subject", "billing"), key.digest("other", "agent", "billing")}
    others.add(LedgerKey.derive(b"\1" * 32).digest("acme", "agent", "billing"))
    assert len(others - set(line.digests)) == 3


def test_beginning_of_a_line_is_ignored_and_removed(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    _append(ledger, "one")
    file, head = tmp_path / "suppressed", tmp_path / "head"
    one, head_of_one = file.read_bytes(), head.read_bytes()
    _append(ledger, "two")
    both = file.read_bytes()
    for end in (*range(len(one), len(both), 37), len(both) - 1):
        # A kill while the second line was written.
        file.write_bytes(both[:end])
        head.write_bytes(head_of_one)
        assert len(ledger.read().lines) == 1
        _append(ledger, "three")
        assert [line.digests for line in ledger.read().lines][1] == (
            ledger.key.digest("acme", "agent", "three"),
        )
    # A kill before the head named the second line.
    file.write_bytes(both)
    head.write_bytes(head_of_one)
    assert len(ledger.read().lines) == 2
    _append(ledger, "three")
    assert len(ledger.read().lines) == 3


def test_interrupted_creation_is_repeated(tmp_path: Path) -> None:
    position = ensure_ledger(tmp_path)
    assert ensure_ledger(tmp_path) == position
    (tmp_path / "head").unlink()
    assert ensure_ledger(tmp_path) == position
    assert _ledger(tmp_path).read().is_at(position)
    assert (tmp_path / "suppressed").stat().st_mode & 0o777 == 0o600


def test_processes_append_at_once(tmp_path: Path) -> None:
    def work(number: int) -> None:
        for count in range(5):
            _append(_ledger(tmp_path), f"{number} {count}")

    with ThreadPoolExecutor(4) as executor:
        list(executor.map(work, range(4)))
    lines = _ledger(tmp_path).read().lines
    assert len({line.digests for line in lines}) == 20


def test_a_ledger_that_another_process_creates_meanwhile_has_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, looks = suppression_ledger._has_lines, []

    def looked(directory: Path) -> bool:
        # Between this process's look for the key and its look for lines.
        if not looks:
            looks.append(directory)
            _append(_ledger(tmp_path), "theirs")
        return real(directory)

    monkeypatch.setattr(suppression_ledger, "_has_lines", looked)
    _append(_ledger(tmp_path), "ours")
    assert len(_ledger(tmp_path).read().lines) == 2


def test_one_of_two_ledgers_contains_the_other(tmp_path: Path) -> None:
    one, other = _ledger(tmp_path / "one"), _ledger(tmp_path / "other")
    _append(one, "a")
    other.adopt(one)
    _append(other, "b")
    other.adopt(one)
    assert len(other.read().lines) == 2
    one.adopt(other)
    assert one.read() == other.read()
    _append(one, "c")
    _append(other, "d")
    with pytest.raises(LedgerDamagedError, match="differ"):
        one.adopt(other)


# The SDK


@pytest.mark.anyio
async def test_sdk_tells_whether_an_erasure_is_recorded(tmp_path: Path) -> None:
    async with memorywall.open_async(tmp_path / "one.db") as client:
        assert (await client.forget(subject="ann")).in_ledger
    with memorywall.open(tmp_path / "one.db") as client:
        assert client.forget(subject="ann").in_ledger
    assert (tmp_path / "one.db.ledger" / "suppressed").read_bytes().count(b"\n") == 3
