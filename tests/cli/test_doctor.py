"""doctor, status and init: on a directory alone, on a broken one, and beside a server."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import shutil
import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

import memorywall.diagnosis.installation as installation
from memorywall.assembly import open_memory
from memorywall.diagnosis.finding import Finding
from memorywall.diagnosis.store import check_health_of
from memorywall.jobs.expire_entries import EXPIRE_JOB
from memorywall.jobs.job_runner import StepResult, run_in_tenant
from memorywall.records.clock import SystemClock
from memorywall.service.requests.operation_context import OperationContext
from memorywall.settings import DATABASE_NAME, DEFAULT_TENANT, Settings
from memorywall.storage.description import StoreHealth
from memorywall.version import __version__
from tests.cli.shell import Shell, new_directory, refuse, run, succeed
from tests.support.backend import is_on_file, store_of
from tests.support.model_server import model_server
from tests.support.process import ServerProcess

_CHECKS = [
    "settings", "python", "sqlite", "extras", "directory", "disk", "key", "summaries", "store",
    "schema", "integrity", "log", "server", "clock", "jobs",
]  # fmt: skip
_OF_FILES = {"integrity", "log"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with a key."""
    new_directory(tmp_path / "data", "ada")
    return tmp_path / "data"


def _examine(data: Path, *options: str, code: int = 0) -> dict[str, list[Finding]]:
    """The findings that need something, by their level; checks the exit code."""
    printed = run("doctor", "--data", str(data), "--json", *options)
    assert printed.returncode == code, printed.stdout + printed.stderr
    told = json.loads(printed.stdout)
    assert told["healthy"] is (code == 0)
    found: dict[str, list[Finding]] = {}
    for one in told["findings"]:
        # The servers of the tests do without durability, which a warning says.
        if one["level"] != "ok" and one["check"] != "durability":
            found.setdefault(one["level"], []).append(Finding(**one))
    return found


def _only(found: dict[str, list[Finding]], level: str) -> Finding:
    assert list(found) == [level], found
    (one,) = found[level]
    return one


def test_a_sound_installation_has_a_line_for_each_check(data: Path) -> None:
    printed = run("doctor", "--data", str(data))
    assert printed.returncode == 0, printed.stdout
    lines = printed.stdout.splitlines()
    checks = [line.split()[1] for line in lines]
    expected = [one for one in _CHECKS if is_on_file() or one not in _OF_FILES]
    # A check may have two lines: the key file, and whether it opens the data keys.
    assert [one for one in dict.fromkeys(checks) if one != "durability"] == expected
    assert {line.split()[0] for line in lines} <= {"ok", "warning"}
    assert _examine(data) == {}


def test_a_missing_database_is_a_problem_and_is_not_created(tmp_path: Path) -> None:
    data = tmp_path / "none"
    found = _examine(data, code=1 if is_on_file() else 0)
    if is_on_file():
        assert [one.check for one in found["problem"]] == ["directory", "store"]
        assert all("memorywall init" in one.advice for one in found["problem"])
    assert not data.exists()


def test_an_unreachable_database_is_a_problem_without_its_password(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"postgresql://u:hush@127.0.0.1:{port}/d"
    printed = run("doctor", "--data", str(tmp_path), "--store", url)
    assert printed.returncode == 1
    assert "problem  store" in printed.stdout
    assert "hush" not in printed.stdout + printed.stderr


def test_wide_modes_are_problems(data: Path) -> None:
    data.chmod(0o777)
    assert _only(_examine(data, code=1), "problem").check == "directory"
    data.chmod(0o755)
    (data / "memory.db.key").chmod(0o644)
    assert "chmod 600" in _only(_examine(data, code=1), "problem").text
    (data / "memory.db.key").chmod(0o600)
    if is_on_file():
        (data / "memory.db").chmod(0o640)
        assert "memory.db" in _only(_examine(data, code=1), "problem").text
        (data / "memory.db").chmod(0o600)
    (data / "dev-key").touch(0o600)
    assert "development key" in _only(_examine(data), "warning").text


def test_a_key_that_is_missing_or_of_another_store_is_a_problem(data: Path) -> None:
    (data / "memory.db.key").rename(data / "kept")
    # The first opening of a database creates a data key, that of a file does not.
    warned = _examine(data, code=0 if is_on_file() else 1)
    assert [one.check for one in warned["warning"]] == ["key"]
    (data / "kept").rename(data / "memory.db.key")
    shell = Shell("ada", ("--data", str(data), "--agent", "ada"))
    shell.succeed("set", "n", "k", '{"a": 1}', "--sensitivity", "restricted")
    assert _examine(data) == {}
    key = (data / "memory.db.key").read_text()
    (data / "memory.db.key").write_bytes(base64.b64encode(secrets.token_bytes(32)))
    assert "not the one" in _only(_examine(data, code=1), "problem").text
    (data / "memory.db.key").unlink()
    (found,) = _examine(data, code=1)["problem"]
    assert (found.check, "MEMORYWALL_KEY" in found.text) == ("key", True)
    assert key not in found.text


def test_little_disk_and_a_late_clock_are_reported(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for free, level, code in ((50 << 20, "problem", 1), (500 << 20, "warning", 0)):
        usage = SimpleNamespace(free=free)
        monkeypatch.setattr(installation.shutil, "disk_usage", lambda path, usage=usage: usage)
        assert _only(_examine(data, code=code), level).check == "disk"
    monkeypatch.undo()
    Shell("ada", ("--data", str(data), "--agent", "ada")).succeed("set", "n", "k", "{}")
    monkeypatch.setattr(SystemClock, "now", lambda self: 0)
    found = _only(_examine(data), "warning")
    assert (found.check, "behind" in found.text) == ("clock", True)


def test_packages_that_the_settings_need_are_problems(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        installation, "find_spec", lambda name: None if name == "wordllama" else object()
    )
    assert _examine(data) == {}
    monkeypatch.setenv("MEMORYWALL_EMBEDDER", "static")
    line = ("doctor", "--data", str(data), "--json")
    printed = run(*line, variables={"MEMORYWALL_EMBEDDER": "static"})
    assert "pip install '.[static]'" in printed.stdout
    assert printed.returncode == 1


def test_the_endpoint_of_summaries_is_examined_without_showing_its_key(data: Path) -> None:
    def found(spec: str) -> dict[str, Any]:
        settings = {"MEMORYWALL_SUMMARY_MODEL": spec, "MEMORYWALL_SUMMARY_MODEL_KEY": "hush-key"}
        printed = run("doctor", "--data", str(data), "--json", variables=settings)
        assert "hush" not in printed.stdout + printed.stderr
        findings = json.loads(printed.stdout)["findings"]
        return next(one for one in findings if one["check"] == "summaries")

    with model_server() as server:
        assert (found(server.spec)["level"], server.asked[0][1]) == ("ok", "Bearer hush-key")
        server.status = 401
        assert "summary_model_key" in found(server.spec)["advice"]
    assert found("http://127.0.0.1:9/v1#small")["level"] == "warning"
    assert found("https://me:hush@host/v1#m")["level"] == "problem"


@pytest.mark.sqlite("what its file is")
def test_damage_and_another_schema_are_found_without_a_change(data: Path) -> None:
    connection = apsw.Connection(str(data / "memory.db"))
    for number, level, code in ((1, "warning", 0), (999, "problem", 1)):
        connection.execute(f"PRAGMA user_version = {number}")
        assert _only(_examine(data, code=code), level).check == "schema"
        assert connection.execute("PRAGMA user_version").fetchone() == (number,)
    connection.close()
    (data / "memory.db").write_bytes(b"no database" * 500)
    found = _only(_examine(data, code=1), "problem")
    assert (found.check, "not a memorywall database" in found.text) == ("store", True)


def test_damage_a_large_log_and_risks_of_the_engine_are_reported() -> None:
    health = StoreHealth(
        engine="SQLite", version="3.50", schema=9, newest_schema=9, is_served=False,
        damage=("row 1 missing from index",), log_bytes=300 << 20, risks=("fsync is off",),
    )  # fmt: skip
    found = {one.check: one for one in check_health_of(health)}
    levels = {name: str(one.level) for name, one in found.items()}
    assert levels == {
        "store": "ok", "schema": "ok", "integrity": "problem", "log": "warning",
        "durability": "warning",
    }  # fmt: skip
    assert all(one.advice for one in found.values() if one.level != "ok")


def test_failing_and_paused_jobs_are_reported(data: Path) -> None:
    succeed("jobs", "pause", "expire", "--data", str(data))
    found = _only(_examine(data), "warning")
    assert (found.check, found.advice) == ("jobs", "`memorywall jobs resume expire`")
    succeed("jobs", "resume", "expire", "--data", str(data))

    asyncio.run(_fail_a_job(data))
    found = _only(_examine(data, code=1), "problem")
    assert "expire of the tenant default failed (LookupError)" in found.text
    assert "secret-value" not in found.text


async def _fail_a_job(data: Path) -> None:
    async def is_needed(context: OperationContext) -> bool:
        return True

    async def fail(context: OperationContext, cursor: str) -> StepResult:
        raise LookupError("secret-value")

    spec = replace(EXPIRE_JOB, is_needed=is_needed, step=fail)
    settings = Settings(sqlite_path=data / DATABASE_NAME, database_url=store_of(data))
    async with open_memory(settings, exclusive=False) as service:
        with pytest.raises(LookupError):
            await run_in_tenant(service, DEFAULT_TENANT, spec, early=True)


# status


def _status(*options: str, **more: Any) -> Any:
    return json.loads(succeed("status", "--json", *options, **more))


def test_status_of_a_directory_counts_entries_and_jobs_of_every_tenant(data: Path) -> None:
    shell = Shell("ada", ("--data", str(data), "--agent", "ada"))
    shell.succeed("set", "n", "k", '{"a": 1}', "--type", "episodic")
    succeed("tenants", "create", "acme", "--data", str(data))
    told = _status("--data", str(data))
    assert (told["status"], told["version"]) == ("not served", __version__)
    assert told["store"]["engine"] == ("SQLite" if is_on_file() else "PostgreSQL")
    assert told["store"]["schema"] > 0
    assert told["embedding"] == {"model": None, "backlog": 0}
    acme, default = told["tenants"]
    assert (acme["tenant"], default["tenant"]) == ("acme", "default")
    counts = {one["memory_type"]: (one["entries"], one["bytes"]) for one in default["tiers"]}
    assert counts["episodic"] == (1, 7)
    assert counts["working"] == (0, 0)
    assert {one["entries"] for one in acme["tiers"]} == {0}
    assert {one["name"] for one in acme["jobs"]} == {
        "embed",
        "end_leases",
        "end_sessions",
        "expire",
        "judge",
        "migrate_facts",
        "prune",
        "reseal",
        "seal",
        "segments",
    }
    assert default["tiers"][0]["nearly_full"] == []
    succeed("capacity", "--data", str(data), "--agent", "ada", "1")
    table = succeed("status", "--data", str(data))
    assert "nearly full: episodic memory of ada in default, 1 of 1 entries\n" in table
    assert "not served" in table
    assert "episodic" in table


def test_status_and_doctor_of_a_server_that_runs(tmp_path: Path) -> None:
    """One process shows what only a served directory shows."""
    data = tmp_path / "data"
    made = json.loads(succeed("init", "--data", str(data), "--json"))
    with ServerProcess(data, dev=False) as server:
        where = ("--url", server.url)
        told = _status(*where, "--key", made["key"])
        assert (told["status"], told["tenants"][0]["tenant"]) == ("ready", "default")
        assert told["store"]["schema"] > 0
        other = server.create_key("other")
        printed = run("status", "--json", *where, "--key", other)
        assert "not that of an administrator" in printed.stderr
        assert json.loads(printed.stdout)["tenants"] == []
        assert _status(*where)["store"] is None
        assert _status("--data", str(data))["status"] == "served"
        assert _examine(data, *where) == {}
        # Its port is not that of the settings, and 0 is no address.
        port = ("--config", str(_file(tmp_path, "port = 1\n")))
        assert _only(_examine(data, *port), "warning").check == "server"
        server.terminate()
        assert _only(_examine(data, *where, code=1), "problem").check == "server"


def _file(directory: Path, text: str) -> Path:
    file = directory / "settings.toml"
    file.write_text(text)
    return file


def test_a_server_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert url in refuse("status", "--url", url)


# init


def test_init_makes_a_directory_and_a_repetition_changes_nothing(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    made = json.loads(succeed("init", "--data", str(data), "--tenant", "acme", "--json"))
    assert (made["created"], made["tenant"]) == (True, "acme")
    assert data.stat().st_mode & 0o777 == 0o700
    assert (data / "memory.db.key").stat().st_mode & 0o777 == 0o600
    (key,) = json.loads(succeed("keys", "list", "--data", str(data), "--json"))
    assert (key["agent"], key["tenant"], key["kind"]) == ("admin", "acme", "service")
    assert key["permissions"] == ["memory.admin", "memory.read", "memory.write", "tenant.admin"]
    again = json.loads(succeed("init", "--data", str(data), "--tenant", "acme", "--json"))
    assert (again["created"], again["key"], again["prefix"]) == (False, None, key["prefix"])
    (same,) = json.loads(succeed("keys", "list", "--data", str(data), "--json"))
    assert same == key
    shutil.rmtree(tmp_path / "new")


def test_init_prints_the_next_two_commands(tmp_path: Path) -> None:
    data = tmp_path / "two words"
    lines = succeed("init", "--data", str(data)).splitlines()
    assert lines[-2] == f"  memorywall serve --data '{data}'"
    assert lines[-1].startswith("  MEMORYWALL_API_KEY=mw_")
    again = succeed("init", "--data", str(data))
    assert "nothing to do" in again
    assert "mw_" in again
    assert "MEMORYWALL_API_KEY=KEY memorywall status" in again
