"""Tests frameworks, each in an environment of its own: `python -m integrations [NAME ...]`.

Without names it tests all of `frameworks.toml`. A framework whose tests fail is recorded as
failing, the others are tested nevertheless, and the exit code is 1.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from integrations.matrix import (
    EXTREMES,
    ROOT,
    bounded,
    frameworks,
    has_passed,
    lowest_of,
    name_of,
    record,
)  # fmt: skip

_TESTING = ("hypothesis", "pytest")
_VERSIONS = """
import importlib.metadata, json, platform, sys
versions = {name: importlib.metadata.version(name) for name in sys.argv[1:]}
print(json.dumps({"versions": versions, "python": platform.python_version()}))
"""


def environment(name: str, requirements: list[str]) -> Path:
    """Makes or updates an environment; returns its interpreter."""
    place = ROOT / ".integrations" / name
    python = place / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        # An older pip takes twice the time; without a newer one the present one does.
        subprocess.run([python, "-m", "pip", "install", "-q", "--upgrade", "pip"], check=False)
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--upgrade"]
    subprocess.run([*install, *requirements], cwd=ROOT, check=True)
    return python


def requirements_of(framework: dict[str, Any], extreme: str) -> list[str]:
    """What pip installs for a framework, with its lowest or its newest versions."""
    extras = ",".join(["postgres", *framework.get("extras", ())])
    given = bounded()
    wanted = [given.get(one, one) for one in (*framework["packages"], *framework.get("also", ()))]
    if extreme == "lowest":
        wanted += [f"{name}=={version}" for name, version in lowest_of(framework).items()]
    return ["-e", f".[{extras}]", *_TESTING, *wanted]


def installed_in(python: Path, packages: list[str]) -> dict[str, Any]:
    """The versions of packages in an environment, and that of its Python."""
    names = [name_of(package) for package in packages]
    asked = subprocess.run([python, "-c", _VERSIONS, *names], check=True, capture_output=True)
    found: dict[str, Any] = json.loads(asked.stdout)
    return found


def run_tests(python: Path, tests: list[str]) -> dict[str, Any]:
    """Runs tests in an environment; returns how many there were and passed, what the suites of the
    frameworks reported, and the versions of packages that are not Python's. A test that is skipped
    has not passed."""
    report = python.parents[1] / "report.xml"
    report.unlink(missing_ok=True)
    files = sorted(one for pattern in tests for one in ROOT.glob(pattern))
    command = [python, "-m", "pytest", "-q", "-W", "default", f"--junitxml={report}", *files]
    subprocess.run(command, cwd=ROOT, check=False)
    if not report.exists():
        # pytest itself has failed.
        return {"versions": {}, "tests": 0, "passed": 0, "conformance": ""}
    (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
    count, *others = (int(suite.get(one, 0)) for one in ("tests", "errors", "failures", "skipped"))
    reported: dict[str, list[str]] = {}
    for one in suite.findall("properties/property"):
        reported.setdefault(one.get("name", ""), []).append(one.get("value", ""))
    conformance = reported.pop("conformance", [])
    return {
        "versions": {name: values[0] for name, values in reported.items()},
        "tests": count,
        "passed": max(0, count - sum(others)),
        "conformance": "; ".join(conformance),
    }


def test_framework(name: str, framework: dict[str, Any], extreme: str) -> bool:
    """Tests the lowest or the newest version of a framework; returns whether all passed."""
    place = name if extreme == "newest" else f"{name}-{extreme}"
    print(place, flush=True)
    try:
        python = environment(place, requirements_of(framework, extreme))
    except subprocess.CalledProcessError:
        # That may be the network: what was seen before stays.
        print(f"{place} cannot be installed")
        return False
    installed = installed_in(python, framework["packages"])
    seen = run_tests(python, framework["tests"])
    run = {
        **installed,
        **seen,
        "versions": {**installed["versions"], **seen["versions"]},
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    record(name, extreme, run)
    return has_passed(run)


def main(names: list[str]) -> int:
    known = frameworks()
    if unknown := sorted(set(names) - known.keys()):
        print(f"frameworks.toml has {', '.join(known)}, and not {', '.join(unknown)}")
        return 2
    results = [
        test_framework(name, known[name], extreme)
        for name in names or known
        for extreme in EXTREMES
        if extreme == "newest" or lowest_of(known[name])
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
