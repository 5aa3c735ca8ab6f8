"""Packages of npm, each with an environment of its own as the frameworks in Python have."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_ENVIRONMENTS = Path(__file__).parents[1] / ".integrations"


def install_packages(name: str, *wanted: str, runs_scripts: bool = True) -> Path:
    """Installs packages into `.integrations/NAME`, unless it has them; returns its `node_modules`.

    wanted: packages with their versions, such as `node@26.10.0`, which is Node.js itself
    runs_scripts: whether the packages may run programs of theirs while they are installed
    """
    place = _ENVIRONMENTS / name
    installed = place / ".installed"
    if not installed.exists() or installed.read_text() != " ".join(wanted):
        if shutil.which("npm") is None:
            pytest.fail("this needs npm, which is not installed")
        place.mkdir(parents=True, exist_ok=True)
        options = ["--no-audit", "--no-fund", "--loglevel", "error"]
        if not runs_scripts:
            options.append("--ignore-scripts")
        subprocess.run(["npm", "install", "--prefix", place, *options, *wanted], check=True)
        installed.write_text(" ".join(wanted))
    return place / "node_modules"
