"""workflow: validate and run."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shlex
import signal
import struct
import subprocess
import termios
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.groups import intents, tasks
from tests.cli.shell import Shell, columns, environment, misuse, refuse, run, succeed
from tests.support.process import ServerProcess, run_process
from tests.support.programs import start_program
from tests.workflow.support import PRINTED, SMALL, write

EXAMPLE = Path(__file__).parents[2] / "examples" / "quarterly-compliance.yaml"
LIMIT = 30.0
ENOUGH = ("memory.read", "memory.write", "act_as", "tenant.admin")

TWO_AGENTS = """\
name: two agents
agents:
  ann: {function: "deeds:work"}
  bob: {function: "deeds:work"}
plan:
"""
FAILING = (
    TWO_AGENTS
    + """\
  - {task: bad, agent: ann, input: {fail: true}}
  - {task: next, agent: bob, depends_on: [bad]}
  - {task: other, agent: bob, outputs: [total]}
"""
)
DEEDS = """
    from memorywall import Worker

    @Worker(capabilities=["counting"])
    def work(ctx):
        ctx.memory.set("notes", ctx.task.name, {"by": ctx.agent_id})
        if ctx.input.get("fail"):
            raise ValueError("no luck\\nat all")
        return {"total": 1}
"""


@pytest.fixture
def data(tmp_path: Path) -> str:
    """A data directory that is not there yet."""
    return str(tmp_path / "own data")


def _key(server: ServerProcess, *permissions: str) -> str:
    options = [word for one in permissions for word in ("--permission", one)]
    return server.create_key("chief", *options)


def _write_deeds(folder: Path, text: str, source: str = DEEDS) -> str:
    write(folder, textwrap.dedent(source), "deeds.py")
    return str(write(folder, text))


def test_validate_shows_the_plan(tmp_path: Path) -> None:
    write(tmp_path, "- {key: k, value: {}}\n", "company_policies.yaml")
    file = write(tmp_path, PRINTED)
    text = succeed("workflow", "validate", str(file))
    heading, plan, namespaces = text.strip().split("\n\n")
    assert heading == f"{file} is valid: quarterly-compliance"
    assert columns(plan) == [
        "step", "agent", "after", "part", "of", "function", "working", "memory",
    ]  # fmt: skip
    assert [line.split() for line in plan.splitlines()[2:]] == [
        ["gather-financial-data", "data-agent", "stub", "archived,", "at", "most", "50", "entries"],
        ["process-billing", "billing-agent", "gather-financial-data", "stub", "archived,", "at",
         "most", "100", "entries"],
    ]  # fmt: skip
    assert [line.split() for line in namespaces.splitlines()[2:]] == [
        ["company_policies", "1", str(tmp_path / "company_policies.yaml")],
        ["compliance_rules", "0"],
        ["billing_domain", "0"],
    ]


def test_validate_tells_programs_everything(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        PRINTED + "  - {task: part, agent: data-agent, parent: process-billing, input: {n: 1}}\n",
    )
    told = json.loads(succeed("workflow", "validate", "--json", str(file)))
    assert (told["name"], told["version"]) == ("quarterly-compliance", "1.0")
    assert told["semantic_namespaces"][0] == {
        "name": "company_policies",
        "file": None,
        "entries": 0,
    }
    assert {one["name"]: one["episodic_capacity"] for one in told["agents"]} == {
        "billing-agent": 200,
        "data-agent": 500,
    }
    last = told["plan"][-1]
    assert (last["task"], last["parent"], last["input"]) == ("part", "process-billing", {"n": 1})
    assert last["memory_policy"]["max_entries"] == 50


def test_validate_imports_and_writes_nothing(tmp_path: Path) -> None:
    file = _write_deeds(tmp_path, FAILING, "raise RuntimeError('imported')\n")
    before = sorted(tmp_path.rglob("*"))
    assert "deeds:work" in succeed("workflow", "validate", file)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("command", [["validate"], ["run", "--data", "d"]], ids=lambda c: c[0])
def test_problem_of_a_file_is_reported_with_its_position(
    tmp_path: Path, command: list[str]
) -> None:
    write(tmp_path, SMALL + "polices: 1\n  - x\n", "broken.yaml")
    write(tmp_path, SMALL.replace("agent: worker", "agent: workr") + "memroy: {}\n", "wrong.yaml")
    printed = run("workflow", *command, "broken.yaml", cwd=tmp_path)
    assert (printed.returncode, printed.stdout) == (1, "")
    assert "broken.yaml:7:" in printed.stderr
    printed = run("workflow", *command, "wrong.yaml", cwd=tmp_path)
    assert (printed.returncode, printed.stdout) == (1, "")
    assert printed.stderr.splitlines() == [
        "memorywall: the workflow has 2 problems",
        "wrong.yaml:6:12: plan[0].agent: no agent has this name; do you mean `worker`?",
        "wrong.yaml:7:1: unknown key `memroy`; do you mean `memory`?",
    ]
    printed = run("workflow", *command, "missing.yaml", cwd=tmp_path)
    assert (printed.returncode, printed.stdout) == (1, "")
    assert "missing.yaml:1:1: cannot be read" in printed.stderr
    assert not (tmp_path / "d").exists()


def test_the_printed_file_runs_in_a_fresh_directory(tmp_path: Path, data: str) -> None:
    write(tmp_path, "- {key: k, value: {}}\n", "company_policies.yaml")
    file = str(write(tmp_path, PRINTED))
    printed = run("workflow", "run", "--data", data, file)
    assert printed.returncode == 0, printed.stderr
    # Progress is for terminals.
    assert printed.stderr == ""
    heading, table, log = printed.stdout.strip().split("\n\n")
    assert heading == "quarterly-compliance: completed"
    assert columns(table) == ["step", "agent", "status", "outputs", "task"]
    rows = [line.split() for line in table.splitlines()[2:]]
    assert [row[:4] for row in rows] == [
        ["gather-financial-data", "data-agent", "completed", "financial_summary"],
        ["process-billing", "billing-agent", "completed", "billing_report"],
    ]
    label, _, command = log.partition(": ")
    program, *arguments = shlex.split(command)
    assert (label, program) == ("The log", "memorywall")
    told = succeed(*arguments)
    assert all(row[4] in told for row in rows)
    assert told.count("memory.archived") == 2
    # It runs again, and both intents are there.
    assert json.loads(succeed("workflow", "run", "--data", data, "--json", file))["completed"]
    chief = Shell("coordinator", ("--data", data, "--agent", "coordinator"))
    found = intents(chief).json("list")
    assert [one["status"] for one in found] == ["completed", "completed"]


def test_it_runs_on_a_server_with_a_key_that_suffices(
    tmp_path: Path, server: ServerProcess
) -> None:
    file, key = str(write(tmp_path, PRINTED)), _key(server, *ENOUGH)
    where = ("--url", server.url, "--key", key)
    told = json.loads(succeed("workflow", "run", *where, "--json", file))
    assert (told["name"], told["completed"]) == ("quarterly-compliance", True)
    assert [one["status"] for one in told["steps"]] == ["completed", "completed"]
    assert [one["reason"] for one in told["steps"]] == [None, None]
    chief = Shell("chief", where)
    listed = tasks(chief).json("list", "--intent", told["intent_id"])
    assert [one["id"] for one in listed] == [one["task_id"] for one in told["steps"]]
    assert [one["assigned_agent"] for one in listed] == ["data-agent", "billing-agent"]
    # The environment says the same as the options.
    variables = {"MEMORYWALL_URL": server.url, "MEMORYWALL_API_KEY": key}
    last = succeed("workflow", "run", file, variables=variables).splitlines()[-1]
    assert last.startswith("The log: memorywall intents log int_")
    assert key not in last


def test_the_example_runs(data: str) -> None:
    text = succeed("workflow", "run", "--data", data, str(EXAMPLE))
    assert text.startswith("quarterly-compliance: completed\n")
    entries = Shell("data-agent", ("--data", data, "--agent", "data-agent")).json(
        "query", "--type", "semantic"
    )["entries"]
    assert {one["namespace"] for one in entries} == {
        "company_policies",
        "compliance_rules",
        "billing_domain",
    }


def test_functions_beside_the_file_do_the_work(tmp_path: Path, data: str) -> None:
    text = TWO_AGENTS + "  - {task: one, agent: ann, outputs: [total]}\n"
    file = _write_deeds(tmp_path / "elsewhere", text)
    told = json.loads(
        succeed("workflow", "run", "--data", data, "--coordinator", "boss", "--json", file)
    )
    assert told["completed"]
    (step,) = told["steps"]
    assert step["outputs"] == ["total"]
    boss = Shell("boss", ("--data", data, "--agent", "boss"))
    assert tasks(boss).json("show", step["task_id"])["output"] == {"total": 1}


def test_output_of_functions_is_not_part_of_the_json(tmp_path: Path, data: str) -> None:
    text = TWO_AGENTS + "  - {task: one, agent: ann}\n"
    file = _write_deeds(tmp_path, text, "def work(ctx):\n    print('chatter')\n")
    printed = run("workflow", "run", "--data", data, "--json", file)
    assert json.loads(printed.stdout)["completed"]
    assert printed.stderr == "chatter\n"
    assert succeed("workflow", "run", "--data", data, file).startswith("chatter\ntwo agents:")


def test_incomplete_step_is_reported_with_the_reason(tmp_path: Path, data: str) -> None:
    file = _write_deeds(tmp_path, FAILING)
    printed = run("workflow", "run", "--data", data, file)
    assert printed.returncode == 1
    assert printed.stderr == ""
    heading, table, rest = printed.stdout.strip().split("\n\n")
    assert heading == "two agents: not completed"
    rows = [line.split() for line in table.splitlines()[2:]]
    assert [row[:3] for row in rows] == [
        ["bad", "ann", "failed"],
        ["next", "bob", "skipped"],
        ["other", "bob", "completed"],
    ]
    assert rest.splitlines()[:2] == [
        "bad: ValueError: no luck at all",
        "next: not completed: `bad`",
    ]
    assert rest.splitlines()[2].startswith("The log: ")

    printed = run("workflow", "run", "--data", data, "--json", file)
    told = json.loads(printed.stdout)
    assert (printed.returncode, told["completed"]) == (1, False)
    assert told["steps"][0]["reason"] == "ValueError: no luck\nat all"


def test_traceback_is_printed_on_request(tmp_path: Path, data: str) -> None:
    file = _write_deeds(tmp_path, FAILING)
    printed = run_process(
        "workflow", "run", "--traceback", "--data", data, file,
        check=False, env=environment("--data", data),
    )  # fmt: skip
    assert printed.returncode == 1
    assert "deeds.py" in printed.stderr
    assert "ValueError: no luck" in printed.stderr
    assert "bad: ValueError: no luck at all" in printed.stdout


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("act_as", "that needs act_as"),
        ("tenant.admin", "that needs a key with tenant.admin"),
        ("memory.write", "the key lacks the permission memory.write"),
    ],
)
def test_refusal_names_the_missing_permission(
    tmp_path: Path, server: ServerProcess, missing: str, said: str
) -> None:
    key = _key(server, *(one for one in ENOUGH if one != missing))
    file = str(write(tmp_path, PRINTED))
    assert said in refuse("workflow", "run", "--url", server.url, "--key", key, file)


def test_where_it_cannot_run_is_told(tmp_path: Path, server: ServerProcess, data: str) -> None:
    file = str(write(tmp_path, SMALL))
    assert "give --data" in refuse("workflow", "run", file)
    said = refuse("workflow", "run", "--url", "http://127.0.0.1:1", "--key", "k", file)
    assert "cannot be reached" in said
    said = refuse("workflow", "run", "--url", server.url, "--key", "mw_no.such", file)
    assert said == "the API key is unknown or revoked"
    assert "--coordinator" in refuse("workflow", "run", "--data", data, "--coordinator", "", file)
    assert not Path(data, "memory.db").exists()
    assert "--data" in misuse("workflow", "run", "--data", file, file)
    assert "Missing argument 'FILE'" in misuse("workflow", "run")


@pytest.mark.sqlite("a file is open once, a database as often as it likes")
def test_it_does_not_run_where_a_server_is(tmp_path: Path, server: ServerProcess) -> None:
    file = str(write(tmp_path, SMALL))
    assert "has this directory open" in refuse("workflow", "run", "--data", str(server.data), file)


def test_missing_function_is_reported_before_execution(tmp_path: Path, data: str) -> None:
    file = _write_deeds(tmp_path, TWO_AGENTS + "  - {task: t, agent: ann}\n", "x = 1\n")
    said = refuse("workflow", "run", "--data", data, file)
    assert said == f"there is no `work` in {tmp_path / 'deeds.py'}"
    chief = Shell("coordinator", ("--data", data, "--agent", "coordinator"))
    assert intents(chief).json("list") == []


class Terminal:
    """A terminal of eighty columns, for a process to write to."""

    def __init__(self) -> None:
        self._reading, self.writing = pty.openpty()
        fcntl.ioctl(self.writing, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def read(self) -> str:
        """Everything that was written, once nobody writes any more."""
        os.close(self.writing)
        pieces = []
        try:
            while piece := os.read(self._reading, 65_536):
                pieces.append(piece)
        except OSError:
            # That is how the end of a terminal is told.
            pass
        os.close(self._reading)
        return b"".join(pieces).decode()


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["people", "programs"])
def test_progress_is_shown_on_a_terminal(tmp_path: Path, data: str, options: list[str]) -> None:
    write(tmp_path, "- {key: k, value: {}}\n", "company_policies.yaml")
    file = str(write(tmp_path, PRINTED))
    terminal = Terminal()
    printed = run_process(
        "workflow", "run", "--data", data, *options, file,
        check=False, stderr=terminal.writing, env=environment("--data", data),
    )  # fmt: skip
    shown = terminal.read()
    assert printed.returncode == 0
    assert "company_policies: " in shown
    assert "gather-financial-data: " in shown
    assert "| 1/2 [" in shown or "| 0/2 [" in shown
    assert "\r" not in printed.stdout


SLOW = TWO_AGENTS + "".join(
    f"  - {{{step}}}\n"
    for step in (
        "task: top, agent: ann",
        "task: part, agent: bob, parent: top",
        "task: next, agent: bob, depends_on: [top]",
    )
)
SLOW_DEEDS = """
    import time

    def work(ctx):
        if ctx.task.name == "part":
            print("working", flush=True)
            for number in range(1_000):
                ctx.memory.set("notes", "progress", {"n": number})
                time.sleep(0.05)
"""


@pytest.fixture
def slow_run(tmp_path: Path, data: str) -> Iterator[subprocess.Popen[str]]:
    """A run that works on a sub-step for a long time."""
    file = _write_deeds(tmp_path, SLOW, SLOW_DEEDS)
    process = start_program(
        "workflow", "run", "--data", data, file,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment("--data", data),
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_a_run_that_is_ended_calls_its_work_off(
    slow_run: subprocess.Popen[str], data: str, number: signal.Signals, code: int
) -> None:
    assert slow_run.stdout is not None
    assert slow_run.stdout.readline() == "working\n"
    slow_run.send_signal(number)
    out, err = slow_run.communicate(timeout=LIMIT)
    assert (slow_run.returncode, out) == (code, "")
    assert "Traceback" not in err
    chief = Shell("coordinator", ("--data", data, "--agent", "coordinator"))
    (intent,) = intents(chief).json("list")
    assert intent["status"] == "abandoned"
    left: list[dict[str, Any]] = tasks(chief).json("list", "--intent", intent["id"])
    assert [one["status"] for one in left] == ["cancelled"] * 3
    bob = Shell("bob", ("--data", data, "--agent", "bob"))
    assert bob.json("query")["entries"] == []
