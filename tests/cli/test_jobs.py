"""jobs: beside a running server, and by asking it."""

from __future__ import annotations

from collections.abc import Callable

from memorywall.records.principal import Permission
from tests.cli.shell import Shell, misuse, refuse, run, succeed
from tests.support.process import ServerProcess


def test_jobs_are_listed_paused_resumed_and_run(server: ServerProcess) -> None:
    server.create_key("ada")
    listed = succeed("jobs", "list", *server.place)
    assert [line.split()[:2] for line in listed.splitlines()[2:]] == [
        ["default", "embed"],
        ["default", "end_leases"],
        ["default", "end_sessions"],
        ["default", "expire"],
        ["default", "judge"],
        ["default", "migrate_facts"],
        ["default", "prune"],
        ["default", "reseal"],
        ["default", "seal"],
        ["default", "segments"],
    ]
    paused = succeed("jobs", "pause", "expire", *server.place, "--tenant", "default")
    assert paused.splitlines()[2].split()[:3] == ["default", "expire", "paused"]
    resumed = succeed("jobs", "resume", "expire", *server.place)
    assert "paused" not in resumed
    assert succeed("jobs", "run", "expire", *server.place) == "0 done\n"
    refused = run("jobs", "run", "other", *server.place)
    assert (refused.returncode, refused.stderr) == (1, "memorywall: there is no job of this name\n")


def test_jobs_need_a_key_or_a_store(server: ServerProcess) -> None:
    assert "--url and --key" in refuse("jobs", "list", "--url", server.url)


def test_a_paused_job_is_not_run(server: ServerProcess) -> None:
    server.create_key("ada")
    succeed("jobs", "pause", "segments", *server.place)
    told = refuse("jobs", "run", "segments", *server.place)
    assert told == (
        "segments is paused in tenant default; `memorywall jobs resume segments` resumes it"
    )
    succeed("jobs", "resume", "segments", *server.place)
    assert succeed("jobs", "run", "segments", *server.place).endswith(" done\n")


def test_jobs_of_a_server_are_listed_paused_resumed_and_run(
    server: ServerProcess, new_agent: Callable[..., Shell]
) -> None:
    chief = new_agent("--permission", Permission.TENANT_ADMIN.value)
    where = chief.where
    before = {line.split()[1]: line for line in succeed("jobs", "list", *where).splitlines()[2:]}
    assert len(before) == 10
    assert succeed("jobs", "run", "reseal", *where) == "0 done\n"
    # The run found nothing to do, so that the server alone knows of it.
    ran = {line.split()[1]: line.split() for line in succeed("jobs", "list", *where).splitlines()}
    assert ran["reseal"][2].startswith("20")
    stored = succeed("jobs", "list", *server.place).splitlines()
    assert [line.split() for line in stored if " reseal " in line] == [["default", "reseal", "0"]]
    paused = succeed("jobs", "pause", "reseal", *where)
    assert paused.splitlines()[2].split()[:3] == ["default", "reseal", "paused"]
    assert "paused" in refuse("jobs", "run", "reseal", *where)
    assert "paused" not in succeed("jobs", "resume", "reseal", *where)
    assert "--tenant" in misuse("jobs", "list", *where, "--tenant", "default")
    assert "no job" in refuse("jobs", "run", "other", *where)
    assert "embedder" in refuse("jobs", "run", "embed", *where)
