"""`python -m benchmarks.recall.functions FILE`: writes a data set of programs.

The functions of Python's standard library without their documentation are the documents; the first
sentences of their documentation are the questions. The set depends on the version of Python.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_SEED = 5
_DOCUMENTS = 2_000
_QUESTIONS = 400
_LINES = range(6, 62)
"""The lengths of the functions, with their documentation."""
_WORDS = range(4, 21)
"""The lengths of the questions."""
_LEFT_OUT = frozenset({"test", "tests", "idlelib", "site-packages", "lib2to3", "turtledemo"})
_END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s|\n\n")


class _Function(NamedTuple):
    """A function without its documentation, and the first sentence of it."""

    source: str
    sentence: str


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="the JSON file to write")
    options = parser.parse_args()
    functions = sorted(_functions(Path(sysconfig.get_path("stdlib"))))
    random.Random(_SEED).shuffle(functions)
    functions = functions[:_DOCUMENTS]
    messages = [
        {"id": f"f{number}", "session": None, "author": None, "date": None, "text": one.source}
        for number, one in enumerate(functions)
    ]
    questions = [
        {"question": one.sentence.rstrip("."), "evidence": [f"f{number}"], "category": "code"}
        for number, one in enumerate(functions[:_QUESTIONS])
    ]
    collection = {"id": "functions", "messages": messages, "questions": questions}
    data = {"name": "functions", "unit": "message", "conversations": [collection]}
    options.file.write_text(json.dumps(data))


def _functions(library: Path) -> Iterator[_Function]:
    for file in library.rglob("*.py"):
        if _LEFT_OUT.isdisjoint(file.relative_to(library).parts):
            try:
                tree = ast.parse(file.read_text())
            except (SyntaxError, UnicodeDecodeError):
                continue
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield from _documented(node)


def _documented(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[_Function]:
    documentation = ast.get_docstring(node)
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    if documentation and len(node.body) > 1 and length in _LINES:
        sentence = _END_OF_SENTENCE.split(documentation.strip())[0].replace("\n", " ").strip()
        if len(sentence.split()) in _WORDS:
            del node.body[0]
            yield _Function(ast.unparse(node), sentence)


if __name__ == "__main__":
    main()
