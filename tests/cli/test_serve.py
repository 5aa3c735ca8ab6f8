"""serve: the development key, where it listens, and what it refuses to start with."""

from __future__ import annotations

import base64
import os
import re
import secrets
import socket
import sqlite3
import stat
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from memorywall.cli.serve_command import command as serve_command
from memorywall.settings import DEFAULT_DATA, Settings
from tests.cli.shell import Shell, new_directory, refuse, run, succeed
from tests.support.backend import is_on_file, own_database
from tests.support.process import ServerProcess
from tests.support.stored import places_holding


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_development_key_is_private_kept_and_revoked(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data) as server:
        first = server.dev_key
        assert _mode(data / "dev-key") == 0o600
        with server.client() as client:
            me = client.get("/api/v1/agents/me").json()
        assert (me["agent_id"], me["kind"], me["tenant"]) == ("dev", "service", "default")
        assert set(me["permissions"]) == {
            "memory.read", "memory.write", "memory.admin", "tenant.admin", "act_as",
        }  # fmt: skip
        assert server.terminate() == 0
    with ServerProcess(data) as server:
        assert server.dev_key == first
        with server.client() as client:
            assert client.get("/api/v1/agents/me").status_code == 200
        assert first not in server.said
        assert server.terminate() == 0
    with ServerProcess(data, dev=False) as server:
        assert not (data / "dev-key").exists()
        with server.client(first) as client:
            assert client.get("/api/v1/agents/me").status_code == 401
        assert server.terminate() == 0
    (data / "dev-key").write_text(first + "\n")
    with ServerProcess(data) as server:
        assert server.dev_key != first
        with server.client() as client:
            assert client.get("/api/v1/agents/me").status_code == 200


def test_without_dev_no_key_is_made(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data, dev=False):
        assert not (data / "dev-key").exists()
        assert succeed("keys", "list", "--data", str(data)).splitlines()[2:] == []


def test_every_file_of_a_data_directory_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    data = tmp_path / "data"
    # The widest umask there is, so that nothing is private by luck.
    before = os.umask(0)
    try:
        with ServerProcess(data):
            modes = {file.name: _mode(file) for file in (data, *data.iterdir())}
    finally:
        os.umask(before)
    database = {"memory.db", "memory.db.lock"} if is_on_file() else set()
    assert {"memory.db.key", "dev-key"} | database <= modes.keys()
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}


def test_it_says_where_it_serves_and_that_it_stopped(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert httpx.get(server.url + "/docs").status_code == 200
        server.process.terminate()
        printed, _ = server.process.communicate(timeout=30)
        errors = server.read_errors()
    assert printed == "memorywall: stopped\n"
    assert errors == ""
    assert server.process.returncode == 0


def test_a_server_watches_its_event_loop(tmp_path: Path) -> None:
    """Each request holds the loop for a while, which the metrics tell."""
    found = re.compile(r"^memorywall_loop_longest_callback_seconds (\S+)$", re.MULTILINE)
    deadline = time.monotonic() + 60.0
    program = ("tests.support.holding_server",)
    with (
        ServerProcess(tmp_path / "data", program=program) as server,
        server.client() as client,
    ):
        while not float(found.findall(client.get("/metrics").text)[0]):
            assert time.monotonic() < deadline, "no callback was measured"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.invalid"])
def test_a_public_address_must_be_meant(host: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    said = refuse("serve", "--data", str(data), "--host", host, "--port", "0")
    assert "--allow-remote" in said
    assert host in said
    assert not data.exists()


@pytest.mark.parametrize("by_option", [True, False], ids=["option", "environment"])
def test_an_embedder_is_chosen(
    by_option: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not by_option:
        monkeypatch.setenv("MEMORYWALL_EMBEDDER", "static")
    options = ("--embedder", "static") if by_option else ()
    with ServerProcess(tmp_path / "data", *options, "--recall-memory", "64", dev=False) as server:
        embedding = httpx.get(server.url + "/ready").json()["embedding"]
    assert embedding["model"].startswith("static")
    assert embedding["backlog"] == 0


def test_the_fields_of_author_and_date_are_chosen(tmp_path: Path) -> None:
    fields = ("--author-field", "speaker", "--date-field", "said_on")
    with ServerProcess(tmp_path / "data", *fields) as server, server.client() as client:
        for name in ("Ana", "Ben"):
            entry = {
                "namespace": name,
                "key": "k",
                "memory_type": "session",
                "value": {"text": "a boat", "speaker": name, "said_on": "2021-07-04"},
            }
            assert client.post("/api/v1/memory", json=entry).status_code == 201
        asked = {"query": "Ana's boat in July", "explain": True}
        found = client.post("/api/v1/memory/search", json=asked).json()["results"]
    assert [hit["entry"]["namespace"] for hit in found] == ["Ana", "Ben"]
    assert [hit["explain"]["author"] > 0 for hit in found] == [True, False]
    assert all(hit["explain"]["date"] > 0 for hit in found)


def test_without_one_nothing_is_embedded(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "--embedder", "none", dev=False) as server:
        assert httpx.get(server.url + "/ready").json()["embedding"]["model"] is None


def test_unknown_embedder_is_reported(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    said = refuse("serve", *data, "--port", "0", "--embedder", "nosuch:sk-1")
    assert "no such embedder" in said
    assert "static" in said
    assert "sk-1" not in said


def test_megabytes_to_search_in_are_a_setting_in_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Settings] = []

    def keep(settings: Settings, listener: socket.socket, *_: object) -> None:
        listener.close()
        served.append(settings)

    monkeypatch.setattr("memorywall.server.serve.serve", keep)
    monkeypatch.setattr("memorywall.server.logs.configure_logs", lambda level: None)
    words = ["--data", str(tmp_path), "--port", "0"]
    serve_command.main([*words, "--recall-memory", "3"], standalone_mode=False)
    serve_command.main(words, standalone_mode=False)
    assert [one.index_cache_bytes for one in served] == [3 * 1024 * 1024, 512 * 1024 * 1024]


def test_port_in_use_is_reported_before_any_change(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refuse("serve", "--data", str(data), "--port", str(port))
    assert f"cannot listen on 127.0.0.1:{port}" in said
    assert "in use" in said
    assert not data.exists()


def test_invalid_port_is_refused(tmp_path: Path) -> None:
    for port in ("99999", "-1"):
        printed = run("serve", "--data", str(tmp_path / "data"), "--port", port)
        assert printed.returncode in (1, 2)
        assert port in printed.stderr


@pytest.mark.sqlite("a file has one server, a database as many as it likes")
def test_second_server_is_refused_and_the_first_continues(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as first:
        said = refuse("serve", "--data", str(first.data), "--port", "0", "--dev")
        assert "another process (a server or memorywall.open)" in said
        assert "memory.db" in said
        with first.client() as client:
            assert client.get("/api/v1/agents/me").status_code == 200


@pytest.mark.sqlite("a file is open once, a database as often as it likes")
def test_a_directory_that_is_served_is_not_opened_by_a_client(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        said = refuse("query", "--data", str(server.data), "--agent", "a")
    assert "has this directory open; ask a server" in said
    assert "--url" in said


@pytest.fixture
def sealed(tmp_path: Path) -> tuple[Path, Shell]:
    """A data directory that holds a sealed value."""
    data = tmp_path / "data"
    new_directory(data, "keeper")
    shell = Shell("keeper", ("--data", str(data), "--agent", "keeper"))
    shell.succeed("set", "n", "k", '{"token": "open-sesame"}', "--sensitivity", "restricted")
    assert places_holding(data, b"open-sesame") == []
    return data, shell


def _refused_everywhere(data: Path, shell: Shell, **options: object) -> set[str]:
    """What serve, get and keys say, all of which open the same store."""
    place = ("--data", str(data))
    said = {
        refuse("serve", *place, "--port", "0", **options),
        shell.refuse("get", "n", "k", **options),
        refuse("keys", "create", *place, "--agent", "b", **options),
    }
    assert all("open-sesame" not in one for one in said)
    return said


def test_a_key_file_others_can_read_is_refused(sealed: tuple[Path, Shell]) -> None:
    data, shell = sealed
    for mode in (0o644, 0o640, 0o602):
        (data / "memory.db.key").chmod(mode)
        (said,) = _refused_everywhere(data, shell)
        assert "memory.db.key can be read by others; `chmod 600` it" in said
    (data / "memory.db.key").chmod(0o600)
    assert shell.json("get", "n", "k")["value"] == {"token": "open-sesame"}


def test_missing_key_file_is_not_recreated_when_sealed_values_exist(
    sealed: tuple[Path, Shell],
) -> None:
    data, shell = sealed
    key = (data / "memory.db.key").read_text()
    (data / "memory.db.key").unlink()
    (said,) = _refused_everywhere(data, shell)
    assert "is missing" in said
    assert "MEMORYWALL_KEY" in said
    assert not (data / "memory.db.key").exists()
    # The environment may hold it instead.
    entry = shell.json("get", "n", "k", variables={"MEMORYWALL_KEY": key.strip()})
    assert entry["value"] == {"token": "open-sesame"}


def test_database_without_the_directory_of_its_key_is_refused_with_advice(tmp_path: Path) -> None:
    first, elsewhere = tmp_path / "first", tmp_path / "elsewhere"
    first.mkdir()
    elsewhere.mkdir()
    with own_database() as url:
        # The first command creates the key in the default directory.
        succeed("keys", "create", "--agent", "b", "--store", url, cwd=first)
        assert (first / DEFAULT_DATA / "memory.db.key").exists()
        said = refuse("serve", "--port", "0", "--store", url, cwd=elsewhere)
        assert "give the directory that holds memory.db.key as --data" in said
        assert "MEMORYWALL_KEY" in said
        assert not (elsewhere / DEFAULT_DATA / "memory.db.key").exists()


@pytest.mark.parametrize("content", [b"", b"garbage", b"\xff\xfe\x00", b"QUJD\n", b"A" * 4000])
@pytest.mark.sampled(2)
def test_a_garbled_key_file_is_refused_without_repeating_it(
    content: bytes, sealed: tuple[Path, Shell]
) -> None:
    data, shell = sealed
    (data / "memory.db.key").write_bytes(content)
    (said,) = _refused_everywhere(data, shell)
    assert said.endswith("memory.db.key must hold 32 bytes in base64")
    assert shell.refuse("get", "n", "k", variables={"MEMORYWALL_KEY": "c2hvcnQ="}) == (
        "MEMORYWALL_KEY must hold 32 bytes in base64"
    )


def test_another_key_is_refused(sealed: tuple[Path, Shell]) -> None:
    data, shell = sealed
    (data / "memory.db.key").write_bytes(base64.b64encode(secrets.token_bytes(32)))
    (said,) = _refused_everywhere(data, shell)
    assert "not the one this database was sealed with" in said


@pytest.mark.sqlite("what its file is")
def test_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_text("this is a letter to my aunt, not a database\n" * 200)
    for command in (["serve", "--port", "0"], ["keys", "list"], ["verify"]):
        said = refuse(*command, "--data", str(tmp_path))
        assert "is not a memorywall database" in said


@pytest.mark.sqlite("what its file is")
@pytest.mark.parametrize(
    "command", [["verify"], ["keys", "list"], ["keys", "create", "--agent", "a"]], ids=" ".join
)
def test_database_of_another_program_is_refused_unchanged(
    command: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "memory.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
        connection.commit()
    before = file.read_bytes()
    said = refuse(*command, "--data", str(tmp_path))
    assert "is not a memorywall database" in said
    assert file.read_bytes() == before


@pytest.mark.sqlite("what its file is")
def test_an_empty_file_is_no_database_to_verify(tmp_path: Path) -> None:
    (tmp_path / "memory.db").touch()
    assert "memory.db" in refuse("verify", "--data", str(tmp_path))


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = refuse("serve", "--data", str(tmp_path / "file" / "data"), "--port", "0")
    assert "cannot be opened" in said


def test_error_names_the_missing_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    said = refuse("query", "--url", url, "--key", "mw_x.y")
    assert "cannot be reached" in said
    # Which server was asked is the first thing to look at.
    assert url in said


def test_a_key_or_a_directory_must_be_given(tmp_path: Path) -> None:
    assert "--key" in refuse("query")
    assert "--agent" in refuse("query", "--data", str(_made(tmp_path)))


def _made(tmp_path: Path) -> Path:
    new_directory(tmp_path / "data", "a")
    return tmp_path / "data"


@pytest.mark.parametrize("form", ["{}", "{}\n", "{}\r", "\u00fc{}", "{} "], ids=ascii)
@pytest.mark.sampled(2)
def test_a_wrong_key_is_not_repeated(form: str, tmp_path: Path) -> None:
    secret = "mw_abcdefgh.do-not-print-me"
    with ServerProcess(tmp_path / "data") as server:
        variables = {"MEMORYWALL_URL": server.url, "MEMORYWALL_API_KEY": form.format(secret)}
        said = refuse("query", variables=variables)
    assert "do-not-print-me" not in said
    assert "key" in said.lower()


def test_environment_sets_server_key_and_agent(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        variables = {
            "MEMORYWALL_URL": server.url,
            "MEMORYWALL_API_KEY": server.dev_key,
            "MEMORYWALL_AGENT": "from-environment",
        }
        made = succeed("set", "n", "k", "{}", variables=variables)
    assert "from-environment" in made
