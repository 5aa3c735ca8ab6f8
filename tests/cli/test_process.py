"""The command as a process: what an interpreter does when it starts and ends, and the proof that
a command which is run within the tests prints the same and ends the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.shell import environment, new_directory
from tests.support.command_line import run_cli, run_process

GREETING = '{"text": "Grüße, 世界"}'


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with an entry of an agent `a`."""
    data = tmp_path / "data"
    new_directory(data, "a")
    where = ("--data", str(data), "--agent", "a")
    run_cli("set", *where, "n", "k", GREETING, env=environment(*where))
    return data


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["get", "n", "k"], 0),
        (["get", "n", "k", "--json"], 0),
        (["query"], 0),
        (["get", "n", "missing"], 1),
        (["get", "n", "k", "--type", "no-such-tier"], 2),
        (["delete", "--namespace", "n"], 130),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else str(one),
)
@pytest.mark.sampled(1)
def test_a_process_prints_and_ends_as_in_the_process_of_the_tests(
    command: list[str], code: int, data: Path
) -> None:
    name, *rest = command
    line = [name, "--data", str(data), "--agent", "a", *rest]
    within = run_cli(*line, check=False, env=environment(*line))
    outside = run_process(*line, check=False, env=environment(*line))
    assert within.returncode == outside.returncode == code
    assert within.stdout == outside.stdout
    assert within.stderr == outside.stderr
    assert "Traceback" not in outside.stderr


@pytest.mark.parametrize("run", [run_cli, run_process], ids=["within", "process"])
def test_standard_input_is_read_as_utf_8(run: Callable[..., object], data: Path) -> None:
    line = ["set", "--data", str(data), "--agent", "a", "n", "input", "-"]
    run(*line, env=environment(*line), input=GREETING)
    line = ["get", "--data", str(data), "--agent", "a", "n", "input"]
    assert "Grüße, 世界" in run_process(*line, env=environment(*line)).stdout


def test_the_version_is_told_without_a_store() -> None:
    printed = run_process("--version", env=environment())
    assert printed.stdout.startswith("memorywall, version ")
    assert printed.stderr == ""
