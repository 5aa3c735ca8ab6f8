"""A recipe in a process of its own, as that of another host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from integrations.recipes import RECIPES
from tests.support.documentation import blocks

ROOT = RECIPES.parent.parent
_LIMIT = 120.0


def run_elsewhere(recipe: str, code: str, directory: Path) -> str:
    """Runs the definitions of a recipe's page and then `code`, in a new process. Returns what it
    prints. The definitions are its blocks in Python but the last, which uses them."""
    texts = [one.text for one in blocks(RECIPES / f"{recipe}.md") if one.language == "python"]
    program = directory / "elsewhere.py"
    program.write_text("\n\n".join([*texts[:-1], code]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=_LIMIT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
