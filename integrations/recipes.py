"""Runs the programs of a recipe's page, as someone does who pastes them one after the other."""

from __future__ import annotations

import contextlib
import io
import runpy
from pathlib import Path
from typing import Any

from tests.support.documentation import assert_printed, blocks

RECIPES = Path(__file__).parent.parent / "docs" / "recipes"


def run_recipe(name: str, directory: Path) -> dict[str, Any]:
    """Runs the blocks in Python of `docs/recipes/NAME.md`, each as a file of its own in a process
    that keeps the names of the blocks before it; what they print is compared with the block marked
    `output` that follows. Returns the names of the last one.

    directory: where the files are written; the current directory is the caller's to choose
    """
    page = RECIPES / f"{name}.md"
    names: dict[str, Any] = {}
    printed: str | None = None
    for block in blocks(page):
        where = f"docs/recipes/{name}.md, line {block.line}"
        if block.language == "python":
            # A file, so that frameworks which read the source of a function find it.
            program = directory / f"{name.replace('-', '_')}_{block.line}.py"
            program.write_text(block.text, encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                names = runpy.run_path(str(program), names, run_name="__main__")
            printed = output.getvalue()
        elif "output" in block.words:
            assert printed is not None, f"{where}: nothing was run before this"
            assert_printed(block, printed, f"what comes before {where}")
    assert printed is not None, f"docs/recipes/{name}.md has no block in Python"
    return names


def write_files(name: str, directory: Path) -> None:
    """Writes the blocks of `docs/recipes/NAME.md` that name a file after their language, below a
    directory, as someone does who saves them there."""
    of_page = blocks(RECIPES / f"{name}.md")
    files = {word: one.text for one in of_page for word in one.words if "." in word}
    assert files, f"docs/recipes/{name}.md has no block with the name of a file"
    for place, text in files.items():
        file = directory / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
