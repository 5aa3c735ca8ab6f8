"""The frameworks, what their tests have seen, and the page that says so: docs/integrations.md."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SEEN = ROOT / "integrations" / "seen.json"
PAGE = ROOT / "docs" / "integrations.md"
EXTREMES = ("lowest", "newest")

_HEAD = """# Integrations

What memorywall is for agent frameworks, and what their tests have seen. An adapter is part of
memorywall and has an extra; a recipe is a page with code to paste. `make integrations` tests each
framework in an environment of its own: an adapter with the lowest and with the newest version that
its extra allows, a recipe with the newest one, by running the code of its page.

| Framework | memorywall is | Lowest version | Newest version | Conformance suite | Tested |
| --- | --- | --- | --- | --- | --- |
"""
_TAIL = """
`integrations/frameworks.toml` names the tests, and `integrations/seen.json` has what they saw, from
which this page is made.
"""


def frameworks() -> dict[str, dict[str, Any]]:
    """The frameworks of `frameworks.toml`, by the names of their environments."""
    return tomllib.loads((ROOT / "integrations" / "frameworks.toml").read_text(encoding="utf-8"))


def name_of(requirement: str) -> str:
    """The name of the package of a requirement, without its extras and bounds."""
    return re.split(r"[\[<>=~!; ]", requirement)[0]


def bounded() -> dict[str, str]:
    """The requirements of the extras in pyproject.toml, by the names of the packages."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    return {name_of(requirement): requirement for extra in extras for requirement in extra}


def lowest_of(framework: dict[str, Any]) -> dict[str, str]:
    """The lowest supported versions of a framework's packages; empty if the newest one is all."""
    requirements = bounded()
    found = {}
    for package in framework["packages"]:
        if match := re.search(r">=([\d.]+)", requirements.get(package, package)):
            found[name_of(package)] = match[1]
    return found


def read_seen() -> dict[str, dict[str, Any]]:
    """What the tests have seen: a run by the name of the framework and `lowest` or `newest`."""
    return json.loads(SEEN.read_text(encoding="utf-8")) if SEEN.exists() else {}  # type: ignore[no-any-return]


def has_passed(run: dict[str, Any]) -> bool:
    """Whether there were tests and all of them passed."""
    return bool(run["passed"] == run["tests"] > 0)


def _cell(run: dict[str, Any] | None) -> str:
    if run is None:
        return ""
    versions = ", ".join(f"`{name}` {version}" for name, version in run["versions"].items())
    result = f"{run['passed']} of {run['tests']} tests passed"
    return f"{versions}: {result if has_passed(run) else f'**FAILING**, {result}'}"


def render(seen: dict[str, dict[str, Any]]) -> str:
    """The text of the page about these runs."""
    lines = []
    for name, framework in frameworks().items():
        runs = seen.get(name, {})
        newest = runs.get("newest")
        cells = [
            f"[{framework['title']}]({framework['page']})",
            framework["serves"],
            *(_cell(runs.get(extreme)) for extreme in EXTREMES),
            *((newest["conformance"], f"{newest['date']}, Python {newest['python']}")
              if newest else ("", "**never**")),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |\n")
    return _HEAD + "".join(lines) + _TAIL


def record(name: str, extreme: str, run: dict[str, Any]) -> None:
    """Keeps what a run has seen in place of the one before it, and writes the page."""
    seen = read_seen()
    seen.setdefault(name, {})[extreme] = run
    known = {one: seen[one] for one in frameworks() if one in seen}
    SEEN.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    PAGE.write_text(render(known), encoding="utf-8")


if __name__ == "__main__":
    print(render(read_seen()), end="")
