"""Forked programs are processes as new interpreters are."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import LIMIT
from tests.support.programs import run_python, start_python

_SEEN = """
import os, sys
print(os.getcwd(), os.environ["WORD"], sys.argv[1:], sys.stdin.read(), __name__)
print("näïve", file=sys.stderr)
sys.exit(7)
"""


def test_program_has_its_arguments_directory_environment_and_streams(tmp_path: Path) -> None:
    ended = run_python(
        "-c", _SEEN, "one", "two",
        input="content", check=False, limit=LIMIT, cwd=tmp_path, env={"WORD": "said"},
    )  # fmt: skip
    assert ended.stdout == f"{tmp_path} said ['one', 'two'] content __main__\n"
    assert ended.stderr == "näïve\n"
    assert ended.returncode == 7


def test_program_that_fails_prints_its_traceback() -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run_python("-c", "raise ValueError('wrong')", limit=LIMIT)
    assert caught.value.returncode == 1
    assert caught.value.stderr.endswith("ValueError: wrong\n")


def test_warnings_are_errors_on_request() -> None:
    warning = "import warnings; warnings.warn('old')"
    assert run_python("-c", warning, limit=LIMIT).returncode == 0
    assert run_python("-W", "error", "-c", warning, check=False, limit=LIMIT).returncode == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_program_is_ended_by_a_signal_and_reaped(number: signal.Signals) -> None:
    code = "import sys, time; print('ready', flush=True); time.sleep(600)"
    with start_python("-c", code, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        assert program.poll() is None
        program.send_signal(number)
        assert program.wait(LIMIT) == -number
        assert program.poll() == -number
    with pytest.raises(ProcessLookupError):
        os.kill(program.pid, 0)


def test_interrupt_is_an_exception_of_the_program() -> None:
    code = "import time; print('ready', flush=True); time.sleep(600)"
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start_python("-c", code, **streams) as program:
        assert program.stdout is not None
        program.stdout.readline()
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=LIMIT)
    assert "KeyboardInterrupt" in errors
    assert program.returncode == -signal.SIGINT
