"""The content of a file never stands in the clear, and of a deleted one nothing is left at all."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path

import apsw
import httpx

from tests.faults.erasure import files_of, new_mark, read_file
from tests.faults.support import assert_verified, wait_until
from tests.support.extent import extent
from tests.support.process import ServerProcess

_ERASED_WITHIN = 60.0
_PROBE = 48
"""Bytes that are looked for of each page of what is stored; random ones stand nowhere else."""
_STEP = extent(8_192, long=1_024)
_SIZES = extent((1, 5_000, 262_145), long=(0, 1, 700, 5_000, 262_144, 262_145, 1_000_000))


class Attached:
    """The files of one intent, with what was uploaded and what of it lies in the database."""

    def __init__(self, client: httpx.Client, data: Path) -> None:
        self.client = client
        self.database = data / "memory.db"
        made = client.post("/api/v1/intents", json={"title": "Erasure"})
        assert made.status_code == 201, made.text
        self.path = f"/api/v1/intents/{made.json()['id']}/attachments"
        self.clear: dict[str, bytes] = {}
        self.sealed: dict[str, list[bytes]] = {}

    def upload(self, size: int) -> str:
        """The id of a new file whose content is marked all along."""
        mark = f"{new_mark()}-".encode()
        content = (mark * (size // len(mark) + 1))[:size]
        made = self.client.post(self.path, json={"filename": "marked.bin", "size": size})
        assert made.status_code == 201, made.text
        one: str = made.json()["id"]
        put = self.client.put(f"{self.path}/{one}/content", content=content)
        assert put.status_code == 200, put.text
        self.clear[one] = content
        self.sealed[one] = self._probes(one)
        return one

    def delete(self, one: str) -> None:
        assert self.client.delete(f"{self.path}/{one}").status_code == 204
        assert self.client.get(f"{self.path}/{one}/content").status_code == 404

    def assert_whole(self, one: str) -> None:
        got = self.client.get(f"{self.path}/{one}/content")
        assert got.content == self.clear[one]
        assert got.headers["etag"] == f'"sha256-{hashlib.sha256(self.clear[one]).hexdigest()}"'

    def _probes(self, one: str) -> list[bytes]:
        """Parts of the sealed content, no further from each other than a page is long."""
        connection = apsw.Connection(str(self.database), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(5_000)
        statement = "SELECT content FROM attachment_pieces WHERE attachment_id = ?"
        pieces = [bytes(row[0]) for row in connection.execute(statement, (one,))]
        connection.close()
        assert sum(len(piece) - 28 for piece in pieces) == len(self.clear[one])
        probes = [
            piece[start : start + _PROBE]
            for piece in pieces
            for start in range(0, len(piece), _STEP)
        ]
        # The end of a piece may be too short to be told from chance.
        return [probe for probe in probes if len(probe) >= 16]


def _found(data: Path, probes: list[bytes]) -> int:
    """How many of the probes stand in any file."""
    contents = [read_file(path) for path in files_of(data)]
    return sum(any(probe in content for content in contents) for probe in probes)


def _marked_parts(data: Path) -> list[str]:
    """The files in which any content stands in the clear."""
    return [path.name for path in files_of(data) if b"mark-" in read_file(path)]


def test_nothing_is_left_of_a_deleted_file(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data) as server, server.client() as client:
        attached = Attached(client, data)
        dead: list[bytes] = []
        live: list[str] = []
        for size in _SIZES:
            deleted, kept = attached.upload(size), attached.upload(size)
            live.append(kept)
            # It is there before it goes, or its absence would prove nothing. A probe may be cut by
            # the edge of a page; most are not.
            probes = attached.sealed[deleted]
            assert probes
            assert _found(data, probes) >= len(probes) * 0.8
            attached.delete(deleted)
            dead.extend(probes)
        wait_until(
            lambda: _found(data, dead) == 0,
            _ERASED_WITHIN,
            "what was deleted is in no file",
            pause=0.5,
        )
        for one in live:
            attached.assert_whole(one)
            assert _found(data, attached.sealed[one]) > 0
        assert _marked_parts(data) == []
        assert_verified(data)
        server.kill()
    with ServerProcess(data) as server, server.client() as client:
        attached.client = client
        for one in live:
            attached.assert_whole(one)
        assert server.terminate() == 0
    assert _found(data, dead) == 0
    assert _marked_parts(data) == []


def test_content_that_was_refused_or_lost_its_server_leaves_nothing_in_the_clear(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    content = (new_mark().encode() + b"-") * 20_000
    with ServerProcess(data) as server, server.client() as client:
        attached = Attached(client, data)
        body = {"filename": "short.bin", "size": 5}
        made = client.post(attached.path, json=body).json()
        path = f"{attached.path}/{made['id']}/content"
        assert client.put(path, content=content).status_code == 422
        stored = attached.upload(300_000)
        assert client.put(f"{attached.path}/{stored}/content", content=content).status_code == 409
        assert _marked_parts(data) == []
        # A name is kept in the clear, so the search does find what is there.
        name = f"mark-{secrets.token_hex(8)}.bin"
        assert client.post(attached.path, json={"filename": name}).status_code == 201
        assert _marked_parts(data) != []
        server.kill()
    assert [name] == sorted(set(_names(data)))


def _names(data: Path) -> list[str]:
    """Every marked name that stands in a file, as long as it goes on."""
    names = []
    for path in files_of(data):
        for part in read_file(path).split(b"mark-")[1:]:
            names.append("mark-" + part[:20].decode("ascii", "replace"))
    return names
