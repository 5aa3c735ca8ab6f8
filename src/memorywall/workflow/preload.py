"""Finds and reads the files of semantic namespaces."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import msgspec

from memorywall.records.entry import VALUE_LIMIT, Sensitivity
from memorywall.records.identifiers import MOST_TAGS, name_forms
from memorywall.workflow import names
from memorywall.workflow.json_text import Elements, parse_lines, parse_list
from memorywall.workflow.mapping_reader import LocatedText, MappingReader
from memorywall.workflow.model import SemanticEntry, SemanticNamespace
from memorywall.workflow.tree import TOP, Diagnostics, Position, inside
from memorywall.workflow.yaml_text import parse_yaml

YAML_LIMIT = 1024 * 1024
JSON_LIMIT = 8 * 1024 * 1024
_SENSITIVITIES: tuple[Sensitivity, ...] = get_args(Sensitivity)


def read_text(file: Path, limit: int, diagnostics: Diagnostics) -> str | None:
    """The text of a file of at most `limit` bytes; None, with a problem reported, on failure."""
    try:
        with open(file, "rb") as opened:
            content = opened.read(limit + 1)
    except OSError as error:
        diagnostics.add(TOP, "", f"cannot be read: {error.strerror or type(error).__name__}")
        return None
    except ValueError:
        diagnostics.add(TOP, "", "cannot be read: this is not a path")
        return None
    if len(content) > limit:
        diagnostics.add(TOP, "", f"is larger than {limit} bytes")
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        column = error.start - (before.rfind(b"\n") + 1) + 1
        diagnostics.add(Position(before.count(b"\n") + 1, column), "", "is not UTF-8")
        return None


def load_namespace(
    name: LocatedText, given: LocatedText | None, workflow: Path, diagnostics: Diagnostics
) -> SemanticNamespace:
    """The namespace with the entries of its file, if it has one.

    given: the path after `from`, None to search for a file with the name of the namespace
    """
    file = _given(given, workflow, diagnostics) if given else _found(name, workflow, diagnostics)
    if file is None:
        return SemanticNamespace(name=name.text)
    entries = _entries(file, diagnostics.about(str(file)))
    return SemanticNamespace(name=name.text, file=file, entries=entries)


def _given(given: LocatedText, workflow: Path, diagnostics: Diagnostics) -> Path | None:
    files = [workflow.parent / form for form in name_forms(given.text)]
    file = next(filter(os.path.isfile, files), files[0])
    if file.suffix not in _READERS:
        diagnostics.add(given.at, given.where, f"must end in {', '.join(_READERS)}")
        return None
    if not _is_inside(file, workflow.parent):
        diagnostics.add(given.at, given.where, "must be in the folder of the workflow file")
        return None
    if not os.path.isfile(file):
        diagnostics.add(given.at, given.where, "there is no such file")
        return None
    return file


def _found(name: LocatedText, workflow: Path, diagnostics: Diagnostics) -> Path | None:
    # A name with several parts could lead to any folder; such a namespace needs `from`.
    if "/" in name.text or os.sep in name.text or name.text.startswith("."):
        return None
    candidates = [
        folder / (form + suffix)
        for folder in (workflow.parent, workflow.parent / workflow.stem)
        for suffix in _READERS
        for form in name_forms(name.text)
    ]
    files = [file for file in candidates if os.path.isfile(file) and file != workflow]
    if len(files) > 1:
        diagnostics.add(
            name.at,
            name.where,
            f"{len(files)} files have this namespace's name; name one by `from`",
        )
        return None
    if files and not _is_inside(files[0], workflow.parent):
        diagnostics.add(name.at, name.where, "its file must be in the folder of the workflow file")
        return None
    return files[0] if files else None


def _is_inside(file: Path, folder: Path) -> bool:
    """Whether the file, with all links resolved, is in the folder."""
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))


def _entries(file: Path, diagnostics: Diagnostics) -> tuple[SemanticEntry, ...]:
    limit = YAML_LIMIT if file.suffix in _YAML else JSON_LIMIT
    text = read_text(file, limit, diagnostics)
    if text is None:
        return ()
    entries: list[SemanticEntry] = []
    lines: dict[str, int] = {}
    for where, node in _READERS[file.suffix](text, diagnostics):
        section = MappingReader(node, where, diagnostics)
        key, entry = _entry(section)
        if key and key.text in lines:
            diagnostics.add(
                key.at, key.where, f"the entry at line {lines[key.text]} has the same key"
            )
        elif key:
            lines[key.text] = key.at.line
        if len(msgspec.json.encode(entry.value)) > VALUE_LIMIT:
            reason = f"has more than {VALUE_LIMIT} bytes as JSON"
            diagnostics.add(section.position("value"), inside(where, "value"), reason)
        entries.append(entry)
    return tuple(entries)


def _entry(section: MappingReader) -> tuple[LocatedText | None, SemanticEntry]:
    """An entry, and its key with its position."""
    key = section.located_text("key", names.key, required=True)
    entry = SemanticEntry(
        key=key.text if key else "",
        value=section.mapping("value", required=True),
        tags=section.texts("tags", names.tag, most=MOST_TAGS),
        sensitivity=section.choice("sensitivity", _SENSITIVITIES, "internal"),
    )
    section.finish()
    return key, entry


def _yaml_list(text: str, diagnostics: Diagnostics) -> Elements:
    root = parse_yaml(text, diagnostics)
    if root is not None and not isinstance(root.content, list):
        diagnostics.add(root.at, "", "must be a list of entries")
    elif root is not None and isinstance(root.content, list):
        yield from ((inside("", index), node) for index, node in enumerate(root.content))


_YAML = (".yaml", ".yml")
_READERS: dict[str, Callable[[str, Diagnostics], Elements]] = {
    ".json": parse_list,
    ".jsonl": parse_lines,
    **dict.fromkeys(_YAML, _yaml_list),
}
