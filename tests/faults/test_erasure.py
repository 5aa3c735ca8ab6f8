"""Deletion and eviction are hard: within a minute the bytes are in no file."""

from __future__ import annotations

import random
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from memorywall.tiers.table import VERSIONED_TIERS
from tests.faults.erasure import (
    files_of,
    marked_value,
    marks_in_files,
    new_mark,
    read_file,
    remaining,
    tables_with,
)
from tests.faults.load import Load
from tests.faults.support import acting_key, assert_verified, wait_until
from tests.support.extent import extent
from tests.support.process import ServerProcess, run_cli

_ERASED_WITHIN = 60.0
_ALL_TIERS = ("working", "session", "episodic", "semantic", "procedural")
_TIERS = extent(("episodic", "semantic"), long=_ALL_TIERS)
_SIZES = extent((0, 3_600), long=(0, 1_200, 3_600, 30_000))
_MEMORY = "/api/v1/memory"


class Marked:
    """Entries whose values carry marks: those that must stay and those that must go."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.live: dict[str, str] = {}
        self.dead: set[str] = set()

    def create(self, size: int = 0, tier: str = "working", **fields: Any) -> str:
        """The path of a new entry."""
        mark = new_mark()
        headers = {"Idempotency-Key": secrets.token_hex(8)} if size % 3 == 0 else {}
        body = {
            "namespace": "erasure",
            "key": f"key-{secrets.token_hex(8)}",
            "value": marked_value(mark, size),
            "memory_type": tier,
            **fields,
        }
        made = self.client.post(_MEMORY, json=body, headers=headers)
        assert made.status_code == 201, made.text
        path = made.headers["location"]
        self.live[path] = mark
        return path

    def change(self, path: str, size: int, **fields: Any) -> None:
        version = self.client.get(path).json()["version"]
        mark = new_mark()
        body = {"value": marked_value(mark, size), **fields}
        changed = self.client.patch(path, json=body, headers={"If-Match": str(version)})
        assert changed.status_code == 200, changed.text
        self.dead.add(self.live[path])
        self.live[path] = mark

    def delete(self, path: str) -> None:
        assert self.client.delete(path).status_code == 204
        self.gone(path)

    def gone(self, path: str) -> None:
        assert self.client.get(path).status_code == 404
        self.dead.add(self.live.pop(path))


@contextmanager
def _under_load(server: ServerProcess) -> Iterator[None]:
    """The log has to be cut between writes that never pause."""
    load = Load(7, acting_key(server), workers=3)
    load.start(server.url)
    yield
    load.stop()


def _assert_erased(data: Path, marked: Marked) -> None:
    assert len(marked.dead) > 5
    wait_until(
        lambda: not remaining(data, marked.dead),
        _ERASED_WITHIN,
        "what was deleted is in no file",
        pause=0.5,
    )
    assert marks_in_files(data).keys() == set(marked.live.values())


def test_nothing_that_was_deleted_is_left_in_a_file(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data) as server, server.client() as client:
        marked = Marked(client)
        with _under_load(server):
            for tier in _TIERS:
                _delete_and_change(marked, tier)
            _delete_by_filter(marked)
            _evict(marked, data)
            _seal_afterwards(marked)
            # A mark of a tag stays in the event log, but nowhere else.
            tag = new_mark().replace("mark", "label")
            path = marked.create(tags=[tag])
            assert tables_with(data / "memory.db", tag) >= {"entries", "tags", "event_contents"}
            marked.delete(path)
            _assert_erased(data, marked)
            assert tables_with(data / "memory.db", tag) == {"event_contents"}
        assert_verified(data)
        server.kill()
    with ServerProcess(data) as server:
        assert marks_in_files(data).keys() == set(marked.live.values())
        assert server.terminate() == 0
    assert marks_in_files(data).keys() == set(marked.live.values())


def _delete_and_change(marked: Marked, tier: str) -> None:
    for size in _SIZES:
        marked.delete(marked.create(size, tier))
        for new_size in _SIZES:
            path = marked.create(size, tier)
            marked.change(path, new_size)
            if tier in VERSIONED_TIERS:
                # The earlier version stays readable until the entry is deleted.
                marked.delete(path)


def _delete_by_filter(marked: Marked) -> None:
    paths = [marked.create(size, tags=["by-filter"]) for size in (0, 900, 10_000)]
    deleted = marked.client.request(
        "DELETE", f"{_MEMORY}/batch", params={"agent_id": "dev", "tags": "by-filter"}
    )
    assert deleted.json() == {"deleted": 3}
    for path in paths:
        marked.gone(path)


def _evict(marked: Marked, data: Path) -> None:
    """A smaller capacity takes effect with the next entry."""
    usage = marked.client.get("/api/v1/agents/dev/memory/summary").json()["episodic"]
    pinned = marked.create(800, "episodic", pinned=True)
    run_cli("capacity", "--data", str(data), "--agent", "dev", "4")
    newest = marked.create(800, "episodic")
    evicted = [path for path in marked.live if marked.client.get(path).status_code == 404]
    assert len(evicted) == usage["entry_count"] + 2 - 4
    assert not {pinned, newest} & set(evicted)
    for path in evicted:
        marked.gone(path)


def _seal_afterwards(marked: Marked) -> None:
    """An entry that becomes confidential leaves nothing readable behind."""
    path = marked.create(3_000)
    marked.change(path, 3_000, sensitivity="confidential")
    # Now the mark stands in no file, though the entry is there.
    marked.dead.add(marked.live.pop(path))


def test_no_page_keeps_residual_data_of_moved_cells(tmp_path: Path) -> None:
    """Entries come, change their size and go in any order, so that pages are split, merged and
    rebuilt over and over; what was moved must not leave a copy behind."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    data = tmp_path / "data"
    with ServerProcess(data) as server, server.client() as client:
        marked = Marked(client)
        for _ in range(extent(4, long=12)):
            _create_many(marked, chance)
            _change_many(marked, chance)
            for path in chance.sample(list(marked.live), len(marked.live) // 3):
                marked.delete(path)
        _assert_erased(data, marked)
        assert len(marked.dead) > extent(300, long=1_000), seed
        assert server.terminate() == 0
    left = marks_in_files(data).keys()
    assert left == set(marked.live.values()), f"{len(left)} marks are left: seed {seed}"


def _size(chance: random.Random) -> int:
    return chance.choice((0, 0, 400, 800, 1_200, 2_000, 4_400, 9_000))


def _create_many(marked: Marked, chance: random.Random) -> None:
    def element() -> tuple[str, dict[str, Any]]:
        mark = new_mark()
        return mark, {
            "namespace": "churn",
            "key": secrets.token_hex(chance.randint(4, 60)),
            "value": marked_value(mark, _size(chance)),
            "memory_type": chance.choice(("working", "session")),
            "tags": [f"tag-{chance.randrange(30)}"],
        }

    _write_batch(marked, [element() for _ in range(100)], lambda mark, path: None)


def _change_many(marked: Marked, chance: random.Random) -> None:
    elements = []
    for path in chance.sample(list(marked.live), len(marked.live) // 3):
        mark = new_mark()
        entry = marked.client.get(path).json()
        value = marked_value(mark, _size(chance))
        elements.append((mark, {"id": entry["id"], "version": entry["version"], "value": value}))
    _write_batch(marked, elements, lambda mark, path: marked.dead.add(marked.live[path]))


def _write_batch(
    marked: Marked,
    elements: list[tuple[str, dict[str, Any]]],
    written: Callable[[str, str], object],
) -> None:
    body = {"entries": [element for _, element in elements]}
    reply = marked.client.post(f"{_MEMORY}/batch", json=body)
    assert reply.status_code == 200, reply.text
    for (mark, _), entry in zip(elements, reply.json()["entries"], strict=True):
        path = f"{_MEMORY}/{entry['id']}"
        written(mark, path)
        marked.live[path] = mark


def test_no_file_holds_a_confidential_value_or_a_secret(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data) as server, server.client() as client:
        marked = Marked(client)
        for tier in _TIERS:
            for sensitivity in ("confidential", "restricted"):
                for size in _SIZES:
                    path = marked.create(size, tier, sensitivity=sensitivity)
                    marked.change(path, size)
        assert not marks_in_files(data)
        visible = marked.create()
        assert marks_in_files(data).keys() == {marked.live[visible]}, "the search finds nothing"
        keys = [server.create_key(f"agent-{number}") for number in range(3)]
        secret_parts = [key.partition(".")[2].encode() for key in keys]
        _assert_private(data, secret_parts, server.dev_key)
        assert server.terminate() == 0
    _assert_private(data, secret_parts, (data / "dev-key").read_text().strip())
    assert marks_in_files(data).keys() == {marked.live[visible]}


def _assert_private(data: Path, secret_parts: list[bytes], dev_key: str) -> None:
    dev_secret = dev_key.partition(".")[2].encode()
    assert dev_secret
    assert all(secret_parts)
    for path in files_of(data):
        content = read_file(path)
        assert not [secret for secret in secret_parts if secret in content], path.name
        assert dev_secret not in content or path.name == "dev-key", path.name
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
