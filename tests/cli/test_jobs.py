"""jobs: beside a running server."""

from __future__ import annotations

from tests.cli.shell import run, succeed
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
