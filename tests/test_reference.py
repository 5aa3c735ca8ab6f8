"""docs/reference.md is what the table of operations says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from memorywall.records.errors import ConfigurationError, MemorywallError
from memorywall.server.app import UnknownPathError
from memorywall.server.routing import UnknownMethodError
from memorywall.wire.operations import OPERATIONS, Operation
from memorywall.wire.reference import reference

_PAGE = Path(__file__).parent.parent / "docs" / "reference.md"


def _section(heading: str) -> str:
    """The text of the page from one heading of the third level to the next heading."""
    _, found, rest = reference().partition(f"\n### {heading}\n")
    assert found, f"no section {heading}"
    return re.split(r"\n##+ ", rest)[0]


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
        f"`{operation.permission}`" if operation.permission else "Open.",
        f"{operation.status} ",
        *(f"| {error.status} | `{error.code}` |" for error in operation.errors),
        *(f"| `{name}` | path |" for name in re.findall(r"{(\w+)}", path)),
    ]
    if operation.query is not None:
        fields = msgspec.structs.fields(operation.query)
        wanted.extend(f"| `{field.encode_name}` | query |" for field in fields)
    if operation.body is not None:
        fields = msgspec.structs.fields(operation.body)
        wanted.extend(f"| `{field.encode_name}` |" for field in fields)
    if operation.if_match != "none":
        wanted.append("| `If-Match` | header |")
    if operation.repeatable:
        wanted.append("| `Idempotency-Key` | header |")
    assert [one for one in wanted if one not in section] == []
    assert f"| [{operation.name}](#{operation.name}) |" in reference()


def test_every_error_code_is_listed() -> None:
    _, _, rest = reference().partition("\n## Error codes\n")
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
    page = reference()
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    anchors = [heading.lower().replace(" ", "-") for heading in headings]
    assert len(anchors) == len(set(anchors)), "two headings have one anchor"
    links = re.findall(r"\]\(#([^)]+)\)", page)
    assert links
    assert sorted(set(links) - set(anchors)) == []
