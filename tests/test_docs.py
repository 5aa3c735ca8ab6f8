"""The documentation is true: its examples run, its links resolve, its tables are the code's.

A fenced block whose first word is `sh` or `python` is run, in order, in one shell in an empty
directory that stands for the project's; `sh server` runs beside the rest. On other pages the
programs in Python are run. A block marked `output` must be what the block before it printed at
first; ids, times, keys, ports, agents, sequence numbers and totals of the store may differ.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from functools import cache
from pathlib import Path

import click
import httpx
import pytest

from memorywall.cli.main import commands
from memorywall.settings import DEFAULT_PORT
from memorywall.tiers import TIERS
from memorywall.wire.operations import OPERATIONS, Operation
from tests.support.documentation import FENCE, Block, assert_printed, blocks
from tests.support.extent import extent
from tests.support.process import START_LIMIT, open_client

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "memorywall"
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
    ]
)
RUN = [ROOT / "README.md", ROOT / "docs" / "quickstart.md"]
TOLD = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in (
    "quickstart", "concepts", "operations", "coordination", "moving", "postgresql", "sessions",
    "working-memory", "context", "episodes", "mcp", "langgraph", "facts",
))]  # fmt: skip

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_PATIENCE = 120.0


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


class Reader:
    """Someone who follows a page at a shell, in a directory that stands for the project's."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._count = 0
        self._is_serving = False
        for name in ("Makefile", "pyproject.toml", "constraints.txt", "examples", "src"):
            (directory / name).symlink_to(ROOT / name)
        # The programs of the environment these tests run in are those of the project.
        (directory / ".venv").symlink_to(sys.prefix)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        kept = {name: text for name, text in os.environ.items() if "MAKE" not in name}
        kept = {name: text for name, text in kept.items() if not name.startswith("MEMORYWALL_")}
        url = f"http://127.0.0.1:{self.port}"
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            cwd=directory,
            env={**kept, "PORT": str(self.port), "MEMORYWALL_URL": url},
            start_new_session=True,
            text=True,
        )
        # What is installed is taken as up to date, so that nothing is installed by a test.
        self._say('make() { command make -s -o .venv/.runtime -o .venv/.test "$@"; }')
        self._say("set -E -o pipefail; trap 'FAILED=$BASH_COMMAND' ERR")

    def _say(self, command: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(command + "\n")
        self._shell.stdin.flush()

    def run(self, block: Block) -> str:
        """Runs a block; returns what it printed on standard output. Fails if a line of it did."""
        self._count += 1
        script, printed, errors, done = (
            self._directory / f".{self._count}.{end}" for end in ("script", "out", "err", "done")
        )
        script.write_text(block.text.replace(str(DEFAULT_PORT), str(self.port)), encoding="utf-8")
        if block.words == ("server",):
            if self._is_serving:
                return ""
            self._is_serving = True
            self._say(f"source {script.name} > {printed.name} 2> {errors.name} &")
            self._wait_for_server(errors)
            return printed.read_text()
        run = "python" if block.language == "python" else "source"
        self._say(
            f"FAILED=; {run} {script.name} > {printed.name} 2> {errors.name};"
            f' echo "$FAILED" > {done.name}.part; mv {done.name}.part {done.name}'
        )
        deadline = time.monotonic() + _PATIENCE
        while not done.exists():
            assert self._shell.poll() is None, f"line {block.line} ended the shell"
            assert time.monotonic() < deadline, f"line {block.line} does not end"
            time.sleep(0.02)
        failed = done.read_text().strip()
        assert not failed, f"line {block.line}: `{failed}` failed: {errors.read_text()}"
        return printed.read_text()

    def _wait_for_server(self, errors: Path) -> None:
        deadline = time.monotonic() + START_LIMIT
        while time.monotonic() < deadline:
            try:
                with open_client(f"http://127.0.0.1:{self.port}", {}, timeout=5) as client:
                    client.get("/ready").raise_for_status()
            except httpx.HTTPError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError(f"the server did not start: {errors.read_text()}")

    def close(self) -> None:
        """Ends the shell and everything that was started in it, and nothing else."""
        os.killpg(self._shell.pid, 15)
        self._shell.communicate(timeout=30)


def test_the_examples_do_what_the_pages_say_in_any_order_and_repeatedly(tmp_path: Path) -> None:
    """One server, on which the README is followed before and after the quickstart. The long version
    also follows the quickstart twice."""
    reader = Reader(tmp_path)
    try:
        for page in extent((*RUN, RUN[0]), long=(*RUN, *RUN)):
            _follow(reader, page)
    finally:
        reader.close()


def _follow(reader: Reader, page: Path) -> None:
    """Runs the blocks of a page and compares what they print."""
    ran = compared = 0
    printed: str | None = None
    for block in blocks(page):
        where = f"{_name(page)}, line {block.line}"
        if "output" in block.words:
            assert printed is not None, f"{where}: nothing was run before this"
            assert_printed(block, printed, f"what comes before {where}")
            compared += 1
        elif block.language in ("sh", "python"):
            printed = reader.run(block)
            ran += 1
    assert ran >= 4, "the examples of this page are not found"
    assert compared >= 2


RECIPES = ROOT / "docs" / "recipes"
"""Pages whose programs need frameworks; `make integrations` runs them."""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in RUN and page.parent != RECIPES], ids=_name
)
def test_programs_of_other_pages_run_twice(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each is a whole program, with a store of its own in the current directory. What it prints the
    first time is compared with a block marked `output` after it."""
    monkeypatch.chdir(tmp_path)
    printed: str | None = None
    for block in blocks(page):
        where = f"{_name(page)}, line {block.line}"
        if block.language == "python":
            # The programs do not have the future imports of this file.
            code = compile(block.text, where, "exec", dont_inherit=True)
            capsys.readouterr()
            exec(code, {"__name__": "__main__"})
            printed = capsys.readouterr().out
            exec(code, {"__name__": "__main__"})
        elif "output" in block.words:
            assert printed is not None, f"{where}: nothing was run before this"
            assert_printed(block, printed, f"what comes before {where}")


@pytest.mark.parametrize("page", RUN, ids=_name)
def test_every_block_is_run_or_compared_or_a_picture(page: Path) -> None:
    for block in blocks(page):
        known = block.language in ("sh", "python") or "output" in block.words
        assert known or (block.language, block.words) == ("text", ("picture",)), block


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_relative_link_resolves(page: Path) -> None:
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in _LINK.findall(prose):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{_name(page)} points to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in _anchors(file), f"{_name(page)} points to {target}"


@cache
def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, formed as the usual renderers do."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


def _told() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in TOLD)


_FOLDERS = ("docs", "examples", "packages", "src", "tests")
_PATH = re.compile(r"`([\w.-]*(?:/[\w.*-]+)*/?)`")


def _source_paths(text: str) -> list[str]:
    """The words in code spans that name a file or a folder of the source."""
    words = _PATH.findall(text)
    return [word for word in words if re.search(r"\w/|\.(?:py|sql|md|svg|yaml)$", word)]


def _exists(path: str) -> bool:
    """Whether a path that is relative to the package, or to the project, names something."""
    target = ROOT if path.split("/")[0] in _FOLDERS else SOURCE
    return (target / path).exists() and path.endswith("/") == (target / path).is_dir()


@pytest.mark.parametrize("name", ["architecture", "glossary"])
def test_every_path_on_the_page_exists(name: str) -> None:
    paths = _source_paths((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"))
    assert len(paths) > 40
    assert [path for path in paths if not _exists(path)] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=_name)
def test_every_path_that_a_decision_names_as_its_code_exists(page: Path) -> None:
    code = "".join(
        re.findall(r"^Code: .*(?:\n.+)*", page.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert [path for path in _source_paths(code) if not _exists(path)] == []


def test_the_test_of_paths_can_fail() -> None:
    assert _source_paths("`policy/nothing.py`, `GET /health`, `make docs`, `a.b`, `jobs/`") == [
        "policy/nothing.py",
        "jobs/",
    ]
    assert not _exists("policy/nothing.py")
    assert _exists("jobs/")
    assert _exists("docs/architecture.md")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_every_operation_is_mentioned(operation: Operation) -> None:
    path = operation.path.replace(":path", "")
    assert f"`{operation.method} {path}`" in _told()


def test_every_command_is_mentioned() -> None:
    told = _told()
    context = click.Context(commands)
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        names = [name]
        if isinstance(command, click.Group):
            names = [f"{name} {sub}" for sub in command.list_commands(context)]
        for one in names:
            assert f"memorywall {one}" in told, one


def test_every_make_target_named_is_there_and_every_one_is_named() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    told = _told() + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`make ([a-z-]+)", told)) | set(
        re.findall(r"^make ([a-z-]+)", told, re.MULTILINE)
    )
    assert named == targets - {"help"}


def _table(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table after a heading."""
    content = (ROOT / "docs" / page).read_text(encoding="utf-8")
    _, found, rest = content.partition(f"\n{heading}\n")
    assert found, heading
    rows = re.search(r"(?:^\|.*\n)+", rest, re.MULTILINE)
    assert rows is not None
    lines = [line.strip("|").split("|") for line in rows[0].splitlines()]
    return [[cell.strip().strip("`") for cell in line] for line in lines[2:]]


def test_the_table_of_tiers_is_the_code_s() -> None:
    rows = _table("concepts.md", "## Tiers")
    assert rows == [
        [
            spec.tier.value,
            f"{spec.capacity:,} per {spec.capacity_scope}" if spec.capacity else "no limit",
            spec.default_ttl or "none",
            spec.admission.value,
            spec.eviction.value,
            spec.access.value,
            spec.durability.lifetime.value + (", versioned" if spec.durability.versioned else ""),
            spec.isolation.value,
        ]
        for spec in TIERS.values()
    ]


def test_every_admission_and_access_of_a_tier_is_explained() -> None:
    content = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    _, _, section = content.partition("\n## Tiers\n")
    section = section.partition("\n## ")[0]
    for spec in TIERS.values():
        for word in (spec.admission, spec.access):
            assert f"| `{word}` |" in section, word


def test_every_dependency_is_justified_in_the_readme() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    optional = [one for name, some in extras.items() if name != "test" for one in some]
    needed = [*project["dependencies"], *optional]
    names = {re.split(r"[>=;< ]", one)[0] for one in needed}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?`) \|", readme.partition("## Dependencies")[2], re.M)
    listed = {name for row in rows for name in re.findall(r"`([\w.-]+)`", row)}
    assert listed == names


def test_the_conformance_suite_requires_its_own_version_of_memorywall() -> None:
    paths = ("pyproject.toml", "packages/testing/pyproject.toml")
    main, suite = (
        tomllib.loads((ROOT / path).read_text(encoding="utf-8"))["project"] for path in paths
    )
    assert suite["version"] == main["version"]
    assert f"memorywall=={main['version']}" in suite["dependencies"]


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_no_page_names_a_path_of_a_machine(page: Path) -> None:
    content = page.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(work|home|root|Users)/", content)
    assert shutil.which("bash"), "the examples need bash"
