"""docs/reference.md is what the table of operations says."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from http import HTTPStatus
from pathlib import Path

import msgspec
import pytest

from memorywall.records.errors import ConfigurationError, MemorywallError
from memorywall.server.app import UnknownPathError
from memorywall.server.routing import UnknownMethodError
from memorywall.wire.operations import OPERATIONS, Operation
from memorywall.wire.reference import reference

_PAGE = Path(__file__).parent.parent / "docs" / "reference.md"


@cache
def _page() -> str:
    return reference()


def _section(heading: str) -> str:
    """The text of the page from one heading of the third level to the next heading."""
    _, found, rest = _page().partition(f"\n### {heading}\n")
    assert found, f"no section {heading}"
    return re.split(r"\n##+ ", rest)[0]


def _chapter(heading: str) -> str:
    """The text of the page from one heading of the second level to the next heading."""
    return _page().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_the_page_is_what_the_command_prints() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "memorywall.wire.reference"], capture_output=True, check=True
    )
    assert printed.stderr == b""
    assert _PAGE.read_bytes() == printed.stdout, "run `make docs`"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_every_operation_is_described(operation: Operation) -> None:
    section = _section(operation.name)
    path = operation.path.replace(":path", "")
    wanted = [
        f"{operation.method} {path}\n",
        operation.summary,
        operation.source,
        _needs(operation),
        f"{operation.status} {HTTPStatus(operation.status).phrase}",
        "204 No Content: there is nothing." if operation.empty else "",
        *(f"{error.status} `{error.code}`" for error in operation.raises),
        *(f"| `{name}` | path |" for name in re.findall(r"{(\w+)}", path)),
    ]
    if operation.query is not None:
        fields = msgspec.structs.fields(operation.query)
        wanted.extend(f"| `{field.encode_name}` | query |" for field in fields)
    if operation.content == "bytes":
        wanted.append("The bytes themselves, `application/octet-stream`.")
    elif operation.body is not None:
        fields = msgspec.structs.fields(operation.body)
        wanted.extend(f"| `{field.encode_name}` |" for field in fields)
    if operation.media == "bytes":
        wanted.append("`Content-Disposition`, `ETag`, `Repr-Digest`")
    assert [one for one in wanted if one not in section] == []
    for header, is_heeded in (
        ("X-Agent-ID", not operation.public),
        ("If-Match", operation.if_match != "none"),
        ("Fencing-Token", operation.fenced),
        ("Idempotency-Key", operation.accepts_idempotency_key),
        ("Last-Event-ID", operation.media == "events"),
    ):
        assert (header in _headers(section)) is is_heeded, header
    assert f"| [{operation.name}](#{operation.name}) |" in _page()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_the_errors_of_an_operation_are_its_own_and_the_common_ones(operation: Operation) -> None:
    section = _section(operation.name)
    rows = re.findall(r"\| (\d+) \| `(\w+)` \| ([^|]+) \|", _chapter("Common errors"))
    assert len(rows) > 10
    own = re.findall(r"(\d+) `(\w+)`", section.partition("**Errors** ")[2])
    common = [(status, code) for status, code, which in rows if _is_one_of(section, which)]
    assert {*own, *common} == {(str(one.status), one.code) for one in operation.errors}


def _headers(section: str) -> list[str]:
    """The names of the headers that the section of an operation lists."""
    line = section.partition("**[Headers](#headers)** ")[2].partition("\n")[0]
    return re.findall(r"`([\w-]+)`", line)


def _is_one_of(section: str, which: str) -> bool:
    """Whether an operation is one of those that a row of the common errors is about."""
    header = re.fullmatch(r"with `([\w-]+)`", which)
    if header is not None:
        return header[1] in _headers(section)
    signs = {"all": "", "that need a key": " Needs ", "with a body": "\n**Body**\n"}
    return signs[which] in section


def test_every_header_is_described_once_with_each_of_its_meanings() -> None:
    rows = re.findall(r"\| `([\w-]+)` \| .{10,} \|", _chapter("Headers"))
    for operation in OPERATIONS:
        assert set(_headers(_section(operation.name))) <= set(rows)
    assert len(rows) == len(set(rows)) + 1, "`If-None-Match` has two meanings"


def _needs(operation: Operation) -> str:
    if operation.permission is not None:
        return f"Needs `{operation.permission}`."
    return "Open." if operation.public else "Needs any key."


def test_the_operations_stand_in_the_order_of_their_groups() -> None:
    overview = _page().partition("\n## ")[0]
    groups = dict.fromkeys(operation.group for operation in OPERATIONS)
    expected = []
    for group in groups:
        expected.append(group)
        expected.extend(one.name for one in OPERATIONS if one.group == group)
    assert re.findall(r"^\| \W*\[(\w+)\]", overview, re.MULTILINE) == expected


def test_every_error_code_is_listed() -> None:
    _, _, rest = _page().partition("\n## Error codes\n")
    overview = rest.partition("\n## ")[0]
    kinds = [MemorywallError]
    for kind in kinds:
        kinds.extend(
            narrower
            for narrower in kind.__subclasses__()
            if narrower.__module__ == MemorywallError.__module__
            and narrower is not ConfigurationError
        )
    assert len(kinds) > 10
    lines = [f"| {kind.status} | `{kind.code}` | `{kind.__name__}` |" for kind in kinds]
    assert [line for line in lines if line not in overview] == []
    for unknown in (UnknownPathError, UnknownMethodError):
        assert f"{unknown.status} `{unknown.code}`" in " ".join(overview.split())


def test_every_link_has_a_target() -> None:
    page = _page()
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    anchors = [re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings]
    assert len(anchors) == len(set(anchors)), "two headings have one anchor"
    links = re.findall(r"\]\(#([^)]+)\)", page)
    assert links
    assert sorted(set(links) - set(anchors)) == []
